//! Privilege escalation: users may only create or bind roles whose permissions they have
//! themselves.

use serde::Deserialize;
use serde_json::Value;

use super::{Attributes, Decision, Operation, Plugin, decided};
use crate::authorization::roles::{self, RoleRef, Rule};
use crate::registry::builtin::rbac::{self, CLUSTER_ROLES, ROLES};
use kubeproof_apimachinery::object::Object;
use kubeproof_apimachinery::request::ResourceInfo;
use kubeproof_apimachinery::status::ApiError;

/// The largest number of permissions in a role. A larger role is rejected.
const MAX_RIGHTS: usize = 100_000;

/// Rejects roles and bindings that grant permissions which the user does not have. In
/// kube-apiserver, the registry of roles does this.
pub(super) struct RoleEscalation;

impl Plugin for RoleEscalation {
    fn name(&self) -> &'static str {
        "RoleEscalation"
    }

    fn handles(&self, request: &Attributes<'_>) -> bool {
        request.ty.group == rbac::GROUP
            && matches!(request.operation, Operation::Create | Operation::Update)
    }

    fn validate<'a>(&'a self, request: Attributes<'a>, object: &'a Value) -> Decision<'a> {
        decided(check(request, object, request.old))
    }
}

fn check(request: Attributes<'_>, new: &Value, old: Option<&Value>) -> Result<(), ApiError> {
    let same = |field: &str| old.is_some_and(|old| old.get(field) == new.get(field));
    let is_binding = new.get("roleRef").is_some();
    let nothing_new = if is_binding { same("roleRef") && same("subjects") } else { same("rules") };
    if request.user.is_master() || nothing_new {
        return Ok(());
    }
    let rights = request.rights;
    let (verb, asked, given) = if is_binding {
        let role = RoleRef::deserialize(&new["roleRef"]).unwrap_or_default();
        let table = if role.kind == "Role" { ROLES } else { CLUSTER_ROLES };
        let resource = table.split('.').next().unwrap_or_default().to_owned();
        let given = rights.rules_of(&role, &request.info.namespace);
        (
            "bind",
            ResourceInfo {
                resource,
                name: role.name,
                subresource: String::new(),
                ..request.info.clone()
            },
            given,
        )
    } else {
        let name = new.meta("name").to_owned();
        ("escalate", ResourceInfo { name, ..request.info.clone() }, roles::rules(new))
    };
    if rights.may_access(request.user, verb, &asked) || holds(request, &given) {
        return Ok(());
    }
    let why =
        format!("user {:?} may not give rights that it does not have itself", request.user.name);
    Err(ApiError::forbidden(request.ty.resource(), new.meta("name"), &why))
}

fn holds(request: Attributes<'_>, given: &[Rule]) -> bool {
    let size = |rule: &Rule| {
        let parts =
            [&rule.verbs, &rule.api_groups, &rule.resources, &rule.resource_names, &rule.paths];
        parts.iter().map(|part| part.len().max(1)).fold(1, usize::saturating_mul)
    };
    if given.iter().map(size).fold(0, usize::saturating_add) > MAX_RIGHTS {
        return false;
    }
    let rights = request.rights;
    let own = rights.rules(request.user, &request.info.namespace);
    given.iter().all(|rule| {
        let infos = infos(rule, &request.info.namespace);
        rule.verbs.iter().all(|verb| {
            let path = |path: &String| rights.may_read(request.user, verb, path);
            let resource = |info: &ResourceInfo| own.iter().any(|own| own.allows(verb, info));
            rule.paths.iter().all(path) && infos.iter().all(resource)
        })
    })
}

/// Returns the resources of a rule one by one. Only a wildcard covers a wildcard.
fn infos(rule: &Rule, namespace: &str) -> Vec<ResourceInfo> {
    let names = if rule.resource_names.is_empty() {
        &[String::new()]
    } else {
        rule.resource_names.as_slice()
    };
    let mut infos = Vec::new();
    for group in &rule.api_groups {
        for resource in &rule.resources {
            let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
            infos.extend(names.iter().map(|name| ResourceInfo {
                group: group.clone(),
                namespace: namespace.to_owned(),
                resource: resource.to_owned(),
                subresource: subresource.to_owned(),
                name: name.clone(),
                ..ResourceInfo::default()
            }));
        }
    }
    infos
}
