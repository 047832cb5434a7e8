//! Writes a change if nobody else changed the object in the meantime.

use std::sync::Arc;

use serde_json::Value;

use crate::endpoints::encode;
use crate::registry::ResourceType;
use crate::server::ApiServer;
use kubeproof_apimachinery::object::Object;
use kubeproof_storage::{Change, Stored, Write};

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
pub(crate) fn commit(
    api: &ApiServer,
    ty: &ResourceType,
    (stored, old): (&Stored, &Value),
    new: &Value,
    condition: impl FnOnce(&Write<'_>) -> bool,
) -> Commit {
    let is_removal = is_finished(ty, new);
    let draft = encode::draft(ty, new);
    let is_same = !is_removal && stored.same_content(&draft);
    let committed = api.store.write(|write| {
        let current = write.get(&ty.table, &stored.key).cloned();
        let Some(current) =
            current.filter(|current| current.revision == stored.revision && condition(write))
        else {
            return Commit::Rejected(write.get(&ty.table, &stored.key).cloned());
        };
        if is_removal {
            write.delete(&ty.table, &stored.key);
            Commit::Removed(Arc::new(Stored::new(draft, current.revision, Change::Deleted)))
        } else if is_same {
            Commit::Stored(current)
        } else {
            Commit::Stored(write.put(&ty.table, draft))
        }
    });
    match &committed {
        Commit::Removed(_) => ty.strategy.after_delete(api.context(), new),
        Commit::Stored(_) => ty.strategy.after_update(api.context(), new, old),
        Commit::Rejected(_) => {}
    }
    committed
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
