//! Roles whose wildcards and aggregation rules have another effect than they should. Most of these
//! faults change a role on its way to the server.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use http::Method;
use kubeproof_apimachinery::request::ResourceInfo;
use serde_json::{Value, json};

use crate::behaviours::Fault;
use crate::behaviours::support::deletions::first_deletions_are_dry;
use crate::behaviours::support::objects::remove;
use crate::behaviours::support::requests::{created, is_create, is_update};
use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, Next, around, objects, requests};

const GROUP: &str = "rbac.authorization.k8s.io";

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    let edit: fn(&mut Value) = match fault {
        Fault::RoleWildcardsIgnored => |role| {
            for field in ["apiGroups", "resources", "verbs"] {
                edit_rules(role, field, |text| {
                    if text.contains('*') {
                        *text = text.replace('*', "none");
                    }
                });
            }
        },
        Fault::RoleWildcardsMatchPrefixes => |role| {
            edit_rules(role, "resources", |text| {
                if text == "pods/*" {
                    "pods/status".clone_into(text);
                }
            });
        },
        Fault::PathWildcardsIgnored => |role| {
            edit_rules(role, "nonResourceURLs", |text| {
                if text.len() > 1 {
                    *text = text.trim_end_matches('*').to_owned();
                }
            });
        },
        Fault::AggregationRulesIgnored => |role| drop(remove(role, "aggregationRule")),
        Fault::AggregatedRulesStay => return Some(keeping_rules()),
        Fault::ChangedRolesIgnored => {
            return Some(requests(|request| {
                let is_role =
                    request.target().group == GROUP && request.target().resource == "roles";
                if is_role && is_update(request) {
                    request.edit_query(|query| query.set("dryRun", "All"));
                }
            }));
        }
        Fault::ClusterRolesInBindingsReachEverywhere => {
            return Some(around(|request, next| Box::pin(bind_everywhere(request, next))));
        }
        Fault::BindingsBeforeRolesAreDead => {
            return Some(around(|request, next| Box::pin(bind_only_existing(request, next))));
        }
        Fault::SecondSubjectsIgnored => return Some(subjects(|subjects| subjects.truncate(1))),
        Fault::ServiceAccountSubjectsIgnored => {
            return Some(subjects(|subjects| {
                subjects.retain(|subject| subject["kind"] != "ServiceAccount");
            }));
        }
        Fault::RemovedBindingsGrant => return Some(first_deletions_are_dry("rolebindings")),
        _ => return None,
    };
    Some(created(move |request, role| {
        let target = request.target();
        if target.group == GROUP && target.resource.ends_with("roles") {
            edit(role);
        }
    }))
}

/// Edits the subjects of each binding that a client creates.
fn subjects(edit: fn(&mut Vec<Value>)) -> Box<dyn Middleware> {
    created(move |request, binding| {
        if is_binding(request)
            && let Some(subjects) = binding["subjects"].as_array_mut()
        {
            edit(subjects);
        }
    })
}

fn is_binding(request: &Request) -> bool {
    let target = request.target();
    target.group == GROUP && target.resource.ends_with("bindings")
}

/// Adds a `ClusterRoleBinding` to each `RoleBinding` of a `ClusterRole`.
async fn bind_everywhere(request: Request, next: Next<'_>) -> Response {
    let is_new = is_create(&request) && request.target().resource == "rolebindings";
    let response = next.send(request.clone()).await;
    let stores = is_new && response.status.is_success() && !request.is_dry_run();
    if let Some(mut binding) = request.json().filter(|_| stores)
        && binding["roleRef"]["kind"] == "ClusterRole"
    {
        binding["kind"] = "ClusterRoleBinding".into();
        remove(&mut binding["metadata"], "namespace");
        let path = format!("/apis/{GROUP}/v1/clusterrolebindings");
        next.server.as_admin(Method::POST, &path, Some(("application/json", &binding))).await;
    }
    response
}

/// Drops the subjects of each `RoleBinding` whose `Role` does not exist yet.
async fn bind_only_existing(mut request: Request, next: Next<'_>) -> Response {
    let target = request.target();
    if is_create(&request) && target.resource == "rolebindings" {
        let binding = request.json().unwrap_or_default();
        let role = ResourceInfo { resource: "roles".to_owned(), ..target };
        let path = role.object(binding["roleRef"]["name"].as_str().unwrap_or_default());
        if binding["roleRef"]["kind"] == "Role" && next.server.read(&path).await.is_none() {
            request.edit_json(|binding| drop(remove(binding, "subjects")));
        }
    }
    next.send(request).await
}

/// Edits the texts in a field of all rules of a role.
fn edit_rules(role: &mut Value, field: &str, edit: fn(&mut String)) {
    let rules = role.get_mut("rules").and_then(Value::as_array_mut).into_iter().flatten();
    for text in rules.filter_map(|rule| rule.get_mut(field)?.as_array_mut()).flatten() {
        if let Value::String(text) = text {
            edit(text);
        }
    }
}

/// Shows each rule that a role with an aggregation rule ever had.
fn keeping_rules() -> Box<dyn Middleware> {
    let seen: Mutex<HashMap<String, Vec<Value>>> = Mutex::default();
    objects(move |request, role| {
        if request.target().resource != "clusterroles" || !role["aggregationRule"].is_object() {
            return;
        }
        let uid = role["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        let rules = seen.entry(uid).or_default();
        for rule in role["rules"].as_array().into_iter().flatten() {
            if !rules.contains(rule) {
                rules.push(rule.clone());
            }
        }
        role["rules"] = json!(rules);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_field_of_the_rules_is_edited() {
        let mut role = json!({ "rules": [{ "verbs": ["*"], "resources": ["a/*"] }] });
        edit_rules(&mut role, "resources", |text| *text = text.replace('*', "none"));
        assert_eq!(role, json!({ "rules": [{ "verbs": ["*"], "resources": ["a/none"] }] }));
    }
}
