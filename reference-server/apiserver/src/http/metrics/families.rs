//! Families of metrics, whose names and labels are constants.

use prometheus::core::Collector;
use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, IntGaugeVec, Opts, Registry};

/// The bounds of durations of requests, in seconds.
pub(super) const REQUEST_BUCKETS: [f64; 23] = [
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0,
    10.0, 15.0, 20.0, 30.0, 45.0, 60.0,
];
pub(super) fn counters(name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
    known(IntCounterVec::new(Opts::new(name, help), labels))
}

pub(super) fn gauges(name: &str, help: &str, labels: &[&str]) -> IntGaugeVec {
    known(IntGaugeVec::new(Opts::new(name, help), labels))
}

pub(super) fn histograms(name: &str, help: &str, labels: &[&str], buckets: &[f64]) -> HistogramVec {
    known(HistogramVec::new(HistogramOpts::new(name, help).buckets(buckets.to_vec()), labels))
}

/// Returns a metric whose name and labels are constants.
pub(super) fn known<M>(metric: prometheus::Result<M>) -> M {
    metric.expect("the name and the labels are valid")
}

pub(super) fn register(registry: &Registry, metric: impl Collector + 'static) {
    registry.register(Box::new(metric)).expect("each name is registered once");
}
