//! Changes objects: read, compute the candidate, validate it, and write if the object did not
//! change in the meantime.
//!
//! PUT and PATCH compute different candidates. A write that finds a newer version starts again. It
//! ends in a conflict if the candidate contains the resource version of its source.

use std::sync::Arc;

use serde_json::{Value, json};

use super::admit::Admission;
use super::update::Part;
use super::{Call, convert, create};
use crate::endpoints::commit::{Commit, commit_draft};
use crate::http::respond::ApiResponse;
use crate::registry::strategy::Update;
use kubeproof_apimachinery::object::Object;
use kubeproof_apimachinery::object::validation::metadata;
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
#[derive(Clone, Copy)]
pub(super) struct UpdateOptions<'a> {
    pub(super) part: Part,
    pub(super) dry_run: bool,
    /// Rejects a body without a resource version if the type requires one.
    pub(super) needs_version: bool,
    /// The candidate contains the owners of its fields.
    pub(super) owned: bool,
    /// The admission of the change. Without it, the endpoint runs admission itself.
    pub(super) admission: Option<&'a Admission<'a>>,
    /// The form of the object that admission sees, if it is not the object itself.
    pub(super) view: Option<View<'a>>,
}

/// Another form of an object, such as its scale.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    /// Returns the form of an object.
    pub(super) show: &'a (dyn Fn(&Value) -> Value + Sync),
    /// Returns the object with the changes in its form.
    pub(super) write: &'a (dyn Fn(&Value, &Value) -> Value + Sync),
}

impl<'a> UpdateOptions<'a> {
    /// Returns the options of a change that needs no version.
    pub(super) fn new(part: Part, dry_run: bool, admission: Option<&'a Admission<'a>>) -> Self {
        Self { part, dry_run, needs_version: false, owned: false, admission, view: None }
    }
}

/// Changes the object of the URL to the result of `candidate`.
pub(super) async fn modify(
    call: &Call,
    change: UpdateOptions<'_>,
    mut candidate: impl FnMut(&Value) -> Result<Value, ApiError> + Send,
) -> Result<Changed, ApiError> {
    let (api, ty) = (&call.api, &*call.ty);
    let key = call.key();
    loop {
        let stored = api.store.get(&ty.table, &key).ok_or_else(|| call.not_found())?;
        let old = convert::load(api, ty, &stored).await?;
        let mut new = candidate(&old)?;
        check_identity(call, &mut new)?;
        check_version(call, change, &new, &stored)?;
        check_uid(call, change, &new, &old)?;
        let owners = mutate(call, change, &mut new, &old).await?;
        settle(call, change.part, &mut new, &old)?;
        owners.set(call, change, &mut new, &old);
        let (whole, dry_run) = (matches!(change.part, Part::Whole), change.dry_run);
        ty.strategy
            .begin_update(api.context(), Update { new: &mut new, old: &old, whole, dry_run })?;
        if let Err(error) = validate(change, &new, &old).await {
            if !change.dry_run {
                ty.strategy.cancel_update(&new, &old);
            }
            return Err(error);
        }
        if is_unchanged(&new, &old) {
            return Ok(Changed::Stored(stored));
        }
        if change.dry_run {
            return Ok(Changed::Dry(new));
        }
        let draft = convert::draft(api, ty, &new).await?;
        match commit_draft(api, ty, (&stored, &old), (&new, draft), |_| true).await? {
            Commit::Stored(written) | Commit::Removed(written) => {
                return Ok(Changed::Stored(written));
            }
            Commit::Rejected(_) => ty.strategy.cancel_update(&new, &old),
        }
    }
}

/// The owners of the fields of a candidate.
enum Owners {
    /// The managed fields in the body, before the server computes the new ones.
    Sent(Option<Value>),
    /// The new managed fields.
    Known(Option<Value>),
}

impl Owners {
    fn of(object: &Value) -> Option<Value> {
        object.metadata().and_then(|metadata| metadata.get("managedFields")).cloned()
    }

    /// Sets the managed fields of the candidate.
    fn set(self, call: &Call, change: UpdateOptions<'_>, new: &mut Value, old: &Value) {
        match self {
            Self::Known(Some(owners)) => new.set_meta("managedFields", owners),
            Self::Known(None) => new.unset_meta("managedFields"),
            Self::Sent(Some(owners)) if change.owned => new.set_meta("managedFields", owners),
            Self::Sent(None) if change.owned => new.unset_meta("managedFields"),
            Self::Sent(sent) => {
                call.ownership(Operation::Update).track(Some(old), new, sent.as_ref());
            }
        }
    }
}

/// Runs the mutating phase of admission. If it can change the object, the client owns the fields
/// before the changes only.
async fn mutate(
    call: &Call,
    change: UpdateOptions<'_>,
    new: &mut Value,
    old: &Value,
) -> Result<Owners, ApiError> {
    let sent = Owners::Sent(Owners::of(new));
    let Some(admission) = change.admission.filter(|admission| admission.mutates(Some(old))) else {
        return Ok(sent);
    };
    let mut before = new.clone();
    prepare(call, change.part, &mut before, old);
    sent.set(call, change, &mut before, old);
    let owners = Owners::Known(Owners::of(&before));
    if let Some(view) = change.view {
        let mut shown = (view.show)(new);
        let unchanged = shown.clone();
        admission.mutate(&mut shown, Some(&(view.show)(old))).await?;
        if shown != unchanged {
            *new = (view.write)(new, &shown);
        }
        return Ok(owners);
    }
    call.ty.default(new);
    for field in ["uid", "creationTimestamp"] {
        if new.meta(field).is_empty() {
            new.adopt_meta(field, old);
        }
    }
    admission.mutate(new, Some(old)).await?;
    check_identity(call, new)?;
    Ok(owners)
}

/// Runs the validating phase of admission.
async fn validate(change: UpdateOptions<'_>, new: &Value, old: &Value) -> Result<(), ApiError> {
    match (change.admission, change.view) {
        (None, _) => Ok(()),
        (Some(admission), None) => admission.validate(new, Some(old)).await,
        (Some(admission), Some(View { show, .. })) => {
            admission.validate(&show(new), Some(&show(old))).await
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
    change: UpdateOptions<'_>,
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
fn check_uid(
    call: &Call,
    change: UpdateOptions<'_>,
    new: &Value,
    old: &Value,
) -> Result<(), ApiError> {
    let (given, uid) = (new.meta("uid"), old.meta("uid"));
    if given.is_empty() || given == uid || !change.needs_version {
        return Ok(());
    }
    Err(other_object(call, given, uid))
}

/// Returns the error of an update for the object with another UID than the stored one.
pub(super) fn other_object(call: &Call, given: &str, stored: &str) -> ApiError {
    let why =
        format!("Precondition failed: UID in precondition: {given}, UID in object meta: {stored}");
    ApiError::conflict(call.ty.resource(), &call.info.name, &why)
}

/// Sets defaults, and removes what the endpoint must not change from the candidate.
fn prepare(call: &Call, part: Part, new: &mut Value, old: &Value) {
    let ty = &*call.ty;
    restore_system_fields(new, old);
    ty.default(new);
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
    }
}

/// Prepares the candidate for the store, or returns its errors.
fn settle(call: &Call, part: Part, new: &mut Value, old: &Value) -> Result<(), ApiError> {
    prepare(call, part, new, old);
    let ty = &*call.ty;
    let mut errors = metadata::validate_update(new, old);
    if ty.hooks.checks_prefix && matches!(part, Part::Whole) {
        errors.extend(metadata::validate_prefix(new, ty.meta_rules().name));
    }
    errors.extend(metadata::validate_changed(new, ty.meta_rules()));
    errors.extend(new_finalizers(new, old));
    let judgement = part.judge(ty, new, old);
    errors.extend(judgement.errors);
    for warning in judgement.warnings {
        call.record.warn(warning.to_string());
    }
    if !errors.is_empty() {
        return Err(ApiError::invalid(ty.subject(), &call.info.name, &errors));
    }
    set_generation(call, part, new, old);
    let warnings = match part {
        Part::Whole => (ty.hooks.warn)(new, Some(old)),
        Part::Status => (ty.hooks.warn_status)(new),
        Part::Binding | Part::Subresource(_) => Vec::new(),
    };
    for warning in warnings {
        call.record.warn(warning);
    }
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
pub(super) async fn respond(
    call: &Call,
    representation: crate::http::negotiate::Representation,
    changed: &Changed,
) -> Result<ApiResponse, ApiError> {
    let status = http::StatusCode::OK;
    match changed {
        Changed::Stored(stored) => {
            crate::endpoints::present::stored(call, representation, status, stored).await
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
