//! The metrics of the storage. As in kube-apiserver, they have the name of etcd with each storage.

use kubeproof_storage::Request;
use prometheus::{Histogram, HistogramVec, IntCounter, IntCounterVec, IntGaugeVec, Registry};

use super::counts::Counts;
use super::families::{REQUEST_BUCKETS, counters, gauges, histograms, register};
use super::resource_family::ResourceFamily;

/// The metrics of requests to the storage.
#[derive(Clone, Debug)]
pub(crate) struct StorageMetrics {
    durations: ResourceFamily<HistogramVec, Histogram>,
    requests: ResourceFamily<IntCounterVec, IntCounter>,
    errors: ResourceFamily<IntCounterVec, IntCounter>,
    /// The number of objects under the older name.
    objects: IntGaugeVec,
    size: IntGaugeVec,
}

impl StorageMetrics {
    pub(super) fn new(registry: &Registry) -> Self {
        let labels = ["operation", "group", "resource"];
        let metrics = Self {
            durations: ResourceFamily::new(histograms(
                "etcd_request_duration_seconds",
                "Time of requests to the storage.",
                &labels,
                &REQUEST_BUCKETS,
            )),
            requests: ResourceFamily::new(counters(
                "etcd_requests_total",
                "Requests to the storage.",
                &labels,
            )),
            errors: ResourceFamily::new(counters(
                "etcd_request_errors_total",
                "Requests to the storage that failed.",
                &labels,
            )),
            objects: gauges(
                "apiserver_storage_objects",
                "Stored objects by resource. Replaced by apiserver_resource_objects.",
                &["resource"],
            ),
            size: gauges(
                "apiserver_storage_size_bytes",
                "The size of the files of the storage.",
                &["storage_cluster_id"],
            ),
        };
        register(registry, metrics.objects.clone());
        register(registry, metrics.size.clone());
        register(registry, metrics.durations.family());
        register(registry, metrics.requests.family());
        register(registry, metrics.errors.family());
        metrics
    }

    pub(super) fn update(&self, counts: &Counts<'_>) {
        self.objects.reset();
        for (group, resource, count) in &counts.objects {
            let count = i64::try_from(*count).unwrap_or(i64::MAX);
            self.objects.with_label_values(&[qualified(group, resource).as_str()]).set(count);
        }
        if let Some(size) = counts.storage_size {
            self.size.with_label_values(&["default"]).set(i64::try_from(size).unwrap_or(i64::MAX));
        }
    }

    /// Counts a request to the storage.
    pub(crate) fn count(&self, request: Request<'_>) {
        let (resource, group) = group_and_resource(request.table);
        let values = [request.operation, group, resource];
        let resource = (group, resource);
        self.durations.series(resource, &values).observe(request.duration.as_secs_f64());
        self.requests.series(resource, &values).inc();
        if request.is_failed {
            self.errors.series(resource, &values).inc();
        }
    }

    pub(super) fn retain(&self, is_served: impl Fn(&str, &str) -> bool) {
        self.durations.retain(&is_served);
        self.requests.retain(&is_served);
        self.errors.retain(&is_served);
    }
}

/// Returns the resource and the group of a table.
pub(crate) fn group_and_resource(table: &str) -> (&str, &str) {
    table.split_once('.').unwrap_or((table, ""))
}

/// Returns the name of a resource with its group.
fn qualified(group: &str, resource: &str) -> String {
    if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") }
}
