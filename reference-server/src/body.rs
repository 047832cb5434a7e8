//! From the bytes of a request to an object of its type.
//!
//! What cannot be an object of the type is a bad request; what is one, but a wrong one, is left to validation. Unknown and
//! repeated fields are a warning, an error or nothing, as the client chose.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header};
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};
use serde::de;
use serde_json::{Map, Value};
use serde_saphyr::DuplicateKeyPolicy;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::config::Limits;
use crate::json::{self, DecodeError};
use crate::query::FieldValidation;
use crate::registry::ResourceType;
use crate::schema::{FieldError, Format, Kind, Schema};
use crate::status::ApiError;
use crate::{Fault, Faults};

/// The longest body that is read.
pub(crate) const MAX_BODY: usize = 3 * 1024 * 1024;
/// How much of a longer one is thrown away so that the client gets to reading the answer.
const MAX_DISCARDED: usize = 32 * 1024 * 1024;

/// How long to wait for what is thrown away.
const DISCARD_TIME: Duration = Duration::from_secs(2);

/// How much of each body is read without a share of the room for all.
const FREE: usize = 64 * 1024;
/// In this unit the room for bodies is shared.
const UNIT: usize = 1024;

/// Reads bodies, as many at once as there is room for.
#[derive(Clone, Debug)]
pub(crate) struct Intake {
    room: Arc<Semaphore>,
    time: Duration,
}

impl Intake {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self { room: Arc::new(Semaphore::new(limits.bodies / UNIT)), time: limits.body }
    }

    /// Reads a whole body.
    pub(crate) async fn read(&self, body: &mut Incoming, faults: Faults) -> Result<Bytes, ApiError> {
        let read = tokio::time::timeout(self.time, self.collect(body, faults)).await;
        read.unwrap_or_else(|_| Err(ApiError::slow_body(self.time)))
    }

    async fn collect(&self, body: &mut Incoming, faults: Faults) -> Result<Bytes, ApiError> {
        let too_large = || ApiError::too_large(&format!("limit is {MAX_BODY}"));
        // One that says so itself is not waited for.
        if body.size_hint().lower() > MAX_BODY as u64 && !faults.on(Fault::BodyLimitMissing) {
            return Err(too_large());
        }
        let mut bytes = BytesMut::new();
        let mut share: Option<SemaphorePermit<'_>> = None;
        let mut discarded = 0;
        while let Some(frame) = body.frame().await {
            let frame =
                frame.map_err(|error| ApiError::bad_request(format!("the body cannot be read: {error}")))?;
            let Ok(data) = frame.into_data() else { continue };
            let length = bytes.len() + data.len();
            if discarded > 0 || (length > MAX_BODY && !faults.on(Fault::BodyLimitMissing)) {
                // What was read is of no use any more.
                bytes = BytesMut::new();
                share = None;
                discarded += data.len();
                if discarded > MAX_DISCARDED {
                    break;
                }
                continue;
            }
            let held = share.as_ref().map_or(0, SemaphorePermit::num_permits);
            let more = length.saturating_sub(FREE).div_ceil(UNIT) - held;
            if more > 0 {
                let more = u32::try_from(more).ok().and_then(|more| self.room.try_acquire_many(more).ok());
                let more = more.ok_or_else(ApiError::no_room)?;
                match &mut share {
                    Some(share) => share.merge(more),
                    None => share = Some(more),
                }
            }
            bytes.extend_from_slice(&data);
        }
        if discarded > 0 { Err(too_large()) } else { Ok(bytes.freeze()) }
    }
}

/// Reads on to the end of a body that nobody wanted. A connection that is closed over bytes unread is reset, and a client that is
/// still sending loses the refusal which tells it why.
pub(crate) async fn discard(body: &mut Incoming) {
    let rest = async {
        let mut discarded = 0;
        while let Some(Ok(frame)) = body.frame().await {
            discarded += frame.data_ref().map_or(0, Bytes::len);
            if discarded > MAX_DISCARDED {
                break;
            }
        }
    };
    // Who sends slower than this has to live with the reset.
    let _ = tokio::time::timeout(DISCARD_TIME, rest).await;
}

/// The media type of the body, without parameters; empty when the header is absent.
pub(crate) fn media_type(headers: &HeaderMap) -> String {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Refuses a body of POST, PUT or DELETE that is not JSON. No media type counts as JSON.
pub(crate) fn require_json(headers: &HeaderMap, faults: Faults) -> Result<(), ApiError> {
    if faults.on(Fault::CharsetRefused)
        && headers.get(header::CONTENT_TYPE).is_some_and(|value| value.as_bytes().contains(&b';'))
    {
        return Err(ApiError::unsupported_media_type(&["application/json"]));
    }
    let media = media_type(headers);
    if media.is_empty() || media == "application/json" || faults.on(Fault::ContentTypeIgnored) {
        return Ok(());
    }
    if faults.on(Fault::UnsupportedMediaTypeAsBadRequest) {
        return Err(ApiError::bad_request("the body is not JSON"));
    }
    Err(ApiError::unsupported_media_type(&["application/json"]))
}

/// The JSON that a YAML body stands for, keys that stand there twice included.
pub(crate) fn json_of_yaml(bytes: &[u8], faults: Faults) -> Result<Bytes, ApiError> {
    let mut json = Vec::new();
    let options = serde_saphyr::options! { duplicate_keys: DuplicateKeyPolicy::LastWins };
    serde_saphyr::with_deserializer_from_slice_with_options(bytes, options, |yaml| {
        serde_transcode::transcode(yaml, &mut serde_json::Serializer::new(&mut json))
            .map_err(de::Error::custom)
    })
    .map_err(|error| ApiError::bad_request(format!("the body is not YAML: {error}")))?;
    if faults.any(&[Fault::YamlQuotesIgnored, Fault::YamlDuplicatesUntold]) {
        let mut value = json::parse(&json)?;
        if faults.on(Fault::YamlQuotesIgnored) {
            unquote(&mut value);
        }
        return Ok(value.to_string().into());
    }
    Ok(json.into())
}

/// What a fault makes of quoted numbers and booleans in YAML.
fn unquote(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Ok(scalar @ (Value::Number(_) | Value::Bool(_))) = serde_json::from_str(text) {
                *value = scalar;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(unquote),
        Value::Object(fields) => fields.values_mut().for_each(unquote),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// An object as the client sent it, and what the client should hear about it.
#[derive(Debug)]
pub(crate) struct Decoded {
    pub(crate) object: Value,
    pub(crate) warnings: Vec<String>,
}

/// Decodes the body of POST or PUT.
pub(crate) fn decode(
    ty: &ResourceType,
    bytes: &[u8],
    validation: FieldValidation,
    faults: Faults,
) -> Result<Decoded, ApiError> {
    if bytes.is_empty() && faults.on(Fault::EmptyBodyIsInvalid) {
        return Err(ApiError::unprocessable_patch("the body is empty"));
    }
    let json::Decoded { value, duplicates } = json::decode(bytes).map_err(|error| {
        if faults.on(Fault::MalformedBodyAsServerError) {
            return ApiError::internal(error.to_string());
        }
        unrecognized(&ty.kind, &error)
    })?;
    let mut object = match value {
        Value::Object(fields) => Value::Object(fields),
        Value::Null if !ty.custom => Value::Object(Map::new()),
        other => {
            let what = format!("the body is {}, not an object", kind_of(&other));
            return Err(unrecognized(&ty.kind, &what));
        }
    };
    check_type_meta(ty, &mut object, faults)?;
    if faults.on(Fault::NullsRefused) && !ty.custom && has_null(&object) {
        return Err(cannot_handle(ty, "null is no value"));
    }
    if faults.on(Fault::FieldNamesInAnyCase) {
        fold_names(&ty.schema, &mut object);
    }
    if faults.on(Fault::LabelsStringified) {
        stringify_labels(&mut object);
    }
    let warnings =
        complaints(ty, &object, &duplicates, validation, faults).map_err(|why| cannot_handle(ty, &why))?;
    if faults.on(Fault::BuiltinNumbersCut) && !ty.custom {
        cut_numbers(&ty.schema, &mut object);
    }
    ty.schema.check_types(&object).map_err(|error| cannot_handle(ty, &error.message))?;
    ty.schema.prune(&mut object, faults);
    Ok(Decoded { object, warnings })
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.values().any(has_null),
        Value::Array(items) => items.iter().any(has_null),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Gives fields that are known in another case the name that is known.
fn fold_names(schema: &Schema, object: &mut Value) {
    let Some(fields) = object.as_object_mut() else { return };
    for known in schema.properties.keys() {
        let other = fields.keys().find(|name| *name != known && name.eq_ignore_ascii_case(known)).cloned();
        if let Some(value) = other.and_then(|other| fields.remove(&other)) {
            fields.insert(known.clone(), value);
        }
    }
}

/// Takes what a patch made of an object for an object of the type again.
pub(crate) fn recast(
    ty: &ResourceType,
    mut object: Value,
    duplicates: &[String],
    validation: FieldValidation,
    faults: Faults,
) -> Result<Decoded, ApiError> {
    let validation = if faults.on(Fault::PatchesNotStrict) { FieldValidation::Ignore } else { validation };
    let invalid = |object: &Value, why: &str| ApiError::patched_object_invalid(object, why);
    if object.get("kind").and_then(Value::as_str) != Some(&ty.kind) {
        return Err(invalid(&object, &format!("kind must be {}", ty.kind)));
    }
    if object.get("apiVersion").and_then(Value::as_str) != Some(&ty.api_version()) {
        return Err(invalid(&object, &format!("apiVersion must be {}", ty.api_version())));
    }
    let warnings =
        complaints(ty, &object, duplicates, validation, faults).map_err(|why| invalid(&object, &why))?;
    if !faults.on(Fault::PatchResultUnchecked) {
        ty.schema.check_types(&object).map_err(|error| invalid(&object, &error.message))?;
    }
    ty.schema.prune(&mut object, faults);
    Ok(Decoded { object, warnings })
}

/// What there is to say about fields that are unknown or stand there twice: warnings, or the text of an error.
fn complaints(
    ty: &ResourceType,
    object: &Value,
    duplicates: &[String],
    validation: FieldValidation,
    faults: Faults,
) -> Result<Vec<String>, String> {
    let silent = match validation {
        FieldValidation::Ignore => !faults.on(Fault::IgnoredFieldsWarned),
        FieldValidation::Warn => faults.on(Fault::WarningsMissing),
        FieldValidation::Strict => faults.on(Fault::StrictValidationIgnored),
    };
    if silent {
        return Ok(Vec::new());
    }
    let shallow = faults.on(Fault::UnknownFieldsAtTopOnly);
    let duplicates = if faults.on(Fault::DuplicatesUntold) { &[] } else { duplicates };
    let unknown = ty.schema.unknown_fields(object).into_iter();
    let unknown = unknown.filter(|field| !shallow || !field.contains('.'));
    let unknown = unknown.map(|field| format!("unknown field {field:?}"));
    let complaints: Vec<_> =
        duplicates.iter().map(|field| format!("duplicate field {field:?}")).chain(unknown).collect();
    if validation == FieldValidation::Strict && !complaints.is_empty() {
        return Err(format!("strict decoding error: {}", complaints.join(", ")));
    }
    Ok(complaints)
}

/// Kind and version of a body: left out they are those of the URL, but a custom resource has to say them.
fn check_type_meta(ty: &ResourceType, object: &mut Value, faults: Faults) -> Result<(), ApiError> {
    let text = |field: &str| match object.get(field) {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(other) => Err(unrecognized(&ty.kind, &format!("{field} is {}, not a string", kind_of(other)))),
    };
    let (kind, api_version) = (text("kind")?, text("apiVersion")?);
    if ty.custom && kind.is_empty() {
        return Err(unrecognized(&ty.kind, &"Object 'Kind' is missing"));
    }
    let expected = ty.api_version();
    if api_version != expected
        && (ty.custom || !api_version.is_empty())
        && !faults.on(Fault::ApiVersionNotChecked)
    {
        return Err(ApiError::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version ({expected})"
        )));
    }
    if kind != ty.kind && !kind.is_empty() && !faults.on(Fault::KindNotChecked) {
        if ty.custom {
            let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
            let error = FieldError::invalid("kind", &kind.as_str().into(), &format!("must be {}", ty.kind));
            return Err(ApiError::invalid(ty.subject(), name, &[error]));
        }
        return Err(ApiError::bad_request(format!(
            "{kind} in version {expected:?} cannot be handled as a {}",
            ty.kind
        )));
    }
    object["kind"] = ty.kind.as_str().into();
    object["apiVersion"] = expected.into();
    Ok(())
}

/// What a fault makes of labels and annotations that are no text.
fn stringify_labels(object: &mut Value) {
    for field in ["/metadata/labels", "/metadata/annotations"] {
        for value in object.pointer_mut(field).and_then(Value::as_object_mut).into_iter().flatten() {
            if value.1.is_number() {
                *value.1 = value.1.to_string().into();
            }
        }
    }
}

/// What a fault makes of numbers that their type cannot hold.
#[expect(clippy::cast_possible_truncation, reason = "that is the fault")]
fn cut_numbers(schema: &Schema, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                if let Some(schema) = schema.child(name) {
                    cut_numbers(schema, field);
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                if let Some(schema) = &schema.items {
                    cut_numbers(schema, item);
                }
            }
        }
        Value::Number(number) if schema.kind == Some(Kind::Integer) => {
            let whole =
                number.as_i64().or_else(|| number.as_f64().map(|number| number as i64)).unwrap_or_default();
            *value = match schema.format {
                Some(Format::Int32) => (whole as i32).into(),
                _ => whole.into(),
            };
        }
        _ => {}
    }
}

fn cannot_handle(ty: &ResourceType, why: &str) -> ApiError {
    let (kind, version) = (&ty.kind, &ty.version);
    ApiError::bad_request(format!("{kind} in version {version:?} cannot be handled as a {kind}: {why}"))
}

fn unrecognized(kind: &str, why: &dyn std::fmt::Display) -> ApiError {
    ApiError::bad_request(format!("the object provided is unrecognized (must be of type {kind}): {why}"))
}

impl From<DecodeError> for ApiError {
    fn from(error: DecodeError) -> Self {
        Self::bad_request(format!("couldn't get version/kind; json parse error: {error}"))
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
