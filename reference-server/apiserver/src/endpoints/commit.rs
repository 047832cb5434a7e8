//! Writes a change if the object has not changed in the meantime.

use std::sync::Arc;

use serde_json::Value;

use crate::registry::ResourceType;
use crate::registry::encode;
use crate::server::ApiServer;
use kubeproof_apimachinery::object::Object;
use kubeproof_apimachinery::patch::apply;
use kubeproof_apimachinery::status::ApiError;
use kubeproof_storage::{Change, Draft, Stored, Write, WriteError};

/// The result of a commit.
pub(crate) enum Commit {
    /// The stored object.
    Stored(Arc<Stored>),
    /// The last state of an object whose deletion the change completed.
    Removed(Arc<Stored>),
    /// Nothing was written. The object has another version, or a condition does not hold.
    Rejected(Option<Arc<Stored>>),
}

/// Replaces the version `stored`, which contains `old`, if it is still the newest one and
/// `condition` holds. Calls the hooks of the type after the write.
pub(crate) async fn commit(
    api: &ApiServer,
    ty: &ResourceType,
    (stored, old): (&Stored, &Value),
    new: &Value,
    condition: impl Fn(&Write<'_>) -> bool + Send + Sync,
) -> Result<Commit, ApiError> {
    commit_draft(api, ty, (stored, old), (new, encode::draft(ty, new)), condition).await
}

/// Does the same with an object that is already encoded.
pub(crate) async fn commit_draft(
    api: &ApiServer,
    ty: &ResourceType,
    (stored, old): (&Stored, &Value),
    (new, draft): (&Value, Draft),
    condition: impl Fn(&Write<'_>) -> bool + Send + Sync,
) -> Result<Commit, ApiError> {
    let is_removal = is_finished(ty, new);
    let is_same = !is_removal && stored.same_content(&draft);
    let change = |write: &mut Write<'_>| {
        let current = write.get(&ty.table, &stored.key).cloned();
        let is_newest = current.as_ref().is_some_and(|it| it.revision == stored.revision);
        if !is_newest || !condition(write) {
            return Err(current);
        }
        if is_removal {
            write.delete(&ty.table, &stored.key);
        } else if !is_same {
            write.put(&ty.table, &draft);
        }
        Ok(current)
    };
    let (decision, written) = match api.store.write(change).await {
        Ok(written) => written,
        // The caller allocates again.
        Err(WriteError::Claimed(_)) => return Ok(Commit::Rejected(None)),
        Err(error) => return Err(storage_error(&error)),
    };
    let committed = match decision {
        Ok(Some(current)) if is_removal => {
            Commit::Removed(Arc::new(Stored::new(&draft, current.revision, Change::Deleted)))
        }
        Ok(current) => match written.or(current) {
            Some(stored) => Commit::Stored(stored),
            None => Commit::Rejected(None),
        },
        Err(current) => Commit::Rejected(current),
    };
    match &committed {
        Commit::Removed(_) => ty.strategy.after_delete(api.context(), new),
        Commit::Stored(_) => ty.strategy.after_update(api.context(), new, old),
        Commit::Rejected(_) => {}
    }
    Ok(committed)
}

/// Changes an object unless it was replaced by another one with its name. An object whose deletion
/// can complete is removed. `owner` becomes the owner of the changed fields.
pub(crate) async fn update_latest(
    api: &ApiServer,
    ty: &ResourceType,
    mut stored: Arc<Stored>,
    owner: Option<&apply::Write<'_>>,
    change: impl Fn(&mut Value) + Send,
) {
    loop {
        let old = ty.load(&stored);
        let mut new = old.clone();
        change(&mut new);
        if new == old {
            return;
        }
        if let Some(owner) = owner {
            owner.track(Some(&old), &mut new, None);
        }
        match commit(api, ty, (&stored, &old), &new, |_| true).await {
            // Try again with the version of the faster writer.
            Ok(Commit::Rejected(Some(newer))) if newer.facts.uid == stored.facts.uid => {
                stored = newer;
            }
            Ok(Commit::Stored(_) | Commit::Removed(_) | Commit::Rejected(_)) | Err(_) => return,
        }
    }
}

/// Returns the response to a write that the storage did not accept.
pub(crate) fn storage_error(error: &WriteError) -> ApiError {
    match error {
        WriteError::Unavailable(_) => ApiError::unavailable(error.to_string()),
        WriteError::Failed(_) | WriteError::Unknown(_) | WriteError::Claimed(_) => {
            ApiError::internal(error.to_string())
        }
    }
}

/// Returns whether a deletion that waited for finalizers or the grace period can complete now.
fn is_finished(ty: &ResourceType, object: &Value) -> bool {
    let grace = object
        .pointer("/metadata/deletionGracePeriodSeconds")
        .and_then(Value::as_i64)
        .unwrap_or_default();
    object.is_deleting()
        && grace == 0
        && object.meta_list("finalizers").is_empty()
        && !ty.strategy.holds_deletion(object)
}
