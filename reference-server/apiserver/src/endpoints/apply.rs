//! PATCH by server-side apply: the body is a partial object whose fields the client owns.

use http::StatusCode;
use hyper::body::Incoming;
use serde_json::{Map, Value};

use super::Call;
use super::admit::Admission;
use super::create::{self, Created, Origin};
use super::modify::{self, UpdateOptions};
use super::update::Part;
use crate::authorization::authorize_create;
use crate::endpoints::present;
use crate::http::negotiate::Target;
use crate::http::query::{FieldValidation, WriteOptions};
use crate::http::respond::ApiResponse;
use kubeproof_apimachinery::object::Object;
use kubeproof_apimachinery::patch::apply::{Operation, mistakes};
use kubeproof_apimachinery::request::yaml;
use kubeproof_apimachinery::schema::Schema;
use kubeproof_apimachinery::serializer::json;
use kubeproof_apimachinery::status::ApiError;

/// The media type of an applied configuration, YAML or JSON.
pub(super) const MEDIA_TYPE: &str = "application/apply-patch+yaml";
/// The number of attempts if another client creates or deletes the object at the same time.
const ATTEMPTS: usize = 8;

pub(super) async fn handle(
    call: &Call,
    part: Part,
    body: &mut Incoming,
) -> Result<ApiResponse, ApiError> {
    let representation = call.accept(Target::Object)?;
    let bytes = call.body(body).await?;
    let options = WriteOptions::of_apply(&call.query)?;
    let Configuration { config, warnings } = read(&bytes, options.validation)?;
    let config = check(call, part, config)?;
    let admission = Admission::patch(call, options.dry_run);
    let change = UpdateOptions {
        owned: true,
        ..UpdateOptions::new(part, options.dry_run, Some(&admission))
    };
    let force = call.query.flag("force");
    let mut attempts = 0;
    loop {
        attempts += 1;
        let changed = modify::modify(call, change, |live| apply(call, live, &config, force)).await;
        match changed {
            Ok(changed) => {
                return Ok(modify::respond(call, representation, &changed)
                    .await?
                    .warnings(&warnings));
            }
            Err(error) if error.code == StatusCode::NOT_FOUND && matches!(part, Part::Whole) => {}
            Err(error) => return Err(error),
        }
        let status = StatusCode::CREATED;
        match begin(call, &config, options.dry_run).await {
            Ok(Created::Stored(object)) => {
                return Ok(present::stored(call, representation, status, &object)
                    .await?
                    .warnings(&warnings));
            }
            Ok(Created::Dry(object)) => {
                return Ok(
                    present::value(call, representation, status, &object)?.warnings(&warnings)
                );
            }
            // Another client created the object first.
            Err(error) if error.reason == "AlreadyExists" && attempts < ATTEMPTS => {}
            Err(error) => return Err(error),
        }
    }
}

/// Creates the object of the first apply.
async fn begin(call: &Call, config: &Value, dry_run: bool) -> Result<Created, ApiError> {
    authorize_create(&call.user, &call.info, call.api.rights())?;
    if !config.meta("uid").is_empty() {
        let why = format!(
            "uid mismatch: the provided object specified uid {}, and no existing object was found",
            config.meta("uid")
        );
        return Err(ApiError::conflict(call.ty.resource(), &call.info.name, &why));
    }
    let mut object = convert(call, config.clone()).map_err(ApiError::bad_request)?;
    modify::check_identity(call, &mut object)?;
    object.unset_meta("resourceVersion");
    create::create(call, object, Origin::Applied(config), dry_run).await
}

pub(super) fn apply(
    call: &Call,
    live: &Value,
    config: &Value,
    force: bool,
) -> Result<Value, ApiError> {
    let write = call.ownership(Operation::Apply);
    write.apply(live, config, force, |merged| convert(call, merged)).map_err(ApiError::from)
}

/// Converts a value to the types of the schema.
fn convert(call: &Call, mut object: Value) -> Result<Value, String> {
    call.ty.schema.check_types(&object).map_err(|error| error.message)?;
    call.ty.schema.prune(&mut object);
    Ok(object)
}

/// The applied configuration of a client, and the warnings about it.
pub(super) struct Configuration {
    pub(super) config: Value,
    pub(super) warnings: Vec<String>,
}

/// Reads the body. JSON is YAML, too, but the JSON parser is stricter.
pub(super) fn read(bytes: &[u8], validation: FieldValidation) -> Result<Configuration, ApiError> {
    let decoded = if let Ok(decoded) = json::decode(bytes) {
        decoded
    } else {
        let json = yaml::to_json(bytes).map_err(|error| malformed(&error.message))?;
        json::decode(&json).map_err(|error| malformed(&error))?
    };
    let reported = validation != FieldValidation::Ignore;
    let duplicates = decoded.duplicates.iter().filter(|_| reported);
    let warnings: Vec<String> =
        duplicates.map(|field| format!("duplicate field {field:?}")).collect();
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

/// Checks that the configuration matches the object of the URL and sets no system fields. Fields of
/// other endpoints are removed.
fn check(call: &Call, part: Part, mut config: Value) -> Result<Value, ApiError> {
    let ty = &*call.ty;
    let text = |field: &str| config.get(field).and_then(Value::as_str).unwrap_or_default();
    let (kind, api_version) = (text("kind"), text("apiVersion"));
    if kind != ty.kind || api_version != ty.api_version() {
        let (expected, version) = (&ty.kind, ty.api_version());
        return Err(ApiError::bad_request(format!(
            "invalid object type: {api_version}, Kind={kind}; it must be {version}, Kind={expected}"
        )));
    }
    config["kind"] = ty.kind.as_str().into();
    config["apiVersion"] = ty.api_version().into();
    if config
        .metadata()
        .is_some_and(|metadata| metadata.get("managedFields").is_some_and(|it| !it.is_null()))
    {
        return Err(ApiError::bad_request("metadata.managedFields must be nil"));
    }
    config.unset_meta("managedFields");
    typed(&config, &ty.schema)?;
    // An apply to an existing object may omit the name.
    if config.meta("name").is_empty() {
        create::place(call, &mut config)?;
    } else {
        modify::check_identity(call, &mut config)?;
    }
    if let Some(fields) = config.as_object_mut() {
        let other_endpoints = |name: &str| match part {
            Part::Whole => name == "status" && ty.has_status,
            Part::Status => !["apiVersion", "kind", "metadata", "status"].contains(&name),
            _ => false,
        };
        fields.retain(|name, _| !other_endpoints(name));
    }
    Ok(config)
}

/// Checks that a configuration is a value of its type. Like kube-apiserver, this is no error of the
/// client.
pub(super) fn typed(config: &Value, schema: &Schema) -> Result<(), ApiError> {
    let text = |field: &str| config[field].as_str().unwrap_or_default();
    let (group, version) = text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
    let what = format!("{group}/{version}, Kind={}", text("kind"));
    let name = format!("{}/{}", config.meta("namespace"), config.meta("name"));
    let mistakes = mistakes(config, schema);
    if let Some(first) = mistakes.first() {
        let why = if mistakes.len() == 1 {
            first.clone()
        } else {
            format!("errors:\n  {}", mistakes.join("\n  "))
        };
        let why = format!("failed to create typed patch object ({name}; {what}): {why}");
        return Err(ApiError::unknown(why));
    }
    schema.check_types(config).map_err(|error| {
        ApiError::unknown(format!(
            "failed to convert new object ({name}; {what}) to proper version: unable to convert \
             unstructured object to {what}: {}",
            error.message
        ))
    })
}
