//! The variables of expressions: `request`, `object`, `oldObject`, `authorizer` and others.

use kubeproof_apimachinery::request::ResourceInfo;
use kubeproof_apimachinery::schema::rules::expression::Roots;
use kubeproof_storage::Key;
use serde_json::{Value, json};

use super::namespace_lifecycle::NAMESPACES;
use super::{Attributes, rules};
use crate::authorization::in_expressions;
use crate::registry::Lookup;

/// Returns the fields of a request that webhooks and expressions see.
pub(super) fn request(request: &Attributes<'_>, object: &Value) -> Value {
    let (group, version) =
        request.kind.api_version.split_once('/').unwrap_or(("", &request.kind.api_version));
    let operation = request.operation.name();
    let ty = request.ty;
    let mut fields = json!({
        "kind": {"group": group, "version": version, "kind": request.kind.kind},
        "resource": {"group": ty.group, "version": ty.version, "resource": ty.plural},
        "operation": operation,
        "userInfo": request.user.info(),
        "dryRun": request.dry_run,
        "options": request.options,
    });
    for (field, text) in [
        ("subResource", request.info.subresource.as_str()),
        ("name", request.name(object)),
        ("namespace", rules::namespace(request, object)),
    ] {
        if !text.is_empty() {
            fields[field] = text.into();
        }
    }
    fields
}

/// Returns the values of the variables that all expressions have.
pub(super) fn roots(attributes: &Attributes<'_>, object: &Value, old: Option<&Value>) -> Roots {
    let mut roots = Roots::default();
    let mut fields = request(attributes, object);
    fields["requestKind"] = fields["kind"].clone();
    fields["requestResource"] = fields["resource"].clone();
    if let Some(subresource) = fields.get("subResource").cloned() {
        fields["requestSubResource"] = subresource;
    }
    roots.set("request", &fields);
    roots.set("object", object);
    roots.set("oldObject", old.unwrap_or(&Value::Null));
    let resource = ResourceInfo {
        namespace: rules::namespace(attributes, object).to_owned(),
        name: attributes.name(object).to_owned(),
        ..attributes.info.clone()
    };
    roots.set_authorizer(in_expressions(attributes.rights, attributes.user), resource);
    roots
}

/// Returns the namespace of a request, or null for an object of the cluster.
pub(super) fn namespace_object(request: &Attributes<'_>, object: &Value) -> Value {
    let name = rules::namespace(request, object);
    let context = request.context;
    let Lookup::Found(ty) = context.registry.current().find("", "v1", NAMESPACES) else {
        return Value::Null;
    };
    if name.is_empty() || request.ty.is_core(NAMESPACES) {
        return Value::Null;
    }
    let stored = context.store.get(NAMESPACES, &Key::new("", name));
    stored.map_or(Value::Null, |stored| ty.load(&stored))
}
