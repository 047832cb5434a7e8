//! Reviews: questions about users and permissions. They are created with POST and never stored.

use serde_json::{Value, json};

use crate::authentication::User;
use crate::authorization::roles::Rule;
use crate::endpoints::{Call, create};
use crate::registry::strategy::Review;
use kubeproof_apimachinery::object::{Object, timestamp};
use kubeproof_apimachinery::patch::apply::Operation;
use kubeproof_apimachinery::request::ResourceInfo;
use kubeproof_apimachinery::schema::FieldError;
use kubeproof_apimachinery::status::ApiError;

/// The metadata of a review that the server ignores.
const IGNORED: [&str; 6] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "managedFields",
    "selfLink",
    "uid",
];

/// Sets the namespace of a review, and records who owns its fields.
pub(crate) fn prepare(call: &Call, review: &mut Value) -> Result<(), ApiError> {
    create::place(call, review)?;
    for field in IGNORED {
        review.unset_meta(field);
    }
    call.ownership(Operation::Update).track(None, review, None);
    Ok(())
}

/// Checks the question of a review.
pub(crate) fn validate(call: &Call, review: &Value) -> Result<(), ApiError> {
    let mut errors = (call.ty.hooks.validate)(review);
    let is_access = matches!(
        call.ty.strategy.review(),
        Some(Review::SubjectAccess | Review::SelfSubjectAccess)
    );
    errors.extend(metadata(call, review).filter(|_| is_access));
    if errors.is_empty() { Ok(()) } else { Err(ApiError::invalid(call.ty.subject(), "", &errors)) }
}

/// Returns a valid review with its status.
pub(crate) fn complete(call: &Call, mut review: Value) -> Result<Value, ApiError> {
    let question = call.ty.strategy.review().ok_or_else(ApiError::method_not_allowed)?;
    let status = match question {
        Review::Token => token(call, &review)?,
        Review::SelfSubject => json!({ "userInfo": call.user.info() }),
        Review::SelfSubjectAccess => access(call, &call.user, &review),
        Review::SubjectAccess => {
            local_namespace(call, &review)?;
            let subject = subject(&review);
            access(call, &subject, &review)
        }
        Review::SelfSubjectRules => rules(call, &call.user, &review)?,
    };
    review["status"] = status;
    if question == Review::SelfSubjectRules {
        // As in kube-apiserver, the response lacks the question.
        review["spec"] = json!({});
    }
    let lacks_metadata = matches!(question, Review::SelfSubject | Review::SelfSubjectRules);
    if lacks_metadata || review.metadata().is_none_or(serde_json::Map::is_empty) {
        review["metadata"] = json!({});
    }
    if question == Review::SelfSubject {
        review.set_meta("creationTimestamp", timestamp(0));
    }
    Ok(review)
}

/// Returns the error of metadata that the client sets.
fn metadata(call: &Call, review: &Value) -> Option<FieldError> {
    let is_set =
        |name: &str| name != "managedFields" && (name != "namespace" || !call.ty.namespaced);
    let why =
        if call.ty.namespaced { "must be empty except for namespace" } else { "must be empty" };
    let given = review.metadata()?.keys().any(|name| is_set(name));
    given.then(|| FieldError::invalid("metadata", &review["metadata"], why))
}

fn token(call: &Call, review: &Value) -> Result<Value, ApiError> {
    let token = review.pointer("/spec/token").and_then(Value::as_str).unwrap_or_default();
    if token.is_empty() {
        return Err(ApiError::bad_request("token is required for TokenReview in authentication"));
    }
    let audiences = review.pointer("/spec/audiences").and_then(Value::as_array);
    let audiences = audiences.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
    Ok(match call.api.credentials().token(token, &audiences.collect::<Vec<_>>()) {
        Ok(known) => json!({
            "authenticated": true, "user": known.user.info(), "audiences": known.audiences,
        }),
        Err(None) => json!({ "user": {}, "error": "invalid bearer token" }),
        Err(Some(why)) => json!({ "user": {}, "error": format!("[invalid bearer token, {why}]") }),
    })
}

/// Returns the user of a review with the groups in the review only.
fn subject(review: &Value) -> User {
    let text = |field: &str| review["spec"][field].as_str().unwrap_or_default().to_owned();
    let groups = review.pointer("/spec/groups").and_then(Value::as_array);
    let groups =
        groups.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    User { name: text("user"), uid: text("uid"), groups, ..User::default() }
}

/// Returns whether the user has access to the resource or path of the review.
fn access(call: &Call, user: &User, review: &Value) -> Value {
    let rights = call.api.rights();
    let resource = review.pointer("/spec/resourceAttributes").filter(|value| !value.is_null());
    let path = review.pointer("/spec/nonResourceAttributes").filter(|value| !value.is_null());
    let text = |value: &Value, field: &str| {
        value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let (allowed, reason) = match (resource, path) {
        (Some(resource), _) => {
            let info = ResourceInfo {
                group: text(resource, "group"),
                version: text(resource, "version"),
                namespace: text(resource, "namespace"),
                resource: text(resource, "resource"),
                name: text(resource, "name"),
                subresource: text(resource, "subresource"),
                ..ResourceInfo::default()
            };
            let verb = text(resource, "verb");
            (rights.may_access(user, &verb, &info), rights.access_reason(user, &verb, &info))
        }
        (None, Some(path)) => {
            let (verb, path) = (text(path, "verb"), text(path, "path"));
            (rights.may_read(user, &verb, &path), rights.path_reason(user, &verb, &path))
        }
        (None, None) => (true, String::new()),
    };
    let mut status = json!({ "allowed": allowed });
    if !reason.is_empty() {
        status["reason"] = reason.into();
    }
    status
}

fn local_namespace(call: &Call, review: &Value) -> Result<(), ApiError> {
    let requested = review
        .pointer("/spec/resourceAttributes/namespace")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let elsewhere = call.ty.namespaced && requested != call.info.namespace;
    if elsewhere {
        let field = "spec.resourceAttributes.namespace";
        let error = FieldError::invalid(field, &requested.into(), "must match metadata.namespace");
        return Err(ApiError::invalid(call.ty.subject(), "", &[error]));
    }
    Ok(())
}

fn rules(call: &Call, user: &User, review: &Value) -> Result<Value, ApiError> {
    let namespace = review.pointer("/spec/namespace").and_then(Value::as_str).unwrap_or_default();
    if namespace.is_empty() {
        return Err(ApiError::bad_request("no namespace on request"));
    }
    let everything = json!({ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] });
    let about_self = json!({
        "verbs": ["create"],
        "apiGroups": ["authentication.k8s.io", "authorization.k8s.io"],
        "resources": ["selfsubjectreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews"],
    });
    let reads = |paths: &[&str]| json!({ "verbs": ["get"], "nonResourceURLs": paths });
    let public = ["/healthz", "/livez", "/readyz", "/version"];
    let discovery = ["/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*"];
    let (mut resources, mut paths) = if call.api.cluster_defaults {
        // The roles of a new cluster grant the same permissions.
        (Vec::new(), Vec::new())
    } else if user.is_master() {
        (vec![everything], vec![json!({ "verbs": ["*"], "nonResourceURLs": ["*"] })])
    } else if user.is_authenticated() {
        (vec![about_self], vec![reads(&[discovery.as_slice(), &public].concat())])
    } else {
        (Vec::new(), vec![reads(&public)])
    };
    for Rule { verbs, api_groups, resources: of, resource_names, paths: urls } in
        call.api.rights().rules(user, namespace)
    {
        if urls.is_empty() {
            let mut rule = json!({ "verbs": verbs, "apiGroups": api_groups, "resources": of });
            if !resource_names.is_empty() {
                rule["resourceNames"] = json!(resource_names);
            }
            resources.push(rule);
        } else {
            paths.push(json!({ "verbs": verbs, "nonResourceURLs": urls }));
        }
    }
    Ok(json!({ "resourceRules": resources, "nonResourceRules": paths, "incomplete": false }))
}
