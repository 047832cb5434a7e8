//! Defaults of single built-in kinds that clients do not see.

use serde_json::{Value, json};

use crate::middleware::{Middleware, objects};
use crate::set::Fault;

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    let (resource, defaults) = match fault {
        Fault::PodsWithoutDefaults => {
            let spec = json!({
                "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "priority": 0,
            });
            ("pods", json!({ "spec": spec, "status": { "qosClass": "BestEffort" } }))
        }
        Fault::CronJobsWithoutPolicy => {
            ("cronjobs", json!({ "spec": { "concurrencyPolicy": "Allow" } }))
        }
        Fault::JobsWithoutSelector => {
            return Some(objects(|request, object| {
                if request.target().resource == "jobs"
                    && let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut)
                {
                    spec.remove("selector");
                }
            }));
        }
        _ => return None,
    };
    // The items of lists have no kind.
    Some(objects(move |request, object| {
        if request.target().resource == resource {
            hide(object, &defaults);
        }
    }))
}

/// Removes the members that are equal to those of another document.
fn hide(object: &mut Value, defaults: &Value) {
    let (Some(fields), Some(defaults)) = (object.as_object_mut(), defaults.as_object()) else {
        return;
    };
    for (name, default) in defaults {
        if fields.get(name) == Some(default) {
            fields.remove(name);
        } else if let Some(value) = fields.get_mut(name) {
            hide(value, default);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_values_that_are_equal_to_the_default_are_hidden() {
        let mut object = json!({ "spec": { "a": 1, "b": 2, "c": 3 } });
        hide(&mut object, &json!({ "spec": { "a": 1, "b": 1 }, "status": { "d": 4 } }));
        assert_eq!(object, json!({ "spec": { "b": 2, "c": 3 } }));
    }
}
