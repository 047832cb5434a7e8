//! The metrics of `/metrics`, under the names of kube-apiserver.
//!
//! Only requests for served resources and health endpoints are counted. So the number of series is
//! bounded, whatever names clients send.

use std::time::Instant;

use http::Method;
use kubeproof_apimachinery::request::{Query, ResourceInfo};
use prometheus::core::Collector;
use prometheus::{
    HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
    TextEncoder,
};

/// The media type of the text.
pub(crate) const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The bounds of durations of requests, in seconds.
const REQUEST_BUCKETS: [f64; 23] = [
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0,
    10.0, 15.0, 20.0, 30.0, 45.0, 60.0,
];
/// The bounds of durations of admission plugins, in seconds.
const PLUGIN_BUCKETS: [f64; 6] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5];
/// The bounds of durations of webhooks, in seconds.
const WEBHOOK_BUCKETS: [f64; 8] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 25.0];

/// The metrics of a server.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    requests: IntCounterVec,
    durations: HistogramVec,
    in_flight: IntGaugeVec,
    long_running: IntGaugeVec,
    watch_events: IntCounterVec,
    objects: IntGaugeVec,
    /// What admission reports.
    pub(crate) admission: AdmissionMetrics,
    audit_events: IntCounter,
}

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

/// The labels of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestLabels {
    verb: &'static str,
    dry_run: &'static str,
    group: String,
    version: String,
    resource: String,
    subresource: String,
    scope: &'static str,
    component: &'static str,
}

/// Counts a request as running until it is dropped.
pub(crate) struct Running(IntGauge);

impl Metrics {
    /// Creates the metrics of a server of a version.
    pub(crate) fn new((major, minor): (&str, &str), git_version: &str) -> Self {
        let registry = Registry::new();
        let request = ["verb", "dry_run", "group", "version", "resource", "subresource", "scope"];
        let with = |more: &[&'static str]| [&request, more].concat();
        let running = ["verb", "group", "version", "resource", "subresource", "scope", "component"];
        let build = IntGaugeVec::new(
            Opts::new("kubernetes_build_info", "The version of the server."),
            &["major", "minor", "git_version"],
        );
        let build = known(build);
        build.with_label_values(&[major, minor, git_version]).set(1);
        register(&registry, build);
        #[cfg(target_os = "linux")]
        register(&registry, prometheus::process_collector::ProcessCollector::for_self());
        let metrics = Self {
            requests: counters(
                "apiserver_request_total",
                "Requests by verb, resource, scope and code.",
                &with(&["component", "code", "system_client"]),
            ),
            durations: histograms(
                "apiserver_request_duration_seconds",
                "Time until the response, without watches and connections.",
                &with(&["component"]),
                &REQUEST_BUCKETS,
            ),
            in_flight: gauges(
                "apiserver_current_inflight_requests",
                "Requests that run now, without watches and connections.",
                &["request_kind"],
            ),
            long_running: gauges(
                "apiserver_longrunning_requests",
                "Watches and connections that run now.",
                &running,
            ),
            watch_events: counters(
                "apiserver_watch_events_total",
                "Events that watches sent.",
                &["group", "version", "resource"],
            ),
            objects: gauges(
                "apiserver_resource_objects",
                "Stored objects by resource.",
                &["group", "resource"],
            ),
            admission: AdmissionMetrics::new(&registry),
            audit_events: known(IntCounter::new(
                "apiserver_audit_event_total",
                "Events in the audit log.",
            )),
            registry,
        };
        metrics.register_all();
        metrics
    }

    fn register_all(&self) {
        let registry = &self.registry;
        register(registry, self.requests.clone());
        register(registry, self.durations.clone());
        register(registry, self.in_flight.clone());
        register(registry, self.long_running.clone());
        register(registry, self.watch_events.clone());
        register(registry, self.objects.clone());
        register(registry, self.audit_events.clone());
    }

    /// Counts a request with this status code, which began at this time.
    pub(crate) fn count(&self, labels: &RequestLabels, code: u16, since: Instant) {
        let code = code.to_string();
        let common = labels.common();
        let all = [&common[..], &[&code, ""]].concat();
        self.requests.with_label_values(&all).inc();
        if !labels.is_long_running() {
            let seconds = since.elapsed().as_secs_f64();
            self.durations.with_label_values(&common).observe(seconds);
        }
    }

    /// Counts a request as running. A watch or connection counts until its end.
    pub(crate) fn start(&self, labels: &RequestLabels) -> Running {
        let gauge = if labels.is_long_running() {
            let [verb, _, group, version, resource, subresource, scope, component] =
                labels.common();
            let values = [verb, group, version, resource, subresource, scope, component];
            self.long_running.with_label_values(&values)
        } else {
            let kind = if matches!(labels.verb, "GET" | "LIST") { "readOnly" } else { "mutating" };
            self.in_flight.with_label_values(&[kind])
        };
        gauge.inc();
        Running(gauge)
    }

    /// Returns the counter of the events of a resource.
    pub(crate) fn watch_events(&self, group: &str, version: &str, resource: &str) -> IntCounter {
        self.watch_events.with_label_values(&[group, version, resource])
    }

    /// Returns the text of all metrics. `objects` has the number of objects of each group and
    /// resource, and `audit_events` the number of events in the audit log.
    pub(crate) fn text(&self, objects: &[(&str, &str, usize)], audit_events: u64) -> String {
        self.audit_events.reset();
        self.audit_events.inc_by(audit_events);
        self.objects.reset();
        for (group, resource, count) in objects {
            let count = i64::try_from(*count).unwrap_or(i64::MAX);
            self.objects.with_label_values(&[group, resource]).set(count);
        }
        // Only a metric without a name cannot be encoded.
        TextEncoder::new().encode_to_string(&self.registry.gather()).unwrap_or_default()
    }
}

impl AdmissionMetrics {
    fn new(registry: &Registry) -> Self {
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

impl RequestLabels {
    /// Returns the labels of a request for a resource.
    pub(crate) fn of_resource(
        info: &ResourceInfo,
        method: &Method,
        query: &Query,
        applies: bool,
    ) -> Self {
        let verb = verb(info, method, query.flag("watch"), applies);
        let scope = match (info.name.as_str(), info.namespace.as_str()) {
            _ if verb == "POST" => "resource",
            ("", "") => "cluster",
            ("", _) => "namespace",
            _ => "resource",
        };
        Self {
            verb,
            dry_run: if query.text("dryRun").is_some() { "All" } else { "" },
            group: info.group.clone(),
            version: info.version.clone(),
            resource: info.resource.clone(),
            subresource: info.subresource.clone(),
            scope,
            component: "apiserver",
        }
    }

    /// Returns the labels of a request for a health endpoint, or none for other paths.
    pub(crate) fn of_path(path: &str, method: &Method) -> Option<Self> {
        let is_counted = matches!(path, "/healthz" | "/livez" | "/readyz");
        (is_counted && *method == Method::GET).then(|| Self {
            verb: "GET",
            dry_run: "",
            group: String::new(),
            version: String::new(),
            resource: String::new(),
            subresource: path.to_owned(),
            scope: "",
            component: "",
        })
    }

    /// Returns whether the request is a watch or a connection.
    fn is_long_running(&self) -> bool {
        matches!(self.verb, "WATCH" | "CONNECT")
    }

    fn common(&self) -> [&str; 8] {
        let Self { verb, dry_run, group, version, resource, subresource, scope, component } = self;
        [verb, dry_run, group, version, resource, subresource, scope, component]
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.dec();
    }
}

fn verb(info: &ResourceInfo, method: &Method, watches: bool, applies: bool) -> &'static str {
    let connects = matches!(info.subresource.as_str(), "exec" | "attach" | "portforward" | "proxy");
    match info.verb(method, watches) {
        _ if connects => "CONNECT",
        "create" => "POST",
        "update" => "PUT",
        "patch" if applies => "APPLY",
        "patch" => "PATCH",
        "delete" => "DELETE",
        "deletecollection" => "DELETECOLLECTION",
        "list" => "LIST",
        "watch" => "WATCH",
        _ => "GET",
    }
}

fn text(value: bool) -> &'static str {
    if value { "true" } else { "false" }
}

fn counters(name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
    known(IntCounterVec::new(Opts::new(name, help), labels))
}

fn gauges(name: &str, help: &str, labels: &[&str]) -> IntGaugeVec {
    known(IntGaugeVec::new(Opts::new(name, help), labels))
}

fn histograms(name: &str, help: &str, labels: &[&str], buckets: &[f64]) -> HistogramVec {
    known(HistogramVec::new(HistogramOpts::new(name, help).buckets(buckets.to_vec()), labels))
}

/// Returns a metric whose name and labels are constants of this file.
fn known<M>(metric: prometheus::Result<M>) -> M {
    metric.expect("the name and the labels are valid")
}

fn register(registry: &Registry, metric: impl Collector + 'static) {
    registry.register(Box::new(metric)).expect("each name is registered once");
}
