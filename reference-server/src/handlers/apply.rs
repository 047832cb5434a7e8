//! PATCH by server-side apply: the body is a part of an object, and the client owns it.

use http::StatusCode;
use hyper::body::Incoming;
use serde_json::{Map, Value};

use super::Call;
use super::create::{self, Created, Origin};
use super::modify::{self, Manner};
use super::update::Part;
use crate::apply::{Operation, Refusal};
use crate::body;
use crate::json;
use crate::negotiate::Target;
use crate::object::Object;
use crate::present;
use crate::query::{FieldValidation, WriteOptions};
use crate::respond::Answer;
use crate::schema::FieldError;
use crate::status::{ApiError, Cause};
use crate::{Fault, Faults};

/// The media type of an applied configuration, YAML or JSON.
pub(super) const MEDIA_TYPE: &str = "application/apply-patch+yaml";
/// How often an apply starts again when the object comes or goes under its hands.
const ATTEMPTS: usize = 8;

pub(super) async fn handle(call: &Call, part: Part, body: &mut Incoming) -> Result<Answer, ApiError> {
    let representation = call.accept(Target::Object)?;
    let bytes = call.body(body).await?;
    let options = WriteOptions::of_apply(&call.query, call.faults())?;
    let Configuration { config, warnings } = read(&bytes, options.validation, call.faults())?;
    let config = check(call, part, config)?;
    let manner = Manner { part, dry_run: options.dry_run, needs_version: false, owned: true };
    let force = call.query.flag("force");
    let mut attempts = 0;
    loop {
        attempts += 1;
        let changed = modify::modify(call, manner, |live| apply(call, live, &config, force)).await;
        let missing = match changed {
            Ok(changed) => return Ok(modify::answer(call, representation, &changed)?.warnings(&warnings)),
            Err(error) if error.code == StatusCode::NOT_FOUND && part == Part::Whole => error,
            Err(error) => return Err(error),
        };
        if call.faults().on(Fault::ApplyNeverCreates) {
            return Err(missing);
        }
        let status =
            if call.faults().on(Fault::ApplyCreateAnswersOk) { StatusCode::OK } else { StatusCode::CREATED };
        let dry_run = options.dry_run && !call.faults().on(Fault::ApplyDryRunPersists);
        match begin(call, &config, dry_run) {
            Ok(Created::Stored(object)) => {
                return Ok(present::stored(call, representation, status, &object)?.warnings(&warnings));
            }
            Ok(Created::Dry(object)) => {
                return Ok(present::value(call, representation, status, &object)?.warnings(&warnings));
            }
            // Somebody else was faster.
            Err(error) if error.reason == "AlreadyExists" && attempts < ATTEMPTS => {}
            Err(error) => return Err(error),
        }
    }
}

/// Creates the object that nobody has applied before.
fn begin(call: &Call, config: &Value, dry_run: bool) -> Result<Created, ApiError> {
    if !config.meta("uid").is_empty() {
        let uid = config.meta("uid").into();
        let error = FieldError::invalid("metadata.uid", &uid, "field is immutable");
        return Err(ApiError::invalid(call.ty.subject(), &call.info.name, &[error]));
    }
    let mut object = hold(call, config.clone()).map_err(ApiError::bad_request)?;
    object.unset_meta("resourceVersion");
    create::create(call, object, Origin::Applied(config), dry_run)
}

pub(super) fn apply(call: &Call, live: &Value, config: &Value, force: bool) -> Result<Value, ApiError> {
    let write = call.ownership(Operation::Apply);
    let mut new = write.apply(live, config, force, |merged| hold(call, merged)).map_err(|refusal| {
        let mut error = ApiError::from(refusal);
        if call.faults().on(Fault::ApplyConflictWithoutCauses) {
            error.details = None;
        }
        error
    })?;
    if call.faults().on(Fault::ApplyVersionIgnored) {
        new.adopt_meta("resourceVersion", live);
    }
    Ok(new)
}

/// What the type can hold of a value, in its own spelling.
fn hold(call: &Call, mut object: Value) -> Result<Value, String> {
    call.ty.schema.check_types(&object).map_err(|error| error.message)?;
    call.ty.schema.prune(&mut object, call.faults());
    Ok(object)
}

/// A configuration as the client sent it, and what the client should hear about it.
pub(super) struct Configuration {
    pub(super) config: Value,
    pub(super) warnings: Vec<String>,
}

/// Reads the body. JSON is YAML too, but the reader of JSON is the stricter one.
pub(super) fn read(
    bytes: &[u8],
    validation: FieldValidation,
    faults: Faults,
) -> Result<Configuration, ApiError> {
    let decoded = match json::decode(bytes) {
        Ok(decoded) => decoded,
        Err(error) if faults.on(Fault::ApplyJsonOnly) => return Err(malformed(&error)),
        Err(_) => {
            let json = body::json_of_yaml(bytes, faults).map_err(|error| malformed(&error.message))?;
            json::decode(&json).map_err(|error| malformed(&error))?
        }
    };
    let told = validation != FieldValidation::Ignore && !faults.on(Fault::ApplyDuplicatesUntold);
    let duplicates = decoded.duplicates.iter().filter(|_| told);
    let warnings: Vec<String> = duplicates.map(|field| format!("duplicate field {field:?}")).collect();
    if validation == FieldValidation::Strict && !warnings.is_empty() {
        let why = format!("error strict decoding YAML: {}", warnings.join(", "));
        return Err(ApiError::bad_request(why));
    }
    let config = match decoded.value {
        Value::Object(fields) => Value::Object(fields),
        Value::Null => Value::Object(Map::new()),
        _ => return Err(malformed(&"the configuration is no object")),
    };
    Ok(Configuration { config, warnings })
}

fn malformed(why: &dyn std::fmt::Display) -> ApiError {
    ApiError::bad_request(format!("error decoding YAML: {why}"))
}

/// The configuration is one of the object that the URL names, and says nothing that is not for it to say. What belongs
/// to another endpoint is left out.
fn check(call: &Call, part: Part, mut config: Value) -> Result<Value, ApiError> {
    let (ty, faults) = (&*call.ty, call.faults());
    let text = |field: &str| config.get(field).and_then(Value::as_str).unwrap_or_default();
    let (kind, api_version) = (text("kind"), text("apiVersion"));
    let untyped = kind.is_empty() && api_version.is_empty();
    if (kind != ty.kind || api_version != ty.api_version())
        && !(untyped && faults.on(Fault::ApplyTypeNotChecked))
    {
        let (expected, version) = (&ty.kind, ty.api_version());
        return Err(ApiError::bad_request(format!(
            "invalid object type: {api_version}, Kind={kind}; it must be {version}, Kind={expected}"
        )));
    }
    config["kind"] = ty.kind.as_str().into();
    config["apiVersion"] = ty.api_version().into();
    if config.metadata().is_some_and(|metadata| metadata.get("managedFields").is_some_and(|it| !it.is_null()))
        && !faults.on(Fault::ApplyManagedFieldsAccepted)
    {
        return Err(ApiError::bad_request("metadata.managedFields must be nil"));
    }
    config.unset_meta("managedFields");
    if config.meta("name").is_empty() {
        config.set_meta("name", call.info.name.as_str());
    }
    modify::check_identity(call, &mut config)?;
    let unknown = ty.schema.unknown_fields(&config);
    if let Some(field) = unknown.first() {
        return Err(untypeable(call, &format!(".{field}: field not declared in schema")));
    }
    ty.schema.check_types(&config).map_err(|error| untypeable(call, &error.message))?;
    if let Some(fields) = config.as_object_mut() {
        let other_endpoints = |name: &str| match part {
            Part::Whole => name == "status" && ty.has_status && !faults.on(Fault::ApplyOwnsStatus),
            Part::Status => !["apiVersion", "kind", "metadata", "status"].contains(&name),
            _ => false,
        };
        fields.retain(|name, _| !other_endpoints(name));
    }
    Ok(config)
}

fn untypeable(call: &Call, why: &str) -> ApiError {
    let (name, version, kind) = (&call.info.name, call.ty.api_version(), &call.ty.kind);
    ApiError::bad_request(format!(
        "failed to create typed patch object ({name}; {version}, Kind={kind}): {why}"
    ))
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        let message = refusal.to_string();
        let Refusal::Conflict(conflicts) = refusal else { return Self::bad_request(message) };
        let causes = conflicts.into_iter().flat_map(|conflict| {
            let cause = move |field| Cause {
                reason: "FieldManagerConflict",
                message: conflict.message.clone(),
                field,
            };
            conflict.fields.clone().into_iter().map(cause)
        });
        Self::apply_conflict(message, causes.collect())
    }
}
