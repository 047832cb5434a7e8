//! The metrics of admission plugins and webhooks.

use std::time::Instant;

use prometheus::{HistogramVec, IntCounterVec, Registry};

use super::families::{counters, histograms, register};

/// The bounds of durations of admission plugins, in seconds.
const PLUGIN_BUCKETS: [f64; 6] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5];
/// The bounds of durations of webhooks, in seconds.
const WEBHOOK_BUCKETS: [f64; 8] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 25.0];

/// The metrics of admission plugins and webhooks.
#[derive(Clone, Debug)]
pub(crate) struct AdmissionMetrics {
    plugins: HistogramVec,
    webhooks: HistogramVec,
    webhook_requests: IntCounterVec,
    webhook_rejections: IntCounterVec,
}

/// A run of an admission plugin, or a call of a webhook.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Admission<'a> {
    /// The name of the plugin or webhook.
    pub(crate) name: &'a str,
    /// `admit` or `validate` for plugins, `admit` or `validating` for webhooks.
    pub(crate) kind: &'a str,
    /// Such as `CREATE`.
    pub(crate) operation: &'a str,
    pub(crate) is_rejected: bool,
    pub(crate) since: Instant,
}

impl AdmissionMetrics {
    pub(super) fn new(registry: &Registry) -> Self {
        let labels = ["name", "type", "operation", "rejected"];
        let metrics = Self {
            plugins: histograms(
                "apiserver_admission_controller_admission_duration_seconds",
                "Time of admission plugins.",
                &labels,
                &PLUGIN_BUCKETS,
            ),
            webhooks: histograms(
                "apiserver_admission_webhook_admission_duration_seconds",
                "Time of admission webhooks.",
                &labels,
                &WEBHOOK_BUCKETS,
            ),
            webhook_requests: counters(
                "apiserver_admission_webhook_request_total",
                "Calls of admission webhooks by the code of the response.",
                &["name", "type", "operation", "code", "rejected"],
            ),
            webhook_rejections: counters(
                "apiserver_admission_webhook_rejection_count",
                "Requests that admission webhooks rejected.",
                &["name", "type", "operation", "error_type", "rejection_code"],
            ),
        };
        register(registry, metrics.plugins.clone());
        register(registry, metrics.webhooks.clone());
        register(registry, metrics.webhook_requests.clone());
        register(registry, metrics.webhook_rejections.clone());
        metrics
    }

    /// Records the run of a plugin.
    pub(crate) fn plugin(&self, run: Admission<'_>) {
        run.observe(&self.plugins);
    }

    /// Records the call of a webhook. `failed` tells that it gave no valid response.
    pub(crate) fn webhook(&self, call: Admission<'_>, code: u16, failed: bool) {
        call.observe(&self.webhooks);
        let Admission { name, kind, operation, is_rejected, .. } = call;
        let code = code.to_string();
        let values = [name, kind, operation, &code, text(is_rejected)];
        self.webhook_requests.with_label_values(&values).inc();
        if is_rejected {
            let error = if failed { "calling_webhook_error" } else { "no_error" };
            // As in kube-apiserver, a failed call has the code 0.
            let code = if failed { "0" } else { &code };
            let values = [name, kind, operation, error, code];
            self.webhook_rejections.with_label_values(&values).inc();
        }
    }
}

impl Admission<'_> {
    fn observe(&self, durations: &HistogramVec) {
        let values = [self.name, self.kind, self.operation, text(self.is_rejected)];
        durations.with_label_values(&values).observe(self.since.elapsed().as_secs_f64());
    }
}

fn text(value: bool) -> &'static str {
    if value { "true" } else { "false" }
}
