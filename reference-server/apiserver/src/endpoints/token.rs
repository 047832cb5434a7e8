//! Tokens of service accounts: POST to `serviceaccounts/token`.

use http::StatusCode;
use hyper::body::Incoming;
use kubeproof_apimachinery::object::validation::names;
use kubeproof_apimachinery::object::{Object, timestamp, uuid};
use kubeproof_apimachinery::schema::FieldError;
use kubeproof_apimachinery::status::{ApiError, Subject};
use kubeproof_storage::{Key, Stored};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Call;
use super::admit::Admission;
use super::decode::{Decoded, decode_body};
use crate::endpoints::present;
use crate::http::negotiate::Target;
use crate::http::query::WriteOptions;
use crate::http::respond::ApiResponse;
use crate::service_accounts::{Binding, Bindings, Claims, now};

const GROUP: &str = "authentication.k8s.io";
const VERSION: &str = "authentication.k8s.io/v1";
/// The lifetime of a token, in seconds, if the request has none.
const LIFETIME: i64 = 3600;
/// The shortest lifetime, in seconds.
const SHORTEST: i64 = 600;
/// The longest lifetime, in seconds.
const LONGEST: i64 = 1 << 32;

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    audiences: Option<Vec<String>>,
    expiration_seconds: Option<i64>,
    bound_object_ref: Option<Reference>,
}

/// The object that a token is bound to.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Reference {
    kind: String,
    api_version: String,
    name: String,
    uid: String,
}

/// Handles POST to `serviceaccounts/token`.
pub(super) async fn create(call: &Call, body: &mut Incoming) -> Result<ApiResponse, ApiError> {
    let representation = call.accept(Target::Document)?;
    let options = WriteOptions::parse(&call.query, "CreateOptions")?;
    let bytes = call.json_body(body).await?;
    let validation = call.validation(options.validation);
    let Decoded { object: mut request, warnings } =
        decode_body(&[VERSION], "TokenRequest", &bytes, validation)?;
    spec(call, &request)?;
    Admission::create(call, options.dry_run).admit(&mut request, None).await?;
    let spec = spec(call, &request)?;
    let stored = call.api.store.get(&call.ty.table, &call.key()).ok_or_else(|| call.not_found())?;
    check_uid(call, request.meta("uid"), &stored)?;
    let lifetime = spec.expiration_seconds.unwrap_or(LIFETIME);
    let accounts = &call.api.service_accounts;
    let audiences = spec.audiences.filter(|audiences| !audiences.is_empty());
    let issued = now();
    let claims = Claims {
        aud: audiences.unwrap_or_else(|| accounts.audiences.clone()),
        exp: issued + lifetime,
        iat: issued,
        iss: accounts.issuer().to_owned(),
        jti: uuid(),
        kubernetes: bindings(call, &stored, spec.bound_object_ref.as_ref())?,
        nbf: issued,
        sub: format!("system:serviceaccount:{}:{}", call.info.namespace, call.info.name),
    };
    let token = accounts.issue(&claims).ok_or_else(|| ApiError::internal("cannot sign"))?;
    let response = json!({
        "kind": "TokenRequest",
        "apiVersion": VERSION,
        "metadata": {
            "name": call.info.name, "namespace": call.info.namespace, "uid": stored.facts.uid,
            "creationTimestamp": timestamp(0),
        },
        "spec": {
            "audiences": claims.aud,
            "expirationSeconds": lifetime,
            "boundObjectRef": request["spec"]["boundObjectRef"],
        },
        "status": { "token": token, "expirationTimestamp": timestamp(lifetime) },
    });
    Ok(present::document(representation, StatusCode::CREATED, &response).warnings(&warnings))
}

fn check_uid(call: &Call, uid: &str, stored: &Stored) -> Result<(), ApiError> {
    if uid.is_empty() || uid == stored.facts.uid {
        return Ok(());
    }
    let why = format!(
        "the UID in the token request ({uid}) does not match the UID of the service account ({})",
        stored.facts.uid
    );
    let subject = Subject { group: GROUP, word: "TokenRequest" };
    Err(ApiError::conflict(subject, &call.info.name, &why))
}

/// Checks the metadata and the spec of a request.
fn spec(call: &Call, request: &Value) -> Result<Spec, ApiError> {
    let namespace = request.meta("namespace");
    if !namespace.is_empty() && namespace != call.info.namespace {
        let why = "the namespace of the provided object does not match the namespace sent on the \
                   request";
        return Err(ApiError::bad_request(why));
    }
    let subject = Subject { group: GROUP, word: "TokenRequest" };
    let name = request.meta("name");
    if !name.is_empty() && name != call.info.name {
        let why = "must match the service account name if specified";
        let error = FieldError::invalid("metadata.name", &name.into(), why);
        return Err(ApiError::invalid(subject, &call.info.name, &[error]));
    }
    let spec = match &request["spec"] {
        Value::Null => Spec::default(),
        spec => Spec::deserialize(spec).map_err(|error| {
            ApiError::bad_request(format!("TokenRequest in version \"v1\" is invalid: {error}"))
        })?,
    };
    let why = match spec.expiration_seconds {
        Some(..SHORTEST) => "may not specify a duration less than 10 minutes",
        Some(seconds) if seconds > LONGEST => "may not specify a duration larger than 2^32 seconds",
        _ => return Ok(spec),
    };
    let value = json!(spec.expiration_seconds);
    let error = FieldError::invalid("spec.expirationSeconds", &value, why);
    Err(ApiError::invalid(subject, "", &[error]))
}

/// Returns the objects that the token is bound to.
fn bindings(
    call: &Call,
    account: &Stored,
    reference: Option<&Reference>,
) -> Result<Bindings, ApiError> {
    let serviceaccount = Binding { name: call.info.name.clone(), uid: account.facts.uid.clone() };
    let namespace = call.info.namespace.clone();
    let mut bindings = Bindings { namespace, serviceaccount, ..Bindings::default() };
    let Some(Reference { kind, api_version, name, uid }) = reference else { return Ok(bindings) };
    let (group, version) = match api_version.split('/').collect::<Vec<_>>()[..] {
        [version] => ("", version),
        [group, version] => (group, version),
        _ => ("", ""),
    };
    let (plural, namespace) = match (group, kind.as_str()) {
        ("", "Pod") => ("pods", call.info.namespace.as_str()),
        ("", "Secret") => ("secrets", call.info.namespace.as_str()),
        ("", "Node") => ("nodes", ""),
        _ => {
            let what = format!("{group}/{version}, Kind={kind}");
            let why = format!("cannot bind token to object of type {what}");
            return Err(ApiError::bad_request(why));
        }
    };
    check_name(name)?;
    let ty = call.api.find_core(plural)?;
    let stored = call.api.store.get(&ty.table, &Key::new(namespace, name.as_str()));
    let stored = stored.ok_or_else(|| ApiError::not_found(ty.resource(), name))?;
    if !uid.is_empty() && *uid != stored.facts.uid {
        let why = format!(
            "the UID in the bound object reference ({uid}) does not match the UID in record. The \
             object might have been deleted and then recreated"
        );
        return Err(ApiError::conflict(Subject { group: "", word: kind }, name, &why));
    }
    let binding = Some(Binding { name: name.clone(), uid: stored.facts.uid.clone() });
    match plural {
        "pods" => {
            let pod = ty.load(&stored);
            check_account(call, &pod)?;
            bindings.node = node(call, &pod);
            bindings.pod = binding;
        }
        "secrets" => bindings.secret = binding,
        _ => bindings.node = binding,
    }
    Ok(bindings)
}

fn check_name(name: &str) -> Result<(), ApiError> {
    if name.is_empty() {
        return Err(ApiError::bad_request("Name parameter required."));
    }
    let wrong = names::path_segment(name).join(", ");
    if wrong.is_empty() {
        return Ok(());
    }
    Err(ApiError::bad_request(format!("Name parameter invalid: {name:?}: {wrong}")))
}

/// A pod uses one service account, so a token for another one is of no use.
fn check_account(call: &Call, pod: &Value) -> Result<(), ApiError> {
    let account = pod.pointer("/spec/serviceAccountName").and_then(Value::as_str);
    let account = account.filter(|account| !account.is_empty()).unwrap_or("default");
    if account == call.info.name {
        return Ok(());
    }
    Err(ApiError::bad_request(format!(
        "cannot bind token for serviceaccount {:?} to pod running with different serviceaccount \
         name.",
        call.info.name
    )))
}

/// Returns the node of a pod. The UID is empty if the node does not exist.
fn node(call: &Call, pod: &Value) -> Option<Binding> {
    let name = pod.pointer("/spec/nodeName").and_then(Value::as_str)?;
    let nodes = call.api.find_core("nodes").ok();
    let stored = nodes.and_then(|ty| call.api.store.get(&ty.table, &Key::new("", name)));
    let uid = stored.map(|node| node.facts.uid.clone()).unwrap_or_default();
    Some(Binding { name: name.to_owned(), uid })
}
