//! Reviews: questions about users and rights, asked with POST and never stored.

use serde_json::{Value, json};

use crate::Fault;
use crate::auth::User;
use crate::handlers::Call;
use crate::object::Object;
use crate::request_info::ResourceInfo;
use crate::schema::FieldError;
use crate::status::{ApiError, Subject};

/// Answers a review: the same object, with a status.
pub(crate) fn answer(call: &Call, mut review: Value) -> Result<Value, ApiError> {
    let status = match call.ty.plural.as_str() {
        "tokenreviews" => token(call, &review)?,
        "selfsubjectreviews" => json!({ "userInfo": call.user.info() }),
        "selfsubjectaccessreviews" => access(call, call.user, &review)?,
        "subjectaccessreviews" | "localsubjectaccessreviews" => {
            local_namespace(call, &review)?;
            access(call, subject(call, &review)?, &review)?
        }
        "selfsubjectrulesreviews" => rules(call.user, &review)?,
        _ => return Err(ApiError::method_not_allowed()),
    };
    review["status"] = status;
    if review.metadata().is_none_or(serde_json::Map::is_empty) {
        review["metadata"] = json!({});
    }
    Ok(review)
}

fn token(call: &Call, review: &Value) -> Result<Value, ApiError> {
    let token = review.pointer("/spec/token").and_then(Value::as_str).unwrap_or_default();
    if token.is_empty() {
        return Err(ApiError::bad_request("token is required for TokenReview in authentication"));
    }
    Ok(match call.api.auth.token(token) {
        Some(user) => json!({ "authenticated": true, "user": user.info() }),
        None => json!({ "user": {}, "error": "invalid bearer token" }),
    })
}

/// The user that a review is about. One that the server does not know has no rights, unless a group has them.
fn subject(call: &Call, review: &Value) -> Result<User, ApiError> {
    let name = review.pointer("/spec/user").and_then(Value::as_str).unwrap_or_default();
    let groups = review.pointer("/spec/groups").and_then(Value::as_array);
    let groups: Vec<&str> = groups.into_iter().flatten().filter_map(Value::as_str).collect();
    if name.is_empty() && groups.is_empty() {
        let why = "at least one of user or group must be specified";
        let error = FieldError::invalid("spec.user", &"".into(), why);
        return Err(ApiError::invalid(subject_of(call), "", &[error]));
    }
    Ok(if name == User::Admin.name() || groups.contains(&"system:masters") {
        User::Admin
    } else if name == User::Powerless.name() || groups.contains(&"system:authenticated") {
        User::Powerless
    } else {
        User::Anonymous
    })
}

fn subject_of(call: &Call) -> Subject<'_> {
    call.ty.subject()
}

fn access(call: &Call, user: User, review: &Value) -> Result<Value, ApiError> {
    let resource = review.pointer("/spec/resourceAttributes").filter(|value| !value.is_null());
    let path = review.pointer("/spec/nonResourceAttributes").filter(|value| !value.is_null());
    let text =
        |value: &Value, field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let allowed = match (resource, path) {
        (Some(resource), None) => {
            let info = ResourceInfo {
                group: text(resource, "group"),
                version: text(resource, "version"),
                namespace: text(resource, "namespace"),
                resource: text(resource, "resource"),
                name: text(resource, "name"),
                subresource: text(resource, "subresource"),
                ..ResourceInfo::default()
            };
            user.may_access(&text(resource, "verb"), &info)
        }
        (None, Some(path)) => user.may_read(&text(path, "path")),
        _ => {
            let why = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            let error = FieldError::invalid("spec.resourceAttributes", &Value::Null, why);
            return Err(ApiError::invalid(subject_of(call), "", &[error]));
        }
    };
    let allowed = allowed || call.faults().on(Fault::AccessReviewAllowsAll);
    Ok(json!({ "allowed": allowed }))
}

fn local_namespace(call: &Call, review: &Value) -> Result<(), ApiError> {
    let asked =
        review.pointer("/spec/resourceAttributes/namespace").and_then(Value::as_str).unwrap_or_default();
    if call.ty.namespaced && asked != call.info.namespace {
        let field = "spec.resourceAttributes.namespace";
        let error = FieldError::invalid(field, &asked.into(), "must match metadata.namespace");
        return Err(ApiError::invalid(subject_of(call), "", &[error]));
    }
    Ok(())
}

fn rules(user: User, review: &Value) -> Result<Value, ApiError> {
    if review.pointer("/spec/namespace").and_then(Value::as_str).unwrap_or_default().is_empty() {
        return Err(ApiError::bad_request("no namespace on request"));
    }
    let everything = json!([{ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] }]);
    let about_self = json!([{
        "verbs": ["create"],
        "apiGroups": ["authentication.k8s.io", "authorization.k8s.io"],
        "resources": ["selfsubjectreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews"],
    }]);
    let paths = |paths: &[&str]| json!([{ "verbs": ["get"], "nonResourceURLs": paths }]);
    let (resources, paths) = match user {
        User::Admin => (everything, json!([{ "verbs": ["*"], "nonResourceURLs": ["*"] }])),
        User::Powerless => (
            about_self,
            paths(&[
                "/api",
                "/api/*",
                "/apis",
                "/apis/*",
                "/healthz",
                "/livez",
                "/openapi",
                "/openapi/*",
                "/readyz",
                "/version",
            ]),
        ),
        User::Anonymous => (json!([]), paths(&["/healthz", "/livez", "/readyz", "/version"])),
    };
    Ok(json!({ "resourceRules": resources, "nonResourceRules": paths, "incomplete": false }))
}
