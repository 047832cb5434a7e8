//! The initial variables of a case.

use serde_json::json;

use super::{PlannedRun, RunPod};
use crate::values::Values;

/// Returns the initial variables of a case.
pub(crate) fn base_values(
    planned: &PlannedRun,
    namespace: &str,
    run: &str,
    pod: &RunPod,
) -> Values {
    let mut values = Values::new();
    for (name, value) in pod.variables(namespace) {
        values.set(name, value);
    }
    if let Some(protocol) = &planned.protocol {
        values.set("protocol", json!(protocol.to_string()));
        values.set("protocol.name", json!(protocol.name));
        values.set("protocol.over", json!(protocol.over.to_string()));
    }
    values.set("name", json!(planned.name));
    values.set("run", json!(run));
    let Some(subject) = &planned.subject else {
        values.set("ns", json!(namespace));
        return values;
    };
    values.set("ns", json!(if subject.namespaced { namespace } else { "" }));
    values.set("collection", json!(subject.collection(namespace)));
    values.set("collection.all", json!(subject.collection_of_all()));
    values.set("subject", subject.variables(namespace));
    values
}
