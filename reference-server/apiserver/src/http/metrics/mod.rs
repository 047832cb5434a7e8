//! The metrics of `/metrics`, under the names of kube-apiserver.
//!
//! Only requests for served resources and health endpoints are counted, and the series of a
//! resource end with it. So the number of series is bounded, whatever names clients send and
//! define.

mod admission;
mod audit;
mod counts;
mod families;
mod resource_family;
mod storage;

use std::time::Instant;

use http::Method;
use kubeproof_apimachinery::request::{Query, ResourceInfo};
use prometheus::{
    Histogram, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
    TextEncoder,
};

pub(crate) use self::admission::{Admission, AdmissionMetrics};
use self::audit::AuditMetrics;
pub(crate) use self::counts::Counts;
use self::families::{REQUEST_BUCKETS, counters, gauges, histograms, known, register};
use self::resource_family::ResourceFamily;
pub(crate) use self::storage::{StorageMetrics, group_and_resource};

/// The media type of the text.
pub(crate) const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The metrics of a server.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    requests: ResourceFamily<IntCounterVec, IntCounter>,
    durations: ResourceFamily<HistogramVec, Histogram>,
    in_flight: IntGaugeVec,
    long_running: ResourceFamily<IntGaugeVec, IntGauge>,
    watch_events: ResourceFamily<IntCounterVec, IntCounter>,
    objects: IntGaugeVec,
    /// What the storage reports.
    pub(crate) storage: StorageMetrics,
    /// What admission reports.
    pub(crate) admission: AdmissionMetrics,
    audit: AuditMetrics,
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
            requests: ResourceFamily::new(counters(
                "apiserver_request_total",
                "Requests by verb, resource, scope and code.",
                &with(&["component", "code", "system_client"]),
            )),
            durations: ResourceFamily::new(histograms(
                "apiserver_request_duration_seconds",
                "Time until the response, without watches and connections.",
                &with(&["component"]),
                &REQUEST_BUCKETS,
            )),
            in_flight: gauges(
                "apiserver_current_inflight_requests",
                "Requests that run now, without watches and connections.",
                &["request_kind"],
            ),
            long_running: ResourceFamily::new(gauges(
                "apiserver_longrunning_requests",
                "Watches and connections that run now.",
                &running,
            )),
            watch_events: ResourceFamily::new(counters(
                "apiserver_watch_events_total",
                "Events that watches sent.",
                &["group", "version", "resource"],
            )),
            objects: gauges(
                "apiserver_resource_objects",
                "Stored objects by resource.",
                &["group", "resource"],
            ),
            storage: StorageMetrics::new(&registry),
            admission: AdmissionMetrics::new(&registry),
            audit: AuditMetrics::new(&registry),
            registry,
        };
        metrics.register_all();
        metrics
    }

    fn register_all(&self) {
        let registry = &self.registry;
        register(registry, self.requests.family());
        register(registry, self.durations.family());
        register(registry, self.in_flight.clone());
        register(registry, self.long_running.family());
        register(registry, self.watch_events.family());
        register(registry, self.objects.clone());
    }

    /// Counts a request with this status code, which began at this time.
    pub(crate) fn count(&self, labels: &RequestLabels, code: u16, since: Instant) {
        let code = code.to_string();
        let common = labels.common();
        let all = [&common[..], &[&code, ""]].concat();
        let resource = labels.resource();
        self.requests.series(resource, &all).inc();
        if !labels.is_long_running() {
            let seconds = since.elapsed().as_secs_f64();
            self.durations.series(resource, &common).observe(seconds);
        }
    }

    /// Counts a request as running. A watch or connection counts until its end.
    pub(crate) fn start(&self, labels: &RequestLabels) -> Running {
        let gauge = if labels.is_long_running() {
            let [verb, _, group, version, resource, subresource, scope, component] =
                labels.common();
            let values = [verb, group, version, resource, subresource, scope, component];
            self.long_running.series(labels.resource(), &values)
        } else {
            let kind = if matches!(labels.verb, "GET" | "LIST") { "readOnly" } else { "mutating" };
            self.in_flight.with_label_values(&[kind])
        };
        gauge.inc();
        Running(gauge)
    }

    /// Returns the counter of the events of a resource.
    pub(crate) fn watch_events(&self, group: &str, version: &str, resource: &str) -> IntCounter {
        self.watch_events.series((group, resource), &[group, version, resource])
    }

    /// Removes the series of the resources that `is_served` is false for. It gets the group and the
    /// resource.
    pub(crate) fn retain(&self, is_served: impl Fn(&str, &str) -> bool) {
        self.requests.retain(&is_served);
        self.durations.retain(&is_served);
        self.long_running.retain(&is_served);
        self.watch_events.retain(&is_served);
        self.storage.retain(&is_served);
    }

    /// Returns the text of all metrics.
    pub(crate) fn text(&self, counts: &Counts<'_>) -> String {
        self.audit.update(counts);
        self.storage.update(counts);
        self.objects.reset();
        for (group, resource, count) in &counts.objects {
            let count = i64::try_from(*count).unwrap_or(i64::MAX);
            self.objects.with_label_values(&[group, resource]).set(count);
        }
        // Only a metric without a name cannot be encoded.
        TextEncoder::new().encode_to_string(&self.registry.gather()).unwrap_or_default()
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

    /// Returns the group and the resource.
    fn resource(&self) -> (&str, &str) {
        (&self.group, &self.resource)
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
