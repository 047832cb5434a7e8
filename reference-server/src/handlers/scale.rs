//! The scale subresource: the number of replicas of any resource, in the one form that autoscalers know.

use http::StatusCode;
use hyper::body::Incoming;
use serde_json::{Map, Value, json};

use super::modify::{self, Changed, Manner};
use super::update::Part;
use super::{Call, apply, patch};
use crate::builtin::Scale;
use crate::json as decoder;
use crate::negotiate::{Representation, Target};
use crate::object::Object;
use crate::present;
use crate::query::WriteOptions;
use crate::respond::Answer;
use crate::schema::{FieldError, Schema};
use crate::selector::LabelSelector;
use crate::status::{ApiError, Subject};
use crate::{Fault, Faults, body};

const API_VERSION: &str = "autoscaling/v1";

/// None when the subresource does not know the method.
pub(super) async fn handle(
    call: &Call,
    method: &str,
    body: &mut Incoming,
) -> Option<Result<Answer, ApiError>> {
    let scale = call.ty.scale.as_ref()?;
    match method {
        "GET" => Some(get(call, scale)),
        "PUT" => Some(update(call, scale, body).await),
        "PATCH"
            if call.ty.patch_types.contains(&apply::MEDIA_TYPE)
                && body::media_type(&call.headers) == apply::MEDIA_TYPE
                && !call.faults().on(Fault::ScaleNotApplied) =>
        {
            Some(apply_scale(call, scale, body).await)
        }
        "PATCH" => Some(change(call, scale, body).await),
        _ => None,
    }
}

fn get(call: &Call, scale: &Scale) -> Result<Answer, ApiError> {
    let representation = call.accept(Target::Document)?;
    let stored = call.api.store.get(&call.ty.table, &call.key()).ok_or_else(|| call.not_found())?;
    let object = call.ty.load(&stored, call.faults());
    Ok(present::document(representation, StatusCode::OK, &show(scale, &object, call.faults())))
}

async fn update(call: &Call, scale: &Scale, body: &mut Incoming) -> Result<Answer, ApiError> {
    let representation = call.accept(Target::Document)?;
    let options = WriteOptions::parse(&call.query, "UpdateOptions", call.faults())?;
    let bytes = call.json_body(body).await?;
    let wanted = decoder::decode(&bytes)?.value;
    let manner = Manner { part: Part::Whole, dry_run: options.dry_run, needs_version: false, owned: false };
    let changed = modify::modify(call, manner, |old| {
        check(call, &wanted)?;
        Ok(written(call, scale, old, &wanted))
    })
    .await?;
    Ok(answer(call, representation, scale, &changed))
}

async fn change(call: &Call, scale: &Scale, body: &mut Incoming) -> Result<Answer, ApiError> {
    let representation = call.accept(Target::Document)?;
    let patch = patch::read(call, body).await?;
    let options = WriteOptions::parse(&call.query, "PatchOptions", call.faults())?;
    let manner = Manner { part: Part::Whole, dry_run: options.dry_run, needs_version: false, owned: false };
    let changed = modify::modify(call, manner, |old| {
        let wanted = patch.apply(&show(scale, old, call.faults()), &Schema::default(), call.faults())?;
        check(call, &wanted)?;
        Ok(written(call, scale, old, &wanted))
    })
    .await?;
    Ok(answer(call, representation, scale, &changed))
}

/// An apply of a scale is one of the object whose replicas it says: they share the owners of that field.
async fn apply_scale(call: &Call, scale: &Scale, body: &mut Incoming) -> Result<Answer, ApiError> {
    let representation = call.accept(Target::Document)?;
    let bytes = call.body(body).await?;
    let options = WriteOptions::of_apply(&call.query, call.faults())?;
    let apply::Configuration { config: wanted, warnings } =
        apply::read(&bytes, options.validation, call.faults())?;
    check(call, &wanted)?;
    let mut config = json!({ "apiVersion": call.ty.api_version(), "kind": call.ty.kind, "metadata": { "name": call.info.name } });
    for field in ["name", "namespace", "uid", "resourceVersion"] {
        if !wanted.meta(field).is_empty() {
            config.adopt_meta(field, &wanted);
        }
    }
    if let Some(replicas) = wanted.pointer("/spec/replicas").filter(|replicas| !replicas.is_null()) {
        set(&mut config, &scale.spec_replicas, replicas.clone());
    }
    let force = call.query.flag("force");
    let owned = !call.faults().on(Fault::ScaleApplyOwnsNothing);
    let manner = Manner { part: Part::Whole, dry_run: options.dry_run, needs_version: false, owned };
    let changed = modify::modify(call, manner, |live| {
        if owned { apply::apply(call, live, &config, force) } else { Ok(written(call, scale, live, &wanted)) }
    })
    .await?;
    Ok(answer(call, representation, scale, &changed).warnings(&warnings))
}

fn answer(call: &Call, representation: Representation, scale: &Scale, changed: &Changed) -> Answer {
    let object = match changed {
        Changed::Stored(stored) => call.ty.load(stored, call.faults()),
        Changed::Dry(object) => object.clone(),
    };
    present::document(representation, StatusCode::OK, &show(scale, &object, call.faults()))
}

/// The scale of an object.
fn show(scale: &Scale, object: &Value, faults: Faults) -> Value {
    let mut metadata = Map::new();
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if !object.meta(field).is_empty() {
            metadata.insert(field.to_owned(), object.meta(field).into());
        }
    }
    if faults.on(Fault::ScaleWithoutVersion) {
        metadata.remove("resourceVersion");
    }
    if faults.on(Fault::ScaleVersionOfItsOwn) {
        metadata.insert("resourceVersion".to_owned(), object.generation().to_string().into());
    }
    let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64).unwrap_or_default();
    let mut status = json!({ "replicas": number(&scale.status_replicas) });
    match scale.selector.as_ref().and_then(|pointer| object.pointer(pointer)) {
        Some(Value::String(text)) => status["selector"] = text.as_str().into(),
        Some(selector @ Value::Object(_)) => {
            if let Ok(selector) = LabelSelector::from_object(selector) {
                status["selector"] = selector.to_string().into();
            }
        }
        _ => {}
    }
    json!({
        "kind": "Scale",
        "apiVersion": API_VERSION,
        "metadata": metadata,
        "spec": { "replicas": number(&scale.spec_replicas) },
        "status": status,
    })
}

fn check(call: &Call, wanted: &Value) -> Result<(), ApiError> {
    let text = |field: &str| wanted.get(field).and_then(Value::as_str).unwrap_or_default();
    if !matches!(text("kind"), "" | "Scale") || !matches!(text("apiVersion"), "" | API_VERSION) {
        return Err(ApiError::bad_request(format!(
            "{} {} cannot be handled as a Scale of {API_VERSION}",
            text("apiVersion"),
            text("kind")
        )));
    }
    let replicas = wanted.pointer("/spec/replicas");
    let refuse = |subject: Subject<'_>, field: &str, why: &str| {
        let error = FieldError::invalid(field, replicas.unwrap_or(&Value::Null), why);
        Err(ApiError::invalid(subject, &call.info.name, &[error]))
    };
    match replicas.map(|replicas| (replicas, replicas.as_i64())) {
        None | Some((Value::Null, _)) => Ok(()),
        Some((_, Some(count))) if count < 0 && call.faults().on(Fault::ScaleNegativeIsNone) => Ok(()),
        Some((_, Some(count))) if count < 0 => {
            let subject = Subject { group: "autoscaling", word: "Scale" };
            refuse(subject, "spec.replicas", "must be greater than or equal to 0")
        }
        Some((_, Some(count))) if i32::try_from(count).is_ok() => Ok(()),
        Some(_) => Err(ApiError::bad_request("spec.replicas of a Scale is a whole number of 32 bits")),
    }
}

/// The object with the replicas, and the version, of its scale.
fn written(call: &Call, scale: &Scale, old: &Value, wanted: &Value) -> Value {
    let mut new = old.clone();
    for field in ["name", "namespace", "uid", "resourceVersion"] {
        if field != "resourceVersion" && wanted.meta(field).is_empty() {
            continue;
        }
        new.adopt_meta(field, wanted);
    }
    let replicas = wanted.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or_default();
    let replicas = if call.faults().on(Fault::ScaleNegativeIsNone) { replicas.max(0) } else { replicas };
    if !call.faults().on(Fault::ScaleNotWritten) {
        set(&mut new, &scale.spec_replicas, replicas.into());
    }
    new
}

/// Puts a value where a JSON pointer of names leads, and makes the objects on the way.
fn set(object: &mut Value, pointer: &str, value: Value) {
    let mut place = object;
    for name in pointer.split('/').skip(1) {
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        place = &mut place[name];
    }
    *place = value;
}
