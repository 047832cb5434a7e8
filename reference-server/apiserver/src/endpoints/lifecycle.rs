//! Deletes objects at once, or after their finalizers and grace period.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::endpoints::commit::storage_error;
use crate::endpoints::convert;
use crate::http::query;
use crate::registry::ResourceType;
use crate::registry::encode::{self, FOREGROUND, ORPHAN};
use crate::server::ApiServer;
use kubeproof_apimachinery::object::{Object, timestamp};
use kubeproof_apimachinery::request::Query;
use kubeproof_apimachinery::schema::FieldError;
use kubeproof_apimachinery::status::ApiError;
use kubeproof_storage::{Key, Stored, Write};

/// What happens to the dependents of a deleted object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// Dependents are deleted first.
    Foreground,
    /// Dependents are deleted later.
    Background,
    /// Dependents stay.
    Orphan,
}

/// The body `DeleteOptions`.
#[derive(Clone, Debug, Default)]
pub struct DeleteOptions {
    /// Validates only, and stores nothing.
    pub dry_run: bool,
    /// The field `gracePeriodSeconds`.
    pub grace: Option<i64>,
    /// The field `preconditions.uid`.
    pub uid: Option<String>,
    /// The field `preconditions.resourceVersion`.
    pub version: Option<String>,
    /// The field `propagationPolicy`.
    pub propagation: Option<Propagation>,
}

impl DeleteOptions {
    /// Parses the options of a request from the body, or from the query if there is no body.
    pub fn parse(query: &Query, body: &[u8]) -> Result<Self, ApiError> {
        let mut errors = Vec::new();
        let mut options = Self::default();
        let (propagation, orphan) = if body.is_empty() {
            options.dry_run = query::dry_run(query.all("dryRun"), &mut errors);
            options.grace = query.number("gracePeriodSeconds")?;
            (
                query.text("propagationPolicy").map(str::to_owned),
                query.text("orphanDependents").map(|_| query.flag("orphanDependents")),
            )
        } else {
            let given = DeleteBody::parse(body).map_err(|error| {
                ApiError::bad_request(format!("the body is no DeleteOptions: {error}"))
            })?;
            if !given.kind.is_empty() && given.kind != "DeleteOptions" {
                let kind = given.kind;
                return Err(ApiError::bad_request(format!(
                    "the body must be a DeleteOptions, not a {kind}"
                )));
            }
            options.dry_run = query::dry_run(given.dry_run.iter().map(String::as_str), &mut errors);
            options.grace = given.grace_period_seconds;
            options.uid = given.preconditions.uid;
            options.version = given.preconditions.resource_version;
            (given.propagation_policy, given.orphan_dependents)
        };
        options.propagation = match propagation.as_deref() {
            None => orphan
                .map(|orphan| if orphan { Propagation::Orphan } else { Propagation::Background }),
            Some(policy) if orphan.is_some() => {
                let why = "orphanDependents and deletionPropagation cannot be both set";
                errors.push(FieldError::invalid("propagationPolicy", &policy.into(), why));
                None
            }
            Some("Foreground") => Some(Propagation::Foreground),
            Some("Background") => Some(Propagation::Background),
            Some("Orphan") => Some(Propagation::Orphan),
            Some(other) => {
                let supported = ["Foreground", "Background", "Orphan", "nil"].map(Value::from);
                errors.push(FieldError::not_supported(
                    "propagationPolicy",
                    &other.into(),
                    &supported,
                ));
                None
            }
        };
        if errors.is_empty() {
            Ok(options)
        } else {
            Err(ApiError::invalid_options("DeleteOptions", &errors))
        }
    }

    /// Returns the options as admission sees them.
    pub(crate) fn to_value(&self) -> Value {
        let mut options = json!({ "kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1" });
        if self.dry_run {
            options["dryRun"] = json!(["All"]);
        }
        if let Some(seconds) = self.grace {
            options["gracePeriodSeconds"] = seconds.into();
        }
        if let Some(uid) = &self.uid {
            options["preconditions"]["uid"] = uid.as_str().into();
        }
        if let Some(version) = &self.version {
            options["preconditions"]["resourceVersion"] = version.as_str().into();
        }
        if let Some(policy) = self.propagation {
            options["propagationPolicy"] = match policy {
                Propagation::Foreground => "Foreground",
                Propagation::Background => "Background",
                Propagation::Orphan => "Orphan",
            }
            .into();
        }
        options
    }
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct DeleteBody {
    kind: String,
    dry_run: Vec<String>,
    grace_period_seconds: Option<i64>,
    preconditions: Preconditions,
    propagation_policy: Option<String>,
    orphan_dependents: Option<bool>,
}

impl DeleteBody {
    /// Parses the body. Null counts as absent.
    fn parse(body: &[u8]) -> Result<Self, serde_json::Error> {
        // A list could stand for the fields in their order.
        let mut fields: Map<String, Value> = serde_json::from_slice(body)?;
        fields.retain(|_, field| !field.is_null());
        serde_json::from_value(Value::Object(fields))
    }
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Preconditions {
    uid: Option<String>,
    resource_version: Option<String>,
}

/// The result of a deletion.
#[derive(Debug)]
pub(crate) enum Deleted {
    /// The object is removed, or would be; this is its last state.
    Gone(Arc<Stored>),
    /// The object waits for its finalizers or its grace period.
    Waiting(Arc<Stored>),
    /// A dry run: the object would wait.
    WouldWait(Value),
}

/// Deletes an object, or begins its deletion, without admission.
pub(crate) async fn delete(
    api: &ApiServer,
    ty: &Arc<ResourceType>,
    key: &Key,
    options: &DeleteOptions,
) -> Result<Deleted, ApiError> {
    loop {
        let deletion = Deletion::read(api, ty, key, options)?;
        if let Some(deleted) = deletion.execute(api, options).await? {
            return Ok(deleted);
        }
    }
}

/// The deletion of one version of an object.
pub(crate) struct Deletion {
    /// The type in the version of the stored object.
    ty: Arc<ResourceType>,
    stored: Arc<Stored>,
    old: Value,
    /// The object with its deletion marks. Without it, the object can be removed now.
    new: Option<Value>,
}

impl Deletion {
    /// Reads the object, and checks the preconditions.
    pub(crate) fn read(
        api: &ApiServer,
        ty: &Arc<ResourceType>,
        key: &Key,
        options: &DeleteOptions,
    ) -> Result<Self, ApiError> {
        ty.strategy
            .check_delete(&key.name)
            .map_err(|why| ApiError::forbidden(ty.resource(), &key.name, why))?;
        let stored = api
            .store
            .get(&ty.table, key)
            .ok_or_else(|| ApiError::not_found(ty.resource(), &key.name))?;
        check_preconditions(ty, &stored, options)?;
        let ty = Arc::clone(ty.as_stored(&stored));
        let old = ty.load(&stored);
        let new = marked_for_deletion(&ty, &old, options);
        Ok(Self { ty, stored, old, new })
    }

    /// Returns the object before the deletion, in the version of a type.
    pub(crate) async fn object(
        &self,
        api: &Arc<ApiServer>,
        ty: &ResourceType,
    ) -> Result<Value, ApiError> {
        convert::load(api, ty, &self.stored).await
    }

    /// Writes the deletion. Returns none if the object has another version now.
    pub(crate) async fn execute(
        self,
        api: &ApiServer,
        options: &DeleteOptions,
    ) -> Result<Option<Deleted>, ApiError> {
        let Self { ty, stored, old, new } = self;
        match &new {
            Some(new) if *new == old => return Ok(Some(Deleted::Waiting(stored))),
            Some(new) if options.dry_run => return Ok(Some(Deleted::WouldWait(new.clone()))),
            None if options.dry_run => return Ok(Some(Deleted::Gone(stored))),
            _ => {}
        }
        let draft = new.as_ref().map(|new| encode::draft(&ty, new));
        let change = |write: &mut Write<'_>| {
            let current = write.get(&ty.table, &stored.key);
            if current.is_none_or(|current| current.revision != stored.revision) {
                return;
            }
            match &draft {
                Some(draft) => write.put(&ty.table, draft),
                None => write.delete(&ty.table, &stored.key),
            }
        };
        let ((), written) = api.store.write(change).await.map_err(|error| storage_error(&error))?;
        let Some(written) = written else { return Ok(None) };
        if draft.is_some() {
            return Ok(Some(Deleted::Waiting(written)));
        }
        ty.strategy.after_delete(api.context(), &old);
        Ok(Some(Deleted::Gone(written)))
    }
}

fn check_preconditions(
    ty: &ResourceType,
    stored: &Stored,
    options: &DeleteOptions,
) -> Result<(), ApiError> {
    let reject = |what: &str, given: &str, found: &str| {
        let why = format!(
            "the {what} in the precondition ({given}) does not match the {what} in record ({found})"
        );
        Err(ApiError::conflict(ty.resource(), &stored.key.name, &why))
    };
    if let Some(uid) = &options.uid
        && *uid != stored.facts.uid
    {
        return reject("UID", uid, &stored.facts.uid);
    }
    let version = stored.revision.to_string();
    if let Some(given) = &options.version
        && *given != version
    {
        return reject("ResourceVersion", given, &version);
    }
    Ok(())
}

/// Returns the object with its deletion marks, or none if it can be removed now.
fn marked_for_deletion(ty: &ResourceType, old: &Value, options: &DeleteOptions) -> Option<Value> {
    let mut new = old.clone();
    let mut finalizers = old.meta_list("finalizers");
    let (drop, add) = match options.propagation {
        None => (None, None),
        Some(Propagation::Orphan) => (Some([FOREGROUND, FOREGROUND]), Some(ORPHAN)),
        Some(Propagation::Foreground) => (Some([ORPHAN, ORPHAN]), Some(FOREGROUND)),
        Some(Propagation::Background) => (Some([ORPHAN, FOREGROUND]), None),
    };
    if let Some(drop) = drop {
        finalizers.retain(|name| !drop.contains(&name.as_str()));
    }
    finalizers
        .extend(add.filter(|add| !finalizers.iter().any(|name| name == add)).map(str::to_owned));
    if let Some(own) = ty.strategy.deletion_finalizer().filter(|_| !old.is_deleting())
        && !finalizers.iter().any(|name| name == own)
    {
        finalizers.push(own.to_owned());
    }
    let grace = ty.strategy.grace_period(old, options.grace);
    if finalizers.is_empty() && grace == 0 && !ty.strategy.holds_deletion(old) {
        return None;
    }
    if finalizers.is_empty() {
        new.unset_meta("finalizers");
    } else {
        new.set_meta("finalizers", json!(finalizers));
    }
    let left = old.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64);
    if left.is_none_or(|left| grace < left) {
        new.set_meta("deletionTimestamp", timestamp(grace));
        new.set_meta("deletionGracePeriodSeconds", grace);
        if old.generation() > 0 && !old.is_deleting() {
            new.set_meta("generation", old.generation() + 1);
        }
    }
    ty.strategy.mark_deleting(&mut new);
    Some(new)
}

#[cfg(test)]
mod tests;
