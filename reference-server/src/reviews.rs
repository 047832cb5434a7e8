//! Reviews: questions about users and rights, asked with POST and never stored.

use serde_json::{Value, json};

use crate::Fault;
use crate::auth::User;
use crate::auth::roles::Rule;
use crate::handlers::Call;
use crate::object::Object;
use crate::request_info::ResourceInfo;
use crate::schema::FieldError;
use crate::status::ApiError;

/// Answers a review: the same object, with a status.
pub(crate) fn answer(call: &Call, mut review: Value) -> Result<Value, ApiError> {
    let faults = call.faults();
    let errors = (call.ty.hooks.validate)(&review, faults);
    if !errors.is_empty() {
        return Err(ApiError::invalid(call.ty.subject(), "", &errors));
    }
    let asker = |fault| if faults.on(fault) { call.api.auth.admin() } else { &*call.user };
    let status = match call.ty.plural.as_str() {
        "tokenreviews" => token(call, &review)?,
        "selfsubjectreviews" => json!({ "userInfo": asker(Fault::SelfReviewOfAdmin).info() }),
        "selfsubjectaccessreviews" => access(call, &call.user, &review),
        "subjectaccessreviews" | "localsubjectaccessreviews" => {
            local_namespace(call, &review)?;
            let subject = subject(&review);
            let about = if faults.on(Fault::AccessReviewOfTheAsker) { &call.user } else { &subject };
            access(call, about, &review)
        }
        "selfsubjectrulesreviews" => rules(call, asker(Fault::RulesReviewOfAdmin), &review)?,
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
        None if call.faults().on(Fault::TokenReviewKnowsEverybody) => {
            json!({ "authenticated": true, "user": call.user.info() })
        }
        None => json!({ "user": {}, "error": "invalid bearer token" }),
    })
}

/// The user that a review is about, in the groups that it names and no others.
fn subject(review: &Value) -> User {
    let text = |field: &str| review["spec"][field].as_str().unwrap_or_default().to_owned();
    let groups = review.pointer("/spec/groups").and_then(Value::as_array);
    let groups = groups.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    User { name: text("user"), uid: text("uid"), groups, ..User::default() }
}

/// What the user may do, of what is asked: a resource or a path.
fn access(call: &Call, user: &User, review: &Value) -> Value {
    let rights = call.api.rights();
    let resource = review.pointer("/spec/resourceAttributes").filter(|value| !value.is_null());
    let path = review.pointer("/spec/nonResourceAttributes").filter(|value| !value.is_null());
    let text =
        |value: &Value, field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let allowed = match (resource, path) {
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
            rights.may_access(user, &text(resource, "verb"), &info)
        }
        (None, Some(path)) => rights.may_read(user, &text(path, "verb"), &text(path, "path")),
        (None, None) => true,
    };
    let allowed = allowed || call.faults().on(Fault::AccessReviewAllowsAll);
    json!({ "allowed": allowed })
}

fn local_namespace(call: &Call, review: &Value) -> Result<(), ApiError> {
    let asked =
        review.pointer("/spec/resourceAttributes/namespace").and_then(Value::as_str).unwrap_or_default();
    let elsewhere = call.ty.namespaced && asked != call.info.namespace;
    if elsewhere && !call.faults().on(Fault::LocalReviewOfAnyNamespace) {
        let field = "spec.resourceAttributes.namespace";
        let error = FieldError::invalid(field, &asked.into(), "must match metadata.namespace");
        return Err(ApiError::invalid(call.ty.subject(), "", &[error]));
    }
    Ok(())
}

fn rules(call: &Call, user: &User, review: &Value) -> Result<Value, ApiError> {
    let namespace = review.pointer("/spec/namespace").and_then(Value::as_str).unwrap_or_default();
    if namespace.is_empty() && !call.faults().on(Fault::RulesReviewNeedsNoNamespace) {
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
    let (mut resources, mut paths) = if user.is_master() {
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
            resources.push(json!({
                "verbs": verbs, "apiGroups": api_groups, "resources": of, "resourceNames": resource_names,
            }));
        } else {
            paths.push(json!({ "verbs": verbs, "nonResourceURLs": urls }));
        }
    }
    Ok(json!({ "resourceRules": resources, "nonResourceRules": paths, "incomplete": false }))
}
