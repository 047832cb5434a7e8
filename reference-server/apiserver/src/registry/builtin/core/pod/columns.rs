//! The table columns of pods.

use serde_json::{Value, json};

use kubeproof_apimachinery::table::column::{Cell, Column, age, column, wide};

pub(super) fn columns() -> Vec<Column> {
    vec![
        column("Ready", "string", Cell::Computed(ready)),
        column("Status", "string", Cell::Computed(|pod| json!(status(pod)))),
        column("Restarts", "string", Cell::Computed(restarts)),
        age(),
        wide("IP", "string", Cell::Pointer("/status/podIP")),
        wide("Node", "string", Cell::Pointer("/spec/nodeName")),
        wide("Nominated Node", "string", Cell::Pointer("/status/nominatedNodeName")),
        wide("Readiness Gates", "string", Cell::Computed(readiness_gates)),
    ]
}

fn statuses(pod: &Value) -> impl Iterator<Item = &Value> {
    pod["status"]["containerStatuses"].as_array().into_iter().flatten()
}

fn ready(pod: &Value) -> Value {
    let ready = statuses(pod).filter(|status| status["ready"] == true).count();
    let all = pod["spec"]["containers"].as_array().map_or(0, Vec::len);
    json!(format!("{ready}/{all}"))
}

/// Returns the reason why a container waits or has ended, or the phase.
fn status(pod: &Value) -> String {
    if pod["metadata"].get("deletionTimestamp").is_some() {
        return "Terminating".to_owned();
    }
    let state =
        |status: &Value, name: &str| status["state"][name]["reason"].as_str().map(str::to_owned);
    let container = statuses(pod)
        .find_map(|status| state(status, "waiting").or_else(|| state(status, "terminated")));
    let own = |field: &str| pod["status"][field].as_str().map(str::to_owned);
    container.or_else(|| own("reason")).or_else(|| own("phase")).unwrap_or_default()
}

fn restarts(pod: &Value) -> Value {
    let sum: i64 = statuses(pod).filter_map(|status| status["restartCount"].as_i64()).sum();
    json!(sum.to_string())
}

fn readiness_gates(pod: &Value) -> Value {
    let Some(gates) = pod["spec"]["readinessGates"].as_array() else { return json!("<none>") };
    let conditions = || pod["status"]["conditions"].as_array().into_iter().flatten();
    let holds = |gate: &&Value| {
        conditions().any(|condition| {
            condition["type"] == gate["conditionType"] && condition["status"] == "True"
        })
    };
    json!(format!("{}/{}", gates.iter().filter(holds).count(), gates.len()))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(json!({"phase": "Pending"}), "0/1", "Pending", "0")]
    #[case(
        json!({"phase": "Running", "containerStatuses": [{"ready": true, "restartCount": 2}]}),
        "1/1",
        "Running",
        "2"
    )]
    #[case(
        json!({
            "phase": "Pending",
            "containerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff"}}}],
        }),
        "0/1",
        "ImagePullBackOff",
        "0"
    )]
    fn cells(
        #[case] observed: Value,
        #[case] is_ready: &str,
        #[case] state: &str,
        #[case] restarted: &str,
    ) {
        let pod = json!({"spec": {"containers": [{"name": "c"}]}, "status": observed});
        assert_eq!(ready(&pod), is_ready);
        assert_eq!(status(&pod), state);
        assert_eq!(restarts(&pod), restarted);
    }
}
