//! Probes for users, impersonation and roles.

use kubeproof_cases::case::Identity;
use serde_json::json;

use super::{
    ProbeResult, Requester, Resources, collection, creatable, creatable_by_dry_run, named,
    some_collection,
};
use crate::capability::ProbeOptions;

const RBAC: &str = "rbac.authorization.k8s.io";

pub(super) async fn second_user(
    requester: &Requester<'_>,
    resources: &Resources,
    options: &ProbeOptions<'_>,
) -> ProbeResult {
    if !requester.client.has_second() {
        return Err("the run has no credential of an unprivileged user (--second-token)".into());
    }
    let secrets = named("secrets", "v1", "");
    let collection = if resources.contains_key(&secrets) {
        collection(&secrets, true, options)
    } else {
        some_collection(resources, options, "list")?
    };
    let list = format!("{collection}?limit=1");
    let exchange = requester.send_as(Identity::Second, ("GET", &list), None).await;
    match exchange.status() {
        401 => Err("the server rejects the second credential with 401".into()),
        200..=299 => match user_of_both(requester, options).await {
            Some(user) => Err(format!("both credentials belong to the user {user:?}").into()),
            // This user has no rights by definition. Cases judge any response other than 403.
            None => Ok(()),
        },
        403 | 404 => Ok(()),
        _ => Err(format!("{collection} returns {} for the second credential", exchange.in_words())
            .into()),
    }
}

/// Returns the name of the user if both credentials belong to the same user.
async fn user_of_both(requester: &Requester<'_>, options: &ProbeOptions<'_>) -> Option<String> {
    let reviews = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    if !options.may_send("POST", reviews) {
        return None;
    }
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let mut users = Vec::new();
    for identity in [Identity::Admin, Identity::Second] {
        let exchange = requester.send_as(identity, ("POST", reviews), Some(&review)).await;
        let name = exchange.json()?.pointer("/status/userInfo/username")?.as_str()?;
        users.push(name.to_owned());
    }
    users.dedup();
    users.pop().filter(|_| users.is_empty())
}

/// Asks the server for a review of the impersonate verb. Cases judge the impersonation itself.
pub(super) async fn impersonation(
    requester: &Requester<'_>,
    options: &ProbeOptions<'_>,
) -> ProbeResult {
    if requester.client.impersonates().await {
        return Err("the run itself impersonates a user (--as)".into());
    }
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "impersonate", "resource": "users"}},
    });
    let reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    if !options.may_send("POST", reviews) {
        let unknown = "the access review for impersonation is a POST, which --read-only forbids";
        return if options.plans_only { Ok(()) } else { Err(unknown.into()) };
    }
    let exchange = requester.send("POST", reviews, Some(&review)).await;
    match exchange.json().and_then(|review| review["status"]["allowed"].as_bool()) {
        Some(true) => Ok(()),
        Some(false) => Err("the user of the run may not impersonate others".into()),
        None => Err(format!("the server has no access reviews: {}", exchange.in_words()).into()),
    }
}

/// Roles have no effect where every user may read secrets. A server without access reviews counts
/// as one with roles.
pub(super) async fn roles(
    requester: &Requester<'_>,
    resources: &Resources,
    options: &ProbeOptions<'_>,
) -> ProbeResult {
    let (roles, bindings) = (named("roles", "v1", RBAC), named("rolebindings", "v1", RBAC));
    creatable(resources, &roles)?;
    creatable(resources, &bindings)?;
    let collection = collection(&roles, true, options);
    let manifest = json!({
        "apiVersion": format!("{RBAC}/v1"), "kind": "Role",
        "metadata": {"name": options.probe_name},
        "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"]}],
    });
    creatable_by_dry_run(requester, options, &collection, &manifest).await?;
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {
            "user": options.probe_name,
            "resourceAttributes": {"verb": "get", "resource": "secrets"},
        },
    });
    let reviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    if !options.may_send("POST", reviews) {
        return Ok(());
    }
    let exchange = requester.send("POST", reviews, Some(&review)).await;
    match exchange.json().and_then(|review| review["status"]["allowed"].as_bool()) {
        Some(true) => Err("every user may read secrets, so roles have no effect".into()),
        _ => Ok(()),
    }
}
