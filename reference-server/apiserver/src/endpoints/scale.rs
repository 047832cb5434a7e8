//! The scale subresource: the number of replicas of any resource, in one form for autoscalers.

use http::StatusCode;
use hyper::body::Incoming;
use serde_json::{Map, Value, json};

use super::admit::Admission;
use super::decode::{self, Decoded};
use super::modify::{self, Changed, UpdateOptions, View};
use super::update::Part;
use super::{Call, apply, convert, patch};
use crate::endpoints::present;
use crate::http::body;
use crate::http::negotiate::{Representation, Target};
use crate::http::query::WriteOptions;
use crate::http::respond::ApiResponse;
use crate::registry::builtin::{Scale, body_schema};
use kubeproof_apimachinery::object::Object;
use kubeproof_apimachinery::schema::{FieldError, Schema};
use kubeproof_apimachinery::selector::LabelSelector;
use kubeproof_apimachinery::status::{ApiError, Subject};

const API_VERSION: &str = "autoscaling/v1";

/// Returns none if the subresource does not support the method.
pub(super) async fn handle(
    call: &Call,
    method: &str,
    body: &mut Incoming,
) -> Option<Result<ApiResponse, ApiError>> {
    let scale = call.ty.scale.as_ref()?;
    match method {
        "GET" => Some(get(call, scale).await),
        "PUT" => Some(update(call, scale, body).await),
        "PATCH"
            if call.ty.patch_types.contains(&apply::MEDIA_TYPE)
                && body::media_type(&call.headers) == apply::MEDIA_TYPE =>
        {
            Some(apply_scale(call, scale, body).await)
        }
        "PATCH" => Some(change(call, scale, body).await),
        _ => None,
    }
}

async fn get(call: &Call, scale: &Scale) -> Result<ApiResponse, ApiError> {
    let representation = call.accept(Target::Document)?;
    let stored = call.api.store.get(&call.ty.table, &call.key()).ok_or_else(|| call.not_found())?;
    let object = convert::load(&call.api, &call.ty, &stored).await?;
    Ok(present::document(representation, StatusCode::OK, &show(scale, &object)))
}

async fn update(call: &Call, scale: &Scale, body: &mut Incoming) -> Result<ApiResponse, ApiError> {
    let representation = call.accept(Target::Document)?;
    let options = WriteOptions::parse(&call.query, "UpdateOptions")?;
    let bytes = call.json_body(body).await?;
    let validation = call.validation(options.validation);
    let Decoded { object: mut wanted, warnings } =
        decode::decode_body(&[API_VERSION], "Scale", &bytes, validation)?;
    modify::check_identity(call, &mut wanted)?;
    let admission = Admission::update(call, options.dry_run);
    let (scale_of, write) = (shown(scale), replicated(scale));
    let change = UpdateOptions {
        view: Some(View { show: &scale_of, write: &write }),
        ..UpdateOptions::new(Part::Whole, options.dry_run, Some(&admission))
    };
    let changed = modify::modify(call, change, |old| {
        check(call, &wanted)?;
        Ok(written(scale, old, &wanted))
    })
    .await?;
    Ok(respond(call, representation, scale, &changed).await?.warnings(&warnings))
}

async fn change(call: &Call, scale: &Scale, body: &mut Incoming) -> Result<ApiResponse, ApiError> {
    let representation = call.accept(Target::Document)?;
    let patch = patch::read(call, body).await?;
    let options = WriteOptions::parse(&call.query, "PatchOptions")?;
    let admission = Admission::update(call, options.dry_run);
    let (scale_of, write) = (shown(scale), replicated(scale));
    let change = UpdateOptions {
        view: Some(View { show: &scale_of, write: &write }),
        ..UpdateOptions::new(Part::Whole, options.dry_run, Some(&admission))
    };
    let mut warnings = Vec::new();
    let changed = modify::modify(call, change, |old| {
        let patched = patch.apply(&show(scale, old), &Schema::default())?;
        let Decoded { object: wanted, warnings: complaints } = decode::recast_body(
            API_VERSION,
            "Scale",
            patched,
            &patch.duplicates,
            options.validation,
        )?;
        warnings = complaints;
        check(call, &wanted)?;
        Ok(written(scale, old, &wanted))
    })
    .await?;
    Ok(respond(call, representation, scale, &changed).await?.warnings(&warnings))
}

/// Applies a scale as an apply of the object, so that both share the owners of the replicas field.
async fn apply_scale(
    call: &Call,
    scale: &Scale,
    body: &mut Incoming,
) -> Result<ApiResponse, ApiError> {
    let representation = call.accept(Target::Document)?;
    let bytes = call.body(body).await?;
    let options = WriteOptions::of_apply(&call.query)?;
    let apply::Configuration { config: wanted, warnings } =
        apply::read(&bytes, options.validation)?;
    let text = |field: &str| wanted[field].as_str().unwrap_or_default();
    if (text("apiVersion"), text("kind")) != (API_VERSION, "Scale") {
        let why = format!("invalid object type: {}, Kind={}", text("apiVersion"), text("kind"));
        return Err(ApiError::bad_request(why));
    }
    apply::typed(&wanted, &body_schema("autoscaling", "v1", "Scale"))?;
    check(call, &wanted)?;
    let mut config = json!({
        "apiVersion": call.ty.api_version(), "kind": call.ty.kind,
        "metadata": { "name": call.info.name },
    });
    for field in ["name", "namespace", "uid", "resourceVersion"] {
        if !wanted.meta(field).is_empty() {
            config.adopt_meta(field, &wanted);
        }
    }
    if let Some(replicas) = wanted.pointer("/spec/replicas").filter(|replicas| !replicas.is_null())
    {
        set(&mut config, &scale.spec_replicas, replicas.clone());
    }
    let force = call.query.flag("force");
    let admission = Admission::update(call, options.dry_run);
    let (scale_of, write) = (shown(scale), replicated(scale));
    let change = UpdateOptions {
        owned: true,
        view: Some(View { show: &scale_of, write: &write }),
        ..UpdateOptions::new(Part::Whole, options.dry_run, Some(&admission))
    };
    let candidate = |live: &Value| apply::apply(call, live, &config, force);
    let changed = modify::modify(call, change, candidate).await?;
    Ok(respond(call, representation, scale, &changed).await?.warnings(&warnings))
}

async fn respond(
    call: &Call,
    representation: Representation,
    scale: &Scale,
    changed: &Changed,
) -> Result<ApiResponse, ApiError> {
    let object = match changed {
        Changed::Stored(stored) => convert::load(&call.api, &call.ty, stored).await?,
        Changed::Dry(object) => object.clone(),
    };
    Ok(present::document(representation, StatusCode::OK, &show(scale, &object)))
}

/// Returns a function that shows the scale of an object to admission.
fn shown(scale: &Scale) -> impl Fn(&Value) -> Value + Sync {
    |object| show(scale, object)
}

/// Returns a function that sets the replicas that admission changed.
fn replicated(scale: &Scale) -> impl Fn(&Value, &Value) -> Value + Sync {
    |object, wanted| {
        let mut new = object.clone();
        let replicas = wanted.pointer("/spec/replicas").cloned().unwrap_or_else(|| 0.into());
        set(&mut new, &scale.spec_replicas, replicas);
        new
    }
}

/// Returns the scale of an object.
fn show(scale: &Scale, object: &Value) -> Value {
    let mut metadata = Map::new();
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if !object.meta(field).is_empty() {
            metadata.insert(field.to_owned(), object.meta(field).into());
        }
    }
    let number =
        |pointer: &str| object.pointer(pointer).and_then(Value::as_i64).unwrap_or_default();
    let mut status = json!({ "replicas": number(&scale.status_replicas) });
    match scale.selector.as_ref().and_then(|pointer| object.pointer(pointer)) {
        Some(Value::String(text)) => status["selector"] = text.as_str().into(),
        Some(Value::Object(fields)) => {
            // A replication controller has a map instead of a selector.
            let is_map = fields.values().all(Value::is_string);
            let wanted = if is_map { json!({"matchLabels": fields}) } else { json!(fields) };
            let selector = LabelSelector::from_object(&wanted).map(|it| it.to_string());
            if let Some(selector) = selector.ok().filter(|text| !text.is_empty()) {
                status["selector"] = selector.into();
            }
        }
        _ => {}
    }
    let replicas = number(&scale.spec_replicas);
    let spec = if replicas == 0 { json!({}) } else { json!({ "replicas": replicas }) };
    json!({
        "kind": "Scale",
        "apiVersion": API_VERSION,
        "metadata": metadata,
        "spec": spec,
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
    let reject = |subject: Subject<'_>, field: &str, why: &str| {
        let error = FieldError::invalid(field, replicas.unwrap_or(&Value::Null), why);
        Err(ApiError::invalid(subject, &call.info.name, &[error]))
    };
    match replicas.map(|replicas| (replicas, replicas.as_i64())) {
        None | Some((Value::Null, _)) => Ok(()),
        Some((_, Some(count))) if count < 0 => {
            let subject = Subject { group: "autoscaling", word: "Scale" };
            reject(subject, "spec.replicas", "must be greater than or equal to 0")
        }
        Some((_, Some(count))) if i32::try_from(count).is_ok() => Ok(()),
        Some(_) => {
            Err(ApiError::bad_request("spec.replicas of a Scale is a whole number of 32 bits"))
        }
    }
}

/// Returns the object with the replicas and the version of its scale.
fn written(scale: &Scale, old: &Value, wanted: &Value) -> Value {
    let mut new = old.clone();
    for field in ["name", "namespace", "uid", "resourceVersion"] {
        if field != "resourceVersion" && wanted.meta(field).is_empty() {
            continue;
        }
        new.adopt_meta(field, wanted);
    }
    let replicas = wanted.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or_default();
    set(&mut new, &scale.spec_replicas, replicas.into());
    new
}

/// Sets the value at a JSON pointer, and creates missing objects on the path.
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
