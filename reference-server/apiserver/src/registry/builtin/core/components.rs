//! `componentstatuses` and `bindings`: resources that clients cannot change.

use serde_json::{Value, json};

use crate::registry::builtin::BuiltinType;
use crate::registry::builtin::data::resource;
use kubeproof_apimachinery::table::column::{Cell, column};

/// Returns the type of the health of components. Its objects exist from the start.
pub(super) fn component_statuses() -> BuiltinType {
    BuiltinType {
        deprecation: Some("v1 ComponentStatus is deprecated in v1.19+"),
        columns: vec![
            column(
                "Status",
                "string",
                Cell::Computed(|component| match healthy(component)["status"].as_str() {
                    Some("True") => json!("Healthy"),
                    Some("False") => json!("Unhealthy"),
                    _ => json!("Unknown"),
                }),
            ),
            column("Message", "string", Cell::Computed(|it| text(&healthy(it)["message"]))),
            column("Error", "string", Cell::Computed(|it| text(&healthy(it)["error"]))),
        ],
        ..resource("", "v1", "componentstatuses")
    }
}

/// Returns the type of requests that assign a pod to a node, which are not stored.
pub(super) fn bindings() -> BuiltinType {
    BuiltinType { list_kind: String::new(), ..resource("", "v1", "bindings") }
}

/// Returns the components of a cluster. This process stores the objects, and has no scheduler and
/// no controller manager that could report its health.
pub(crate) fn components() -> impl Iterator<Item = Value> {
    let refused = |port: u16| {
        let (url, address) = (format!("https://127.0.0.1:{port}/healthz"), "127.0.0.1");
        format!("Get {url:?}: dial tcp {address}:{port}: connect: connection refused")
    };
    let components = [
        ("controller-manager", "False", refused(10257)),
        ("scheduler", "False", refused(10259)),
        ("etcd-0", "True", "ok".to_owned()),
    ];
    components.into_iter().map(|(name, status, message)| {
        json!({
            "kind": "ComponentStatus", "apiVersion": "v1",
            "metadata": {"name": name},
            "conditions": [{"type": "Healthy", "status": status, "message": message}],
        })
    })
}

fn healthy(component: &Value) -> &Value {
    let mut conditions = component["conditions"].as_array().into_iter().flatten();
    conditions.find(|condition| condition["type"] == "Healthy").unwrap_or(&Value::Null)
}

fn text(value: &Value) -> Value {
    json!(value.as_str().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_show_the_health() {
        let ty = component_statuses();
        let columns = ty.columns.iter().map(|column| &*column.name);
        assert_eq!(columns.collect::<Vec<_>>(), ["Status", "Message", "Error"]);
        let known: Vec<Value> = components().collect();
        assert_eq!(
            healthy(&known[2]),
            &json!({"type": "Healthy", "status": "True", "message": "ok"})
        );
        assert_eq!(healthy(&json!({})), &Value::Null);
        for component in &known {
            assert!(ty.schema().validate(component, None).is_empty(), "{component}");
        }
    }
}
