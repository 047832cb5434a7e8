//! The one way in which an object changes: read, make a candidate, check it, and write if nobody else has.
//!
//! PUT and PATCH differ in how they make the candidate. A write that lost the race starts again; whether that ends in a
//! conflict depends on the candidate, which names the version that it was made from or none.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::update::Part;
use super::{Call, crds, create, grants, object_gone, services};
use crate::apply::Operation;
use crate::builtin::meta::{self, MetaRules};
use crate::encode;
use crate::object::Object;
use crate::respond::Answer;
use crate::schema::FieldError;
use crate::status::ApiError;
use crate::store::Stored;
use crate::{Fault, Faults};

/// What came of a change.
pub(super) enum Changed {
    /// The object as it is now; or as it was last, when the change let it go.
    Stored(Arc<Stored>),
    /// A dry run: the object as it would have been.
    Dry(Value),
}

/// How a change is made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manner {
    pub(super) part: Part,
    pub(super) dry_run: bool,
    /// A body that names no version is refused where the type demands one.
    pub(super) needs_version: bool,
    /// The candidate says who owns its fields.
    pub(super) owned: bool,
}

/// How long a fault leaves between the check of a version and the write.
const RACE_WINDOW: Duration = Duration::from_millis(20);

/// Changes the object that the URL names to what `candidate` makes of it.
pub(super) async fn modify(
    call: &Call,
    manner: Manner,
    mut candidate: impl FnMut(&Value) -> Result<Value, ApiError>,
) -> Result<Changed, ApiError> {
    let (api, ty, faults) = (&call.api, &*call.ty, call.faults());
    let key = call.key();
    loop {
        let stored = api.store.get(&ty.table, &key).ok_or_else(|| call.not_found())?;
        let old = ty.load(&stored, faults);
        let mut new = candidate(&old)?;
        check_identity(call, &mut new)?;
        check_version(call, manner, &new, &stored)?;
        if faults.on(Fault::OtherUidAccepted) {
            new.adopt_meta("uid", &old);
        }
        check_uid(call, manner, &new, &old)?;
        let sent = new.metadata().and_then(|metadata| metadata.get("managedFields")).cloned();
        let unaddressed = ty.is_core("services") && new.pointer("/spec/clusterIP").is_none();
        settle(call, manner.part, &mut new, &old)?;
        grants::check(call, &new, Some(&old))?;
        match sent {
            Some(owners) if manner.owned => new.set_meta("managedFields", owners),
            None if manner.owned => new.unset_meta("managedFields"),
            sent => call.ownership(Operation::Update).track(Some(&old), &mut new, sent.as_ref()),
        }
        if ty.table == crds::TABLE && manner.part == Part::Whole {
            crds::accept(api, &mut new)?;
        }
        let address = services::settle(call, &mut new, &old, manner.dry_run)?;
        if unaddressed
            && faults.on(Fault::ClusterIpCleared)
            && let Some(spec) = new["spec"].as_object_mut()
        {
            spec.retain(|field, _| !matches!(field.as_str(), "clusterIP" | "clusterIPs"));
        }
        if new == old && !faults.on(Fault::NoOpBumpsVersion) {
            return Ok(Changed::Stored(stored));
        }
        let persists =
            faults.on(Fault::DryRunPersists) || (manner.owned && faults.on(Fault::ApplyDryRunPersists));
        if manner.dry_run && !persists {
            return Ok(Changed::Dry(new));
        }
        if faults.on(Fault::LostUpdate) {
            // Without a wait here the gap between check and write is too short for anybody to fall into.
            tokio::time::sleep(RACE_WINDOW).await;
        }
        let stays = faults.on(Fault::FinishedObjectsStay)
            && !ty.is_core("namespaces")
            && !ty.is_core("pods")
            && ty.table != crds::TABLE;
        let finished = is_finished(&new) && !stays;
        let draft = encode::draft(ty, &new);
        let written = api.store.write(|write| {
            let current = write.get(&ty.table, &key)?;
            if current.revision != stored.revision && !faults.on(Fault::LostUpdate) {
                return None;
            }
            if finished {
                let last = Arc::new(Stored::new(draft, current.revision, crate::store::Change::Deleted));
                write.delete(&ty.table, &key).map(|_| last)
            } else {
                Some(write.put(&ty.table, draft))
            }
        });
        services::finish(call, address, written.is_some(), &new, &old);
        if let Some(written) = written {
            if finished {
                object_gone(api, ty, &new);
            } else if ty.table == crds::TABLE {
                crds::serve(api, &new);
            }
            return Ok(Changed::Stored(written));
        }
    }
}

/// Whether a deletion that waited for the last finalizer, or the end of the grace period, may now complete.
pub(crate) fn is_finished(object: &Value) -> bool {
    let grace =
        object.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or_default();
    let waits =
        object.pointer("/spec/finalizers").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    let namespace = object["kind"] == "Namespace" && object["apiVersion"] == "v1";
    object.is_deleting() && grace == 0 && object.meta_list("finalizers").is_empty() && !(namespace && waits)
}

/// Name and namespace of the candidate are those of the URL.
pub(super) fn check_identity(call: &Call, new: &mut Value) -> Result<(), ApiError> {
    let (asked, given) = (call.info.name.as_str(), new.meta("name"));
    if given.is_empty() {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({asked} based on URL) was undeterminable: name must be provided"
        )));
    }
    if given != asked && call.faults().on(Fault::NameMismatchAccepted) {
        new.set_meta("name", asked);
    } else if given != asked {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({given}) does not match the name on the URL ({asked})"
        )));
    }
    create::place(call, new)
}

/// The version that the candidate was made from is the current one.
fn check_version(call: &Call, manner: Manner, new: &Value, stored: &Stored) -> Result<(), ApiError> {
    let ty = &call.ty;
    match new.meta("resourceVersion") {
        "" | "0" if manner.needs_version && call.faults().on(Fault::PutNeedsVersion) => {
            Err(ApiError::modified(ty.resource(), &call.info.name))
        }
        "" | "0" if manner.needs_version && !ty.allows_unconditional_update => {
            let why = "must be specified for an update";
            let error = FieldError::invalid("metadata.resourceVersion", &json!(0), why);
            Err(ApiError::invalid(ty.resource(), &call.info.name, &[error]))
        }
        "" | "0" => Ok(()),
        text => match text.parse::<u64>() {
            Err(_) if call.faults().on(Fault::UnreadableVersionAccepted) => Ok(()),
            Err(error) => Err(ApiError::bad_request(format!(
                "invalid resource version: metadata.resourceVersion: Invalid value: {text:?}: {error}"
            ))),
            Ok(version) if version == stored.revision || call.faults().on(Fault::StaleWriteAccepted) => {
                Ok(())
            }
            Ok(version) if version > stored.revision && call.faults().on(Fault::FutureWriteAccepted) => {
                Ok(())
            }
            Ok(_) if call.faults().on(Fault::ConflictAsBadRequest) => {
                Err(ApiError::bad_request("the object has been modified"))
            }
            Ok(_) => Err(ApiError::modified(ty.resource(), &call.info.name)),
        },
    }
}

/// A body with the uid of another object means that object, which is gone.
fn check_uid(call: &Call, manner: Manner, new: &Value, old: &Value) -> Result<(), ApiError> {
    let (given, uid) = (new.meta("uid"), old.meta("uid"));
    if given.is_empty() || given == uid || !manner.needs_version {
        return Ok(());
    }
    let why = format!("Precondition failed: UID in precondition: {given}, UID in object meta: {uid}");
    Err(ApiError::conflict(call.ty.resource(), &call.info.name, &why))
}

/// Makes the candidate what would be stored, or says what is wrong with it.
fn settle(call: &Call, part: Part, new: &mut Value, old: &Value) -> Result<(), ApiError> {
    let (ty, faults) = (&*call.ty, call.faults());
    restore_system_fields(new, old, faults);
    match part {
        Part::Whole => {
            if ty.has_status && !faults.on(Fault::UpdateWritesStatus) {
                new.adopt("status", old);
            }
            let given = new.get("status").cloned();
            (ty.hooks.prepare_update)(new, old);
            if let (true, Some(given)) = (faults.on(Fault::UpdateWritesStatus), given) {
                new["status"] = given;
            }
        }
        Part::Binding => {}
        Part::Status if faults.on(Fault::StatusWritesSpec) => {}
        Part::Status => {
            (ty.hooks.prepare_status_update)(new, old);
            if faults.on(Fault::LoadBalancerIpInSpec)
                && let Some(address) = new.pointer("/status/loadBalancer/ingress/0/ip").cloned()
            {
                new["spec"]["loadBalancerIP"] = address;
                new["status"]["loadBalancer"] = json!({});
            }
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
    if faults.on(Fault::DerivedDefaultsAnew)
        && ty.is_core("replicationcontrollers")
        && let Some(spec) = new["spec"].as_object_mut()
    {
        spec.remove("selector");
    }
    ty.default(new, faults);
    let mut errors = meta::validate_update(new, old);
    if faults.on(Fault::DeletionTimestampMayChange) || faults.on(Fault::DeletionCanBeUndone) {
        errors.retain(|error| !error.field.starts_with("metadata.deletion"));
    }
    let rules = MetaRules { name: ty.name_rule, qualified_finalizers: !ty.custom };
    errors.extend(meta::validate(new, rules, faults));
    errors.extend(new_finalizers(call, new, old));
    errors.extend(match part {
        Part::Status => {
            let mut errors = (ty.hooks.validate_status)(new, old);
            if ty.custom {
                let unruled = faults.on(Fault::StatusRulesIgnored);
                let faults = if unruled { faults.with(Fault::RulesIgnored) } else { faults };
                errors.extend(ty.validate_update(new, old, faults));
            }
            errors
        }
        Part::Whole | Part::Finalize => ty.validate_update(new, old, faults),
        Part::Binding => Vec::new(),
    });
    if !errors.is_empty() {
        return Err(ApiError::invalid(ty.subject(), &call.info.name, &errors));
    }
    set_generation(call, part, new, old);
    if new != old && faults.on(Fault::UidMadeAnew) {
        new.set_meta("uid", crate::object::uuid());
    }
    Ok(())
}

/// What the client sends of these is of no account.
fn restore_system_fields(new: &mut Value, old: &Value, faults: Faults) {
    for field in ["generation", "creationTimestamp", "resourceVersion", "managedFields", "selfLink"] {
        if field != "generation" || !faults.on(Fault::GenerationFromClient) {
            new.adopt_meta(field, old);
        }
    }
    // Left out they stay; another value is a mistake that validation names.
    for field in ["uid", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let undone = field != "uid" && faults.on(Fault::DeletionCanBeUndone);
        if !undone && new.metadata().is_none_or(|metadata| metadata.get(field).is_none_or(Value::is_null)) {
            new.adopt_meta(field, old);
        }
    }
}

fn new_finalizers(call: &Call, new: &Value, old: &Value) -> Option<FieldError> {
    if !old.is_deleting() || call.faults().on(Fault::FinalizersAddedWhileDeleting) {
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
    let (ty, faults) = (&*call.ty, call.faults());
    if !ty.has_generation {
        return;
    }
    let bumps = match part {
        Part::Whole | Part::Finalize | Part::Binding => {
            (ty.is_new_generation(new, old) && !faults.on(Fault::GenerationNotBumped))
                || (new != old && faults.on(Fault::GenerationAlwaysBumped))
        }
        Part::Status => new != old && faults.on(Fault::StatusBumpsGeneration),
    };
    if bumps {
        let next = if faults.on(Fault::GenerationStartsOver) { 1 } else { old.generation() + 1 };
        new.set_meta("generation", next);
        if faults.on(Fault::ObservedByServer) && new.pointer("/status/observedGeneration").is_some() {
            new["status"]["observedGeneration"] = next.into();
        }
    }
}

/// The answer to a change.
pub(super) fn answer(
    call: &Call,
    representation: crate::negotiate::Representation,
    changed: &Changed,
) -> Result<Answer, ApiError> {
    let status = http::StatusCode::OK;
    match changed {
        Changed::Stored(stored) => crate::present::stored(call, representation, status, stored),
        Changed::Dry(object) => crate::present::value(call, representation, status, object),
    }
}
