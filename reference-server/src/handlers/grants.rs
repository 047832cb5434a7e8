//! Nobody gives what they do not have: a role with rights beyond one's own is neither made nor bound.

use serde::Deserialize;
use serde_json::Value;

use super::Call;
use crate::auth::roles::{self, Rights, RoleRef, Rule};
use crate::builtin::rbac::{self, CLUSTER_ROLES, ROLES};
use crate::object::Object;
use crate::request_info::ResourceInfo;
use crate::status::ApiError;

/// Rights are compared one by one; a role that spells out more of them than this is refused to whom they have to be compared for.
const MAX_RIGHTS: usize = 100_000;

/// Whether the user may make the role or binding what it is to be.
pub(super) fn check(call: &Call, new: &Value, old: Option<&Value>) -> Result<(), ApiError> {
    let same = |field: &str| old.is_some_and(|old| old.get(field) == new.get(field));
    let is_binding = new.get("roleRef").is_some();
    let nothing_new = if is_binding { same("roleRef") && same("subjects") } else { same("rules") };
    if call.ty.group != rbac::GROUP || call.user.is_master() || nothing_new {
        return Ok(());
    }
    let rights = call.api.rights();
    let (verb, asked, given) = if is_binding {
        let role = RoleRef::deserialize(&new["roleRef"]).unwrap_or_default();
        let table = if role.kind == "Role" { ROLES } else { CLUSTER_ROLES };
        let resource = table.split('.').next().unwrap_or_default().to_owned();
        let given = rights.rules_of(&role, &call.info.namespace);
        (
            "bind",
            ResourceInfo { resource, name: role.name, subresource: String::new(), ..call.info.clone() },
            given,
        )
    } else {
        let name = new.meta("name").to_owned();
        ("escalate", ResourceInfo { name, ..call.info.clone() }, roles::rules(new))
    };
    if rights.may_access(&call.user, verb, &asked) || holds(call, rights, &given) {
        return Ok(());
    }
    let why = format!("user {:?} may not give rights that it does not have itself", call.user.name);
    Err(ApiError::forbidden(call.ty.resource(), new.meta("name"), &why))
}

fn holds(call: &Call, rights: Rights<'_>, given: &[Rule]) -> bool {
    let size = |rule: &Rule| {
        let parts = [&rule.verbs, &rule.api_groups, &rule.resources, &rule.resource_names, &rule.paths];
        parts.iter().map(|part| part.len().max(1)).fold(1, usize::saturating_mul)
    };
    if given.iter().map(size).fold(0, usize::saturating_add) > MAX_RIGHTS {
        return false;
    }
    let own = rights.rules(&call.user, &call.info.namespace);
    given.iter().all(|rule| {
        let infos = infos(rule, &call.info.namespace);
        rule.verbs.iter().all(|verb| {
            let path = |path: &String| rights.may_read(&call.user, verb, path);
            let resource = |info: &ResourceInfo| own.iter().any(|own| own.allows(verb, info, rights.faults));
            rule.paths.iter().all(path) && infos.iter().all(resource)
        })
    })
}

/// What a rule is about, one by one. A star stands for itself: only a star covers it.
fn infos(rule: &Rule, namespace: &str) -> Vec<ResourceInfo> {
    let names =
        if rule.resource_names.is_empty() { &[String::new()] } else { rule.resource_names.as_slice() };
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
