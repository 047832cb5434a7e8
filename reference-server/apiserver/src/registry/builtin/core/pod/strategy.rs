use serde_json::Value;

use crate::registry::strategy::{ProxyTarget, Strategy};

/// The grace period of a pod that does not name one, in seconds.
const DEFAULT_GRACE: i64 = 30;

#[derive(Debug)]
pub(super) struct PodStrategy;

impl Strategy for PodStrategy {
    fn proxy_target(&self) -> Option<ProxyTarget> {
        Some(ProxyTarget::Pod)
    }

    /// A running pod gets time to stop. A pod without a node or in a final phase does not need it.
    fn grace_period(&self, pod: &Value, asked: Option<i64>) -> i64 {
        let text = |pointer: &str| pod.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        if text("/spec/nodeName").is_empty()
            || matches!(text("/status/phase"), "Succeeded" | "Failed")
        {
            return 0;
        }
        let own = pod.pointer("/spec/terminationGracePeriodSeconds").and_then(Value::as_i64);
        match asked.or(own).unwrap_or(DEFAULT_GRACE) {
            negative if negative < 0 => 1,
            grace => grace,
        }
    }
}
