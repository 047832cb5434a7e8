//! Wrong authorization, and roles that give other rights than they should.

use std::collections::BTreeSet;

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::behaviours::Fault;
use crate::behaviours::support::identity::{as_admin, attributes, is_denied, may, user_info};
use crate::behaviours::support::requests::{is_apply, is_create};
use crate::behaviours::support::served;
use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, Next, around, objects, only, requests_before, responses};

const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/";

/// The suffix of role names in stored bindings, so that the bindings refer to no role.
const WITHOUT_EFFECT: &str = ":without-effect";

const VERBS: [&str; 8] =
    ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::EverybodyMayEverything
        | Fault::StreamRightsOfPostOnly
        | Fault::AuthorizationAfterLookup
        | Fault::RightsCoverSubresources
        | Fault::SubresourceRightsCoverParents
        | Fault::RightsCoverScale
        | Fault::RightsCoverBuiltinStatus
        | Fault::RightsCoverTokens
        | Fault::UpdateRightsCoverPatch
        | Fault::ListRightsCoverWatch
        | Fault::DeleteRightsCoverCollections
        | Fault::GetRightsCoverList
        | Fault::PatchRightsCoverUpdate
        | Fault::RightsCoverEvictions
        | Fault::RightsCoverApproval
        | Fault::StatusRightsCoverScale
        | Fault::ApplyRightsCoverCreate
        | Fault::RoleBindingsReachEverywhere
        | Fault::RoleNamesIgnored
        | Fault::RoleGroupsIgnored
        | Fault::RoleVerbsIgnored => {
            around(move |request, next| Box::pin(unless_allowed(fault, request, next)))
        }
        Fault::RolesWithoutEffect => requests_before(
            detach_binding,
            only(
                is_binding,
                objects(|_, binding| {
                    edit_role_name(binding, |name| {
                        name.strip_suffix(WITHOUT_EFFECT).map(str::to_owned)
                    });
                }),
            ),
        ),
        _ => return results(fault),
    })
}

/// Faults in the results of some requests.
fn results(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::RolesGrantAnything => around(|request, next| {
            Box::pin(async move {
                let response = next.send(request.clone()).await;
                let beyond = response.value().is_some_and(|status| {
                    status["message"]
                        .as_str()
                        .is_some_and(|text| text.contains("may not give rights"))
                });
                match request.json() {
                    Some(role) if beyond && is_create(&request) => {
                        Response::json(StatusCode::CREATED, &role)
                    }
                    _ => response,
                }
            })
        }),
        Fault::NamedListsDenied => around(|request, next| {
            Box::pin(async move {
                let target = request.target();
                if request.verb() == "list" && request.query().get("fieldSelector").is_some() {
                    let path = format!("{}?limit=1", target.collection());
                    let all = next.send(request.by_same_client(Method::GET, &path)).await;
                    if all.status == StatusCode::FORBIDDEN {
                        return all;
                    }
                }
                next.send(request).await
            })
        }),
        Fault::AuthorizationAfterDecoding => responses(|request, response| {
            let media_type = request.media_type();
            let json = media_type.is_empty() || media_type == "application/json";
            if request.method == Method::POST && !json && is_denied(response) {
                let code = StatusCode::UNSUPPORTED_MEDIA_TYPE;
                let message = "the body of the request has a media type that is not supported";
                *response = Response::failure(code, "UnsupportedMediaType", message);
            }
        }),
        Fault::ForbiddenAsNotFound => responses(|request, response| {
            if request.target().is_resource() && is_denied(response) {
                *response = not_found(request);
            }
        }),
        _ => return None,
    })
}

fn not_found(request: &Request) -> Response {
    let target = request.target();
    let message = format!("{} {:?} not found", target.resource, target.name);
    let mut response = Response::failure(StatusCode::NOT_FOUND, "NotFound", message);
    response.edit_value(|status| {
        status["details"] =
            json!({ "name": target.name, "group": target.group, "kind": target.resource });
    });
    response
}

/// Sends a denied request again as the administrator if the faulty server would allow it.
async fn unless_allowed(fault: Fault, request: Request, next: Next<'_>) -> Response {
    let response = next.send(request.clone()).await;
    if is_denied(&response) && is_allowed(fault, &request, next).await {
        return next.send(as_admin(&request, next)).await;
    }
    response
}

async fn is_allowed(fault: Fault, request: &Request, next: Next<'_>) -> bool {
    let target = request.target();
    match fault {
        Fault::EverybodyMayEverything => user_info(request, next).await.is_some(),
        Fault::StreamRightsOfPostOnly => {
            request.method == Method::GET
                && matches!(target.subresource.as_str(), "exec" | "attach" | "portforward")
        }
        // The server has no such resource, so the administrator gets 404 and changes nothing.
        Fault::AuthorizationAfterLookup => {
            target.is_resource() && !served::is_served(&target, next).await
        }
        // An apply that creates needs the right to create, too, which the server checks later.
        Fault::ApplyRightsCoverCreate => {
            is_apply(request) && may(request, next, &attributes(request)).await
        }
        _ if !target.is_resource() => false,
        _ => {
            for rights in neighbours(fault, request, next).await {
                if may(request, next, &rights).await {
                    return true;
                }
            }
            false
        }
    }
}

/// Returns whether the faulty server takes the rights on an object for those on this subresource.
fn covers_subresource(fault: Fault, request: &Request) -> bool {
    let target = request.target();
    match fault {
        Fault::RightsCoverSubresources => !target.subresource.is_empty(),
        Fault::RightsCoverScale => target.subresource == "scale",
        Fault::RightsCoverEvictions => target.subresource == "eviction",
        Fault::RightsCoverApproval => target.subresource == "approval",
        Fault::RightsCoverTokens => target.subresource == "token",
        Fault::RightsCoverBuiltinStatus => {
            target.subresource == "status" && !target.group.contains("kubeproof")
        }
        _ => false,
    }
}

/// Returns the verb whose rights the faulty server takes for those of another verb.
fn covering_verb(fault: Fault, verb: &str) -> Option<&'static str> {
    match (fault, verb) {
        (Fault::UpdateRightsCoverPatch, "patch") => Some("update"),
        (Fault::ListRightsCoverWatch, "watch") => Some("list"),
        (Fault::DeleteRightsCoverCollections, "deletecollection") => Some("delete"),
        (Fault::GetRightsCoverList, "list") => Some("get"),
        (Fault::PatchRightsCoverUpdate, "update") => Some("patch"),
        _ => None,
    }
}

/// The rights that the faulty server takes for the one that the request needs.
async fn neighbours(fault: Fault, request: &Request, next: Next<'_>) -> Vec<Value> {
    let needed = attributes(request);
    let target = request.target();
    let (field, values): (&str, Vec<String>) = match fault {
        _ if covers_subresource(fault, request) => ("subresource", vec![String::new()]),
        Fault::StatusRightsCoverScale if target.subresource == "scale" => {
            ("subresource", vec!["status".to_owned()])
        }
        Fault::SubresourceRightsCoverParents if target.subresource.is_empty() => {
            ("subresource", served::subresources(&target, next).await)
        }
        Fault::RoleBindingsReachEverywhere => (
            "namespace",
            texts(next, &["rolebindings"], |binding| vec![&binding["metadata"]["namespace"]]).await,
        ),
        Fault::RoleNamesIgnored => (
            "name",
            texts(next, &["roles", "clusterroles"], |role| of_rules(role, "resourceNames")).await,
        ),
        Fault::RoleGroupsIgnored => (
            "group",
            texts(next, &["roles", "clusterroles"], |role| of_rules(role, "apiGroups")).await,
        ),
        Fault::RoleVerbsIgnored => ("verb", VERBS.map(str::to_owned).to_vec()),
        _ => match covering_verb(fault, request.verb()) {
            Some(verb) => ("verb", vec![verb.to_owned()]),
            None => return Vec::new(),
        },
    };
    let other = |value: String| {
        let mut rights = needed.clone();
        rights[field] = value.into();
        rights
    };
    values.into_iter().map(other).collect()
}

/// The different texts that the objects of some resources hold.
async fn texts(next: Next<'_>, resources: &[&str], get: fn(&Value) -> Vec<&Value>) -> Vec<String> {
    let mut found = BTreeSet::new();
    for resource in resources {
        let list = next.server.read(&format!("{ROLES}{resource}")).await.unwrap_or_default();
        let items = list["items"].as_array().into_iter().flatten();
        found.extend(items.flat_map(get).filter_map(Value::as_str).map(str::to_owned));
    }
    found.into_iter().collect()
}

/// The items of a list in all rules of a role.
fn of_rules<'a>(role: &'a Value, list: &str) -> Vec<&'a Value> {
    let rules = role["rules"].as_array().into_iter().flatten();
    rules.filter_map(|rule| rule[list].as_array()).flatten().collect()
}

fn is_binding(request: &Request) -> bool {
    matches!(request.target().resource.as_str(), "rolebindings" | "clusterrolebindings")
}

/// Binds a role that does not exist.
fn detach_binding(request: &mut Request) {
    if is_binding(request) && !request.body.is_empty() {
        request
            .edit_json(|body| edit_role_name(body, |name| Some(format!("{name}{WITHOUT_EFFECT}"))));
    }
}

fn edit_role_name(binding: &mut Value, edit: impl Fn(&str) -> Option<String>) {
    if let Some(role) = binding.get_mut("roleRef").and_then(|role| role.get_mut("name"))
        && let Some(name) = role.as_str().and_then(edit)
    {
        *role = name.into();
    }
}
