//! POST to a collection.

use http::StatusCode;
use hyper::body::Incoming;
use rand::RngExt;
use serde_json::Value;

use super::Call;
use super::admit::Admission;
use super::convert;
use super::decode::{self, Decoded};
use crate::admission::namespace_lifecycle::{self, NAMESPACES};
use crate::endpoints::commit::storage_error;
use crate::endpoints::present;
use crate::endpoints::reviews;
use crate::http::negotiate::Target;
use crate::http::query::WriteOptions;
use crate::http::respond::ApiResponse;
use crate::registry::crd::strategy as definitions;
use kubeproof_apimachinery::object::validation::metadata;
use kubeproof_apimachinery::object::{Object, timestamp, uuid};
use kubeproof_apimachinery::patch::apply::Operation;
use kubeproof_apimachinery::status::ApiError;
use kubeproof_storage::{Key, Stored, Write, WriteError};

use std::sync::Arc;

/// The fields of `metadata` that a client cannot set.
const SYSTEM_FIELDS: [&str; 7] = [
    "selfLink",
    "resourceVersion",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
    "uid",
    "creationTimestamp",
];
/// The longest prefix of a generated name without the suffix.
const MAX_PREFIX: usize = 58;
const SUFFIX: usize = 5;
const SUFFIX_ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// The number of attempts to generate a free name.
const ATTEMPTS: usize = 8;

pub(super) async fn handle(call: &Call, body: &mut Incoming) -> Result<ApiResponse, ApiError> {
    let stored = call.ty.allows("get");
    let representation = call.accept(if stored { Target::Object } else { Target::Document })?;
    let options = WriteOptions::parse(&call.query, "CreateOptions")?;
    let bytes = call.json_body(body).await?;
    let validation = call.validation(options.validation);
    let Decoded { object, warnings } = decode::decode(&call.ty, &bytes, validation)?;
    if !stored {
        let mut object = object;
        reviews::prepare(call, &mut object)?;
        let admission = Admission::create(call, options.dry_run);
        admission.mutate(&mut object, None).await?;
        reviews::validate(call, &object)?;
        admission.validate(&object, None).await?;
        let review = reviews::complete(call, object)?;
        return Ok(
            present::document(representation, StatusCode::CREATED, &review).warnings(&warnings)
        );
    }
    let status = StatusCode::CREATED;
    let created = create(call, object, Origin::Created, options.dry_run).await?;
    let response = match created {
        Created::Stored(object) => present::stored(call, representation, status, &object).await?,
        Created::Dry(object) => present::value(call, representation, status, &object)?,
    };
    Ok(response.warnings(&warnings))
}

/// The owner of the fields of a new object.
#[derive(Clone, Copy, Debug)]
pub(super) enum Origin<'a> {
    /// The client owns all fields.
    Created,
    /// The client owns the fields of this configuration.
    Applied(&'a Value),
}

/// The result of a creation.
pub(super) enum Created {
    Stored(Arc<Stored>),
    /// A dry run: the object that would be stored.
    Dry(Value),
}

/// Creates a decoded object.
pub(super) async fn create(
    call: &Call,
    mut object: Value,
    origin: Origin<'_>,
    dry_run: bool,
) -> Result<Created, ApiError> {
    let ty = &*call.ty;
    place(call, &mut object)?;
    let version = object.meta("resourceVersion");
    if !matches!(version, "" | "0") && !dry_run {
        return Err(ApiError::bad_request(
            "resourceVersion should not be set on objects to be created",
        ));
    }
    let prefix = object.meta("generateName").to_owned();
    let generates = !prefix.is_empty() && object.meta("name").is_empty();
    let generate = generates.then_some(prefix);
    remove_system_fields(&mut object);
    let admission = Admission::create(call, dry_run);
    let owners = mutate(call, &admission, &mut object, origin).await?;
    begin_life(&mut object);
    ty.prepare_create(&mut object);
    ty.strategy.set_user(&mut object, &call.user);
    let mut attempts = 0;
    loop {
        attempts += 1;
        if let Some(prefix) = &generate {
            object.set_meta("name", generated_name(prefix));
        }
        ty.default(&mut object);
        validate(call, &object)?;
        match &owners {
            Some(owners) => object.set_meta("managedFields", owners.clone()),
            None => own(call, &mut object, origin)?,
        }
        let unallocated = call.api.store.is_shared().then(|| object.clone());
        ty.strategy.begin_create(call.api.context(), &mut object, dry_run)?;
        if let Err(error) = admission.validate(&object, None).await {
            if !dry_run {
                ty.strategy.cancel_create(&object);
            }
            return Err(error);
        }
        let committed = commit(call, &object, dry_run).await;
        if !dry_run && committed.is_err() {
            ty.strategy.cancel_create(&object);
        }
        match committed {
            Err(CommitError::Taken { .. }) if generate.is_some() && attempts < ATTEMPTS => {}
            Err(CommitError::Claimed) => object = unallocated.unwrap_or(object),
            Err(CommitError::Taken { deleting }) => {
                return Err(taken(call, object.meta("name"), deleting));
            }
            Err(CommitError::Other(error)) => return Err(error),
            Ok(Some(stored)) => {
                ty.strategy.after_create(call.api.context(), &object);
                return Ok(Created::Stored(stored));
            }
            Ok(None) => return Ok(Created::Dry(object)),
        }
    }
}

/// Runs the mutating phase of admission. If it can change the object, the client owns the fields
/// before the changes only, and this function returns the owners.
async fn mutate(
    call: &Call,
    admission: &Admission<'_>,
    object: &mut Value,
    origin: Origin<'_>,
) -> Result<Option<Value>, ApiError> {
    if !admission.mutates(None) {
        admission.mutate(object, None).await?;
        return Ok(None);
    }
    let ty = &*call.ty;
    let mut sent = object.clone();
    begin_life(&mut sent);
    ty.prepare_create(&mut sent);
    ty.default(&mut sent);
    own(call, &mut sent, origin)?;
    let owners = sent.metadata().and_then(|metadata| metadata.get("managedFields")).cloned();
    ty.default(object);
    if let Some(owners) = &owners {
        object.set_meta("managedFields", owners.clone());
    }
    admission.mutate(object, None).await?;
    place(call, object)?;
    Ok(owners)
}

/// Records the owner of the fields of a new object.
fn own(call: &Call, object: &mut Value, origin: Origin<'_>) -> Result<(), ApiError> {
    match origin {
        Origin::Created => call.ownership(Operation::Update).track(None, object, None),
        Origin::Applied(config) => call.ownership(Operation::Apply).claim(config, object)?,
    }
    Ok(())
}

/// Rejects a custom resource whose definition is being deleted. Otherwise, a client could create it
/// after the deletion of the others.
fn check_definition(call: &Call, write: &Write<'_>, name: &str) -> Result<(), ApiError> {
    if !call.ty.custom {
        return Ok(());
    }
    let definition = Key::new("", format!("{}.{}", call.ty.plural, call.ty.group));
    let found = write.get(definitions::TABLE, &definition);
    if found.is_some_and(|found| found.facts.deleting) {
        let what = "create not allowed while custom resource definition is terminating";
        return Err(ApiError::forbidden(call.ty.resource(), name, what));
    }
    Ok(())
}

enum CommitError {
    Taken {
        deleting: bool,
    },
    /// Another server has allocated the same in the meantime.
    Claimed,
    Other(ApiError),
}

async fn commit(
    call: &Call,
    object: &Value,
    dry_run: bool,
) -> Result<Option<Arc<Stored>>, CommitError> {
    let draft = convert::draft(&call.api, &call.ty, object).await.map_err(CommitError::Other)?;
    let change = |write: &mut Write<'_>| {
        // The namespace may have been deleted since the first check.
        let namespace = write.get(NAMESPACES, &Key::new("", call.info.namespace.as_str()));
        namespace_lifecycle::check(
            (&call.ty, &call.info),
            namespace,
            object.meta("name"),
            call.api.disabled_capabilities,
        )
        .map_err(CommitError::Other)?;
        check_definition(call, write, object.meta("name")).map_err(CommitError::Other)?;
        match write.get(&call.ty.table, &draft.key) {
            Some(existing) => Err(CommitError::Taken { deleting: existing.facts.deleting }),
            None if dry_run => Ok(()),
            None => {
                write.create(&call.ty.table, &draft);
                Ok(())
            }
        }
    };
    let written = call.api.store.write(change).await;
    let (decision, object) = written.map_err(|error| match error {
        WriteError::Claimed(_) => CommitError::Claimed,
        error => CommitError::Other(storage_error(&error)),
    })?;
    decision.map(|()| object)
}

fn taken(call: &Call, name: &str, deleting: bool) -> ApiError {
    let resource = call.ty.resource();
    ApiError::already_exists(resource, name, deleting)
}

/// Sets the namespace to that of the URL if the body has none.
pub(super) fn place(call: &Call, object: &mut Value) -> Result<(), ApiError> {
    if !call.ty.namespaced {
        object.unset_meta("namespace");
        return Ok(());
    }
    let (asked, given) = (call.info.namespace.as_str(), object.meta("namespace"));
    if !given.is_empty() && given != asked {
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    object.set_meta("namespace", asked);
    Ok(())
}

fn remove_system_fields(object: &mut Value) {
    let metadata = object.metadata_mut();
    for field in SYSTEM_FIELDS {
        metadata.remove(field);
    }
}

/// Sets the fields that only the server sets.
fn begin_life(object: &mut Value) {
    remove_system_fields(object);
    object.set_meta("uid", uuid());
    object.set_meta("creationTimestamp", timestamp(0));
}

/// Rejects an invalid object, and warns about a valid one.
fn validate(call: &Call, object: &Value) -> Result<(), ApiError> {
    let ty = &*call.ty;
    let mut errors = metadata::validate(object, ty.meta_rules());
    errors.extend(ty.validate(object));
    if !errors.is_empty() {
        return Err(ApiError::invalid(ty.subject(), object.meta("name"), &errors));
    }
    for warning in (ty.hooks.warn)(object, None) {
        call.record.warn(warning);
    }
    Ok(())
}

/// Returns the prefix, shortened so that the name fits into a label, with a random suffix.
fn generated_name(prefix: &str) -> String {
    let end = prefix
        .char_indices()
        .map(|(at, c)| at + c.len_utf8())
        .take_while(|end| *end <= MAX_PREFIX)
        .last();
    let kept = end.unwrap_or_default();
    let mut name = prefix[..kept].to_owned();
    let mut rng = rand::rng();
    name.extend(
        (0..SUFFIX).map(|_| char::from(SUFFIX_ALPHABET[rng.random_range(..SUFFIX_ALPHABET.len())])),
    );
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generated_name_fits_into_a_label_whatever_the_prefix() {
        for prefix in ["a-", &"p".repeat(58), &"p".repeat(100), &"ü".repeat(40)] {
            let name = generated_name(prefix);
            assert!(name.len() <= 63, "{name}");
            let kept = name.len() - SUFFIX;
            assert!(prefix.starts_with(&name[..kept]), "{name} does not begin like {prefix}");
        }
    }
}
