//! Changes objects: read, compute the candidate, validate it, and write if the object did not
//! change in the meantime.
//!
//! PUT and PATCH compute different candidates. A write that finds a newer version starts again. It
//! ends in a conflict if the candidate contains the resource version of its source.

use std::sync::Arc;

use serde_json::{Value, json};

use super::update::Part;
use super::{Call, create};
use crate::admission::{escalation, signers};
use crate::endpoints::commit::{Commit, commit};
use crate::http::respond::ApiResponse;
use crate::registry::strategy::Update;
use kubeproof_apimachinery::object::Object;
use kubeproof_apimachinery::object::validation::metadata::{self, MetaRules};
use kubeproof_apimachinery::patch::apply::Operation;
use kubeproof_apimachinery::schema::FieldError;
use kubeproof_apimachinery::status::ApiError;
use kubeproof_storage::Stored;

/// The result of a change.
pub(super) enum Changed {
    /// The stored object, or its last state if the change removed it.
    Stored(Arc<Stored>),
    /// A dry run: the object that would be stored.
    Dry(Value),
}

/// The options of a change.
#[derive(Clone, Copy, Debug)]
pub(super) struct UpdateOptions {
    pub(super) part: Part,
    pub(super) dry_run: bool,
    /// Rejects a body without a resource version if the type requires one.
    pub(super) needs_version: bool,
    /// The candidate contains the owners of its fields.
    pub(super) owned: bool,
}

/// Changes the object of the URL to the result of `candidate`.
pub(super) fn modify(
    call: &Call,
    change: UpdateOptions,
    mut candidate: impl FnMut(&Value) -> Result<Value, ApiError>,
) -> Result<Changed, ApiError> {
    let (api, ty) = (&call.api, &*call.ty);
    let key = call.key();
    loop {
        let stored = api.store.get(&ty.table, &key).ok_or_else(|| call.not_found())?;
        let old = ty.load(&stored);
        let mut new = candidate(&old)?;
        check_identity(call, &mut new)?;
        check_version(call, change, &new, &stored)?;
        check_uid(call, change, &new, &old)?;
        let sent = new.metadata().and_then(|metadata| metadata.get("managedFields")).cloned();
        settle(call, change.part, &mut new, &old)?;
        escalation::check(call.attributes(), &new, Some(&old))?;
        signers::check_update(call.attributes(), &new, &old)?;
        match sent {
            Some(owners) if change.owned => new.set_meta("managedFields", owners),
            None if change.owned => new.unset_meta("managedFields"),
            sent => call.ownership(Operation::Update).track(Some(&old), &mut new, sent.as_ref()),
        }
        let (whole, dry_run) = (matches!(change.part, Part::Whole), change.dry_run);
        ty.strategy
            .begin_update(api.context(), Update { new: &mut new, old: &old, whole, dry_run })?;
        if is_unchanged(&new, &old) {
            return Ok(Changed::Stored(stored));
        }
        if change.dry_run {
            return Ok(Changed::Dry(new));
        }
        match commit(api, ty, (&stored, &old), &new, |_| true) {
            Commit::Stored(written) | Commit::Removed(written) => {
                return Ok(Changed::Stored(written));
            }
            Commit::Rejected(_) => ty.strategy.cancel_update(&new, &old),
        }
    }
}

/// Returns whether two objects differ at most in the times of their managed fields.
fn is_unchanged(new: &Value, old: &Value) -> bool {
    let times = |new: &Value, old: &Value| equal_except(new, old, "time", |_, _| true);
    let entries = |new: &Value, old: &Value| match (new.as_array(), old.as_array()) {
        (Some(new), Some(old)) => {
            new.len() == old.len() && new.iter().zip(old).all(|(new, old)| times(new, old))
        }
        _ => new == old,
    };
    let metadata = |new: &Value, old: &Value| equal_except(new, old, "managedFields", entries);
    equal_except(new, old, "metadata", metadata)
}

/// Compares two objects. `compare` decides on the values of one field.
fn equal_except(
    new: &Value,
    old: &Value,
    field: &str,
    compare: impl Fn(&Value, &Value) -> bool,
) -> bool {
    let (Some(new), Some(old)) = (new.as_object(), old.as_object()) else { return new == old };
    new.len() == old.len()
        && new.iter().all(|(name, new)| match old.get(name) {
            Some(old) if name == field => compare(new, old),
            Some(old) => new == old,
            None => false,
        })
}

/// Checks that name and namespace of the candidate are those of the URL.
pub(super) fn check_identity(call: &Call, new: &mut Value) -> Result<(), ApiError> {
    let (asked, given) = (call.info.name.as_str(), new.meta("name"));
    if given.is_empty() {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({asked} based on URL) was undeterminable: name must be \
             provided"
        )));
    }
    if given != asked {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({given}) does not match the name on the URL ({asked})"
        )));
    }
    create::place(call, new)
}

/// Checks that the candidate was made from the current version.
fn check_version(
    call: &Call,
    change: UpdateOptions,
    new: &Value,
    stored: &Stored,
) -> Result<(), ApiError> {
    let ty = &call.ty;
    match new.meta("resourceVersion") {
        "" | "0" if change.needs_version && !ty.allows_unconditional_update => {
            let why = "must be specified for an update";
            let error = FieldError::invalid("metadata.resourceVersion", &json!(0), why);
            Err(ApiError::invalid(ty.resource(), &call.info.name, &[error]))
        }
        "" | "0" => Ok(()),
        text => match text.parse::<u64>() {
            Err(error) => Err(ApiError::bad_request(format!(
                "invalid resource version: metadata.resourceVersion: Invalid value: {text:?}: \
                 {error}"
            ))),
            Ok(version) if version == stored.revision => Ok(()),
            Ok(_) => Err(ApiError::modified(ty.resource(), &call.info.name)),
        },
    }
}

/// Checks the UID. A body with another UID is about another object, which is gone.
fn check_uid(call: &Call, change: UpdateOptions, new: &Value, old: &Value) -> Result<(), ApiError> {
    let (given, uid) = (new.meta("uid"), old.meta("uid"));
    if given.is_empty() || given == uid || !change.needs_version {
        return Ok(());
    }
    let why =
        format!("Precondition failed: UID in precondition: {given}, UID in object meta: {uid}");
    Err(ApiError::conflict(call.ty.resource(), &call.info.name, &why))
}

/// Prepares the candidate for the store, or returns its errors.
fn settle(call: &Call, part: Part, new: &mut Value, old: &Value) -> Result<(), ApiError> {
    let ty = &*call.ty;
    restore_system_fields(new, old);
    match part {
        Part::Whole => {
            if ty.has_status {
                new.adopt("status", old);
            }
            (ty.hooks.prepare_update)(new, old);
        }
        Part::Binding => {}
        Part::Subresource(hooks) => (hooks.prepare)(new, old),
        Part::Status => {
            (ty.hooks.prepare_status_update)(new, old);
        }
        Part::Finalize => {
            let finalizers = new.pointer("/spec/finalizers").cloned();
            *new = old.clone();
            if let Some(spec) = new["spec"].as_object_mut() {
                match finalizers {
                    Some(finalizers) => spec.insert("finalizers".to_owned(), finalizers),
                    None => spec.remove("finalizers"),
                };
            }
        }
    }
    ty.default(new);
    let mut errors = metadata::validate_update(new, old);
    let rules = MetaRules { name: ty.name_rule, qualified_finalizers: !ty.custom };
    errors.extend(metadata::validate(new, rules));
    errors.extend(new_finalizers(new, old));
    errors.extend(match part {
        Part::Status => {
            let mut errors = (ty.hooks.validate_status)(new, old);
            if ty.custom {
                errors.extend(ty.validate_update(new, old));
            }
            errors
        }
        Part::Whole | Part::Finalize => ty.validate_update(new, old),
        Part::Subresource(hooks) => {
            let mut errors = ty.schema.validate(new, Some(old));
            errors.extend((hooks.validate)(new, old));
            errors
        }
        Part::Binding => Vec::new(),
    });
    if !errors.is_empty() {
        return Err(ApiError::invalid(ty.subject(), &call.info.name, &errors));
    }
    set_generation(call, part, new, old);
    Ok(())
}

/// Ignores the values of the client for fields that the server sets.
fn restore_system_fields(new: &mut Value, old: &Value) {
    for field in ["generation", "creationTimestamp", "resourceVersion", "managedFields", "selfLink"]
    {
        new.adopt_meta(field, old);
    }
    // Absent values stay. Validation reports other values.
    for field in ["uid", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        if new.metadata().is_none_or(|metadata| metadata.get(field).is_none_or(Value::is_null)) {
            new.adopt_meta(field, old);
        }
    }
}

fn new_finalizers(new: &Value, old: &Value) -> Option<FieldError> {
    if !old.is_deleting() {
        return None;
    }
    let before = old.meta_list("finalizers");
    let added: Vec<String> =
        new.meta_list("finalizers").into_iter().filter(|name| !before.contains(name)).collect();
    let why = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers {}",
        json!(added)
    );
    (!added.is_empty()).then(|| FieldError::forbidden("metadata.finalizers", &why))
}

fn set_generation(call: &Call, part: Part, new: &mut Value, old: &Value) {
    let ty = &*call.ty;
    if !ty.has_generation {
        return;
    }
    let bumps = match part {
        Part::Status => false,
        _ => ty.is_new_generation(new, old),
    };
    if bumps {
        let next = old.generation() + 1;
        new.set_meta("generation", next);
    }
}

/// Returns the response to a change.
pub(super) fn respond(
    call: &Call,
    representation: crate::http::negotiate::Representation,
    changed: &Changed,
) -> Result<ApiResponse, ApiError> {
    let status = http::StatusCode::OK;
    match changed {
        Changed::Stored(stored) => {
            crate::endpoints::present::stored(call, representation, status, stored)
        }
        Changed::Dry(object) => {
            crate::endpoints::present::value(call, representation, status, object)
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("/metadata/managedFields/0/time", true)]
    #[case("/metadata/managedFields/0/manager", false)]
    #[case("/metadata/name", false)]
    #[case("/data", false)]
    fn the_times_of_managed_fields_are_no_change(#[case] field: &str, #[case] expected: bool) {
        let old = json!({
            "metadata": {"name": "a", "managedFields": [{"manager": "m", "time": "1"}]},
            "data": "d",
        });
        let mut new = old.clone();
        *new.pointer_mut(field).expect("a field") = json!("other");
        assert_eq!(is_unchanged(&new, &old), expected);
        assert!(is_unchanged(&old, &old));
        new["added"] = json!(1);
        assert!(!is_unchanged(&new, &old));
    }
}
