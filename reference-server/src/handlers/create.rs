//! POST to a collection.

use http::StatusCode;
use hyper::body::Incoming;
use rand::RngExt;
use serde_json::Value;

use super::{Call, crds, grants};
use crate::apply::Operation;
use crate::body::{self, Decoded};
use crate::builtin::meta::{self, MetaRules};
use crate::encode;
use crate::negotiate::Target;
use crate::object::{Object, timestamp, uuid};
use crate::present;
use crate::query::WriteOptions;
use crate::respond::Answer;
use crate::reviews;
use crate::status::ApiError;
use crate::store::{Key, Stored};
use crate::{Fault, Faults};
use std::sync::Arc;

/// The table of the namespaces.
const NAMESPACES: &str = "namespaces";
/// The longest prefix of a generated name, and what is put behind it.
const MAX_PREFIX: usize = 58;
const SUFFIX: usize = 5;
const SUFFIX_ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// How often another name is generated when one is taken.
const ATTEMPTS: usize = 8;

pub(super) async fn handle(call: &Call, body: &mut Incoming) -> Result<Answer, ApiError> {
    let stored = call.ty.allows("get");
    let representation = call.accept(if stored { Target::Object } else { Target::Document });
    let late = stored && call.faults().on(Fault::NotAcceptableAfterWrite);
    let representation = if late { representation } else { Ok(representation?) };
    let options = match WriteOptions::parse(&call.query, "CreateOptions", call.faults()) {
        Err(_) if call.faults().on(Fault::DryRunValuesUnchecked) => WriteOptions::default(),
        options => options?,
    };
    let bytes = call.json_body(body).await?;
    let Decoded { object, warnings } = body::decode(&call.ty, &bytes, options.validation, call.faults())?;
    if !stored {
        let review = reviews::answer(call, object)?;
        return Ok(present::document(representation?, StatusCode::CREATED, &review).warnings(&warnings));
    }
    let status = if call.faults().on(Fault::CreateAnswersOk) { StatusCode::OK } else { StatusCode::CREATED };
    let sent = call.faults().on(Fault::CreateAnswersRequest).then(|| object.clone());
    let lost = call.faults().on(Fault::CreateStoresNothing) && call.ty.namespaced && !call.ty.is_core("pods");
    let created = create(call, object, Origin::Created, options.dry_run || lost)?;
    let representation = representation?;
    let answer = match (created, sent) {
        (Created::Stored(object), Some(mut sent)) => {
            sent.adopt("metadata", &call.ty.load(&object, call.faults()));
            present::value(call, representation, status, &sent)?
        }
        (Created::Stored(object), None) => present::stored(call, representation, status, &object)?,
        (Created::Dry(object), _) => present::value(call, representation, status, &object)?,
    };
    Ok(answer.warnings(&warnings))
}

/// Whose the fields of a new object are.
#[derive(Clone, Copy, Debug)]
pub(super) enum Origin<'a> {
    /// All of them are the client's.
    Created,
    /// The client's are those of this configuration.
    Applied(&'a Value),
}

/// What came of it.
pub(super) enum Created {
    Stored(Arc<Stored>),
    /// A dry run: the object as it would have been.
    Dry(Value),
}

/// Creates a decoded object.
pub(super) fn create(
    call: &Call,
    mut object: Value,
    origin: Origin<'_>,
    dry_run: bool,
) -> Result<Created, ApiError> {
    let (ty, faults) = (&*call.ty, call.faults());
    place(call, &mut object)?;
    let version = object.meta("resourceVersion");
    if !matches!(version, "" | "0") && !dry_run && !faults.on(Fault::CreateWithVersionAccepted) {
        return Err(ApiError::bad_request("resourceVersion should not be set on objects to be created"));
    }
    if faults.on(Fault::GenerateNamePrefixMended) && !object.meta("generateName").is_empty() {
        object.set_meta("generateName", mended(object.meta("generateName")));
    }
    let prefix = object.meta("generateName").to_owned();
    let generates = !prefix.is_empty()
        && (object.meta("name").is_empty() || faults.on(Fault::GenerateNameWins))
        || (object.meta("name").is_empty() && faults.on(Fault::NamesMadeUp));
    let generate = generates.then_some(prefix);
    let namespace = call.api.store.get(NAMESPACES, &Key::new("", call.info.namespace.as_str()));
    require_namespace(call, namespace.as_ref(), object.meta("name"))?;

    begin_life(&mut object, faults);
    ty.prepare_create(&mut object, faults);
    if ty.custom {
        bend_values(&mut object["spec"], faults);
    }
    let mut attempts = 0;
    loop {
        attempts += 1;
        if let Some(prefix) = &generate {
            object.set_meta("name", generated_name(prefix, faults));
        }
        ty.default(&mut object, faults);
        if let Err(error) = validate(call, &object) {
            if ty.custom && !dry_run && faults.on(Fault::InvalidObjectsFlash) {
                flash(call, &object);
            }
            return Err(error);
        }
        grants::check(call, &object, None)?;
        match origin {
            Origin::Created => call.ownership(Operation::Update).track(None, &mut object, None),
            Origin::Applied(config) => call.ownership(Operation::Apply).claim(config, &mut object)?,
        }
        if ty.table == crds::TABLE {
            crds::accept(&call.api, &mut object)?;
        }
        let service = ty.is_core("services");
        if service {
            allocate_address(call, &mut object, dry_run)?;
        }
        let committed = commit(call, &object, dry_run);
        if service && !dry_run && committed.is_err() {
            call.api.addresses().release(&object);
        }
        match committed {
            Err(Refusal::Taken { .. }) if generate.is_some() && faults.on(Fault::GeneratedNamesRunOut) => {
                return Err(ApiError::internal("no name is left"));
            }
            Err(Refusal::Taken { .. }) if generate.is_some() && attempts < ATTEMPTS => {}
            Err(Refusal::Taken { deleting }) => return Err(taken(call, object.meta("name"), deleting)),
            Err(Refusal::Other(error)) => return Err(error),
            Ok(Some(stored)) => {
                if ty.table == crds::TABLE {
                    crds::serve(&call.api, &object);
                }
                return Ok(Created::Stored(stored));
            }
            Ok(None) => return Ok(Created::Dry(object)),
        }
    }
}

/// Stores an object and takes it back.
fn flash(call: &Call, object: &Value) {
    let draft = encode::draft(&call.ty, object);
    let key = draft.key.clone();
    call.api.store.write(|write| write.put(&call.ty.table, draft));
    call.api.store.write(|write| write.delete(&call.ty.table, &key));
}

/// What the faults make of the values of a custom resource.
pub(super) fn bend_values(value: &mut Value, faults: Faults) {
    match value {
        Value::Array(items) => {
            items.retain(|item| !(item.is_null() && faults.on(Fault::NullItemsDropped)));
            for item in items {
                bend_values(item, faults);
            }
        }
        Value::Object(fields) => {
            fields.retain(|_, field| {
                let empty_list = field.as_array().is_some_and(Vec::is_empty);
                let lost = (empty_list && faults.on(Fault::EmptyListsDropped))
                    || (field == "" && faults.on(Fault::ZeroesOmitted));
                !lost
            });
            fields.values_mut().for_each(|field| bend_values(field, faults));
        }
        Value::Number(number) if faults.on(Fault::LargeIntegersRounded) => {
            if let Some(integer) = number.as_i64() {
                *value = round(integer).into();
            }
        }
        _ => {}
    }
}

#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "that is the fault")]
fn round(integer: i64) -> i64 {
    integer as f64 as i64
}

/// Gives a service the address that it wants, or one that is free.
pub(super) fn allocate_address(call: &Call, service: &mut Value, dry_run: bool) -> Result<(), ApiError> {
    if call.faults().on(Fault::ClusterIpUnallocated) && service.pointer("/spec/clusterIP").is_none() {
        return Ok(());
    }
    let mut addresses = call.api.addresses();
    let given = if dry_run { addresses.propose(service) } else { addresses.allocate(service) };
    if call.faults().on(Fault::ClusterIpUnchecked) {
        return Ok(());
    }
    given.map_err(|error| ApiError::invalid(call.ty.subject(), service.meta("name"), &[error]))
}

/// Why nothing was stored.
enum Refusal {
    Taken { deleting: bool },
    Other(ApiError),
}

fn commit(call: &Call, object: &Value, dry_run: bool) -> Result<Option<Arc<Stored>>, Refusal> {
    let faults = call.faults();
    let draft = encode::draft(&call.ty, object);
    let dry_run = dry_run && !faults.on(Fault::DryRunPersists);
    if faults.on(Fault::NamesTakenEverywhere) {
        let (everywhere, _) = call.api.store.snapshot(&call.ty.table, None);
        if everywhere.iter().any(|other| other.key.name == draft.key.name) {
            return Err(Refusal::Taken { deleting: false });
        }
    }
    call.api.store.write(|write| {
        // Checked again here: the namespace may have gone since.
        let namespace = write.get(NAMESPACES, &Key::new("", call.info.namespace.as_str()));
        require_namespace(call, namespace, object.meta("name")).map_err(Refusal::Other)?;
        let overwrites = faults.on(Fault::CreateOverwrites)
            || (faults.on(Fault::GeneratedNamesCollide) && !object.meta("generateName").is_empty());
        match write.get(&call.ty.table, &draft.key) {
            _ if dry_run && faults.on(Fault::DryRunUnchecked) => Ok(None),
            Some(existing) if !overwrites => Err(Refusal::Taken { deleting: existing.facts.deleting }),
            _ if dry_run => Ok(None),
            _ => Ok(Some(write.put(&call.ty.table, draft))),
        }
    })
}

fn taken(call: &Call, name: &str, deleting: bool) -> ApiError {
    let resource = call.ty.resource();
    if call.faults().on(Fault::ConflictAsCreated) {
        return ApiError::modified(resource, name);
    }
    let mut error = ApiError::already_exists(resource, name, deleting);
    if call.faults().on(Fault::AlreadyExistsAsBadRequest) {
        error.code = StatusCode::BAD_REQUEST;
    }
    error
}

/// Namespace of the body: that of the URL, given or not.
pub(super) fn place(call: &Call, object: &mut Value) -> Result<(), ApiError> {
    if !call.ty.namespaced {
        object.unset_meta("namespace");
        return Ok(());
    }
    let (asked, given) = (call.info.namespace.as_str(), object.meta("namespace"));
    if !given.is_empty() && given != asked && !call.faults().on(Fault::NamespaceMismatchAccepted) {
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    object.set_meta("namespace", asked);
    Ok(())
}

/// The namespace must be there, and not on its way out.
fn require_namespace(call: &Call, found: Option<&Arc<Stored>>, name: &str) -> Result<(), ApiError> {
    let namespace = call.info.namespace.as_str();
    if !call.ty.namespaced {
        return Ok(());
    }
    match found {
        None if !call.api.cuts.namespaces_exist() || call.faults().on(Fault::MissingNamespaceAccepted) => {
            Ok(())
        }
        None => Err(ApiError::not_found(crate::status::Subject { group: "", word: NAMESPACES }, namespace)),
        Some(found) if found.facts.deleting && !call.faults().on(Fault::TerminatingNamespaceAccepts) => {
            Err(ApiError::namespace_terminating(call.ty.resource(), name, namespace))
        }
        Some(_) => Ok(()),
    }
}

/// Sets what only the server sets.
fn begin_life(object: &mut Value, faults: Faults) {
    for field in
        ["selfLink", "resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds", "managedFields"]
    {
        if field != "deletionTimestamp" || !faults.on(Fault::DeletionMarkKeptOnCreate) {
            object.unset_meta(field);
        }
    }
    bend_maps(object, faults);
    if faults.on(Fault::UidFromClient) && !object.meta("uid").is_empty() {
        return;
    }
    let uid = if faults.on(Fault::UidReused) {
        uid_of(&object.key())
    } else if faults.on(Fault::UidFromClock) {
        uid_of(&Key::new("", timestamp(0)))
    } else if faults.on(Fault::UidWithoutDashes) {
        uuid().replace('-', "")
    } else {
        uuid()
    };
    object.set_meta("uid", uid);
    let now = timestamp(0);
    let local = faults.on(Fault::CreationTimeLocal);
    object.set_meta("creationTimestamp", if local { now.replace('T', " ").replace('Z', "") } else { now });
}

/// What faults do to labels and annotations.
fn bend_maps(object: &mut Value, faults: Faults) {
    if faults.on(Fault::EmptyLabelsDropped)
        && let Some(labels) = object.pointer_mut("/metadata/labels").and_then(Value::as_object_mut)
    {
        labels.retain(|_, value| value != "");
    }
    if faults.on(Fault::AnnotationsTrimmed)
        && let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut)
    {
        for value in annotations.values_mut() {
            *value = value.as_str().unwrap_or_default().trim().into();
        }
    }
}

/// What a fault takes for unique.
fn uid_of(key: &Key) -> String {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    let hash = format!("{:016x}", hasher.finish());
    format!("{}-{}-4{}-8000-000000000000", &hash[..8], &hash[8..12], &hash[13..16])
}

fn validate(call: &Call, object: &Value) -> Result<(), ApiError> {
    let (ty, faults) = (&*call.ty, call.faults());
    let rules = MetaRules { name: ty.name_rule, qualified_finalizers: !ty.custom };
    let mut errors = meta::validate(object, rules, faults);
    errors.extend(ty.validate(object, faults));
    if errors.is_empty() {
        Ok(())
    } else {
        Err(ApiError::invalid(ty.subject(), object.meta("name"), &errors))
    }
}

/// The prefix, cut so that the whole fits into a label, and a random end.
fn generated_name(prefix: &str, faults: Faults) -> String {
    let end =
        prefix.char_indices().map(|(at, c)| at + c.len_utf8()).take_while(|end| *end <= MAX_PREFIX).last();
    if faults.on(Fault::GenerateNameAsItIs) {
        return prefix.trim_end_matches(['-', '.']).to_owned();
    }
    if faults.on(Fault::GenerateNameCutAtEnd) && prefix.len() > MAX_PREFIX + SUFFIX {
        return prefix.chars().take(MAX_PREFIX + SUFFIX).collect();
    }
    let kept = if faults.on(Fault::GenerateNameIgnoresPrefix) { 0 } else { end.unwrap_or_default() };
    let mut name = prefix[..kept].to_owned();
    let mut rng = rand::rng();
    let few = faults.on(Fault::GeneratedNamesCollide) || faults.on(Fault::GeneratedNamesRunOut);
    let letters = if few { 1 } else { SUFFIX };
    name.extend((0..letters).map(|_| char::from(SUFFIX_ALPHABET[rng.random_range(..SUFFIX_ALPHABET.len())])));
    name
}

/// A prefix of which a fault has made the beginning of a name.
fn mended(prefix: &str) -> String {
    let lawful = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let mended: String = prefix.chars().map(lawful).collect();
    mended.trim_start_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generated_name_fits_into_a_label_whatever_the_prefix() {
        for prefix in ["a-", &"p".repeat(58), &"p".repeat(100), &"ü".repeat(40)] {
            let name = generated_name(prefix, Faults::none());
            assert!(name.len() <= 63, "{name}");
            let kept = name.len() - SUFFIX;
            assert!(prefix.starts_with(&name[..kept]), "{name} does not begin like {prefix}");
        }
    }
}
