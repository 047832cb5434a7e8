//! Families of metrics whose series belong to resources.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus::core::{MetricVec, MetricVecBuilder};

/// Separates the values of the labels of a series. No value contains it.
const SEPARATOR: &str = "\0";

/// A family of metrics that removes the series of a resource with the resource. `M` is the type of
/// one series.
#[derive(Clone, Debug)]
pub(super) struct ResourceFamily<F, M> {
    family: F,
    series: Arc<Mutex<KnownSeries<M>>>,
}

/// The series by group, resource and label values.
type KnownSeries<M> = BTreeMap<String, BTreeMap<String, BTreeMap<String, M>>>;

impl<B: MetricVecBuilder> ResourceFamily<MetricVec<B>, B::M> {
    pub(super) fn new(family: MetricVec<B>) -> Self {
        Self { family, series: Arc::default() }
    }

    /// Returns the family for a registry.
    pub(super) fn family(&self) -> MetricVec<B> {
        self.family.clone()
    }

    /// Returns the series with these values of all labels. It is one of a group and resource.
    pub(super) fn series(&self, (group, resource): (&str, &str), values: &[&str]) -> B::M {
        let labels = values.join(SEPARATOR);
        let mut series = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        let known = series.get(group).and_then(|resources| resources.get(resource));
        if let Some(metric) = known.and_then(|known| known.get(&labels)) {
            return metric.clone();
        }
        // Still under the lock: a removal must see the series in both places.
        let metric = self.family.with_label_values(values);
        let resources = series.entry(group.to_owned()).or_default();
        resources.entry(resource.to_owned()).or_default().insert(labels, metric.clone());
        metric
    }

    /// Removes the series of the resources that `is_served` is false for.
    pub(super) fn retain(&self, is_served: impl Fn(&str, &str) -> bool) {
        let mut series = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        for (group, resources) in series.iter_mut() {
            resources.retain(|resource, known| {
                if is_served(group, resource) {
                    return true;
                }
                for labels in known.keys() {
                    self.remove(labels);
                }
                false
            });
        }
        series.retain(|_, resources| !resources.is_empty());
    }

    fn remove(&self, labels: &str) {
        let values: Vec<&str> = labels.split(SEPARATOR).collect();
        // Only `series` adds series, with the values that it notes.
        let _ = self.family.remove_label_values(&values);
    }
}

#[cfg(test)]
mod tests {
    use prometheus::core::Collector as _;
    use prometheus::proto::MetricFamily;

    use super::super::families::counters;
    use super::*;

    #[test]
    fn the_series_of_a_resource_end_with_it() {
        let family = ResourceFamily::new(counters("requests", "Requests.", &["verb", "resource"]));
        for (resource, verb) in [("pods", "GET"), ("widgets", "GET"), ("widgets", ""), ("", "GET")]
        {
            family.series(("", resource), &[verb, resource]).inc();
        }

        family.retain(|_, resource| resource != "widgets");

        let families = family.family().collect();
        let series = families.iter().flat_map(MetricFamily::get_metric);
        let resources: Vec<_> = series.map(|series| series.get_label()[0].value()).collect();
        assert_eq!(resources.len(), 2, "{resources:?}");
        assert!(!resources.contains(&"widgets"), "{resources:?}");
        family.series(("", "widgets"), &["GET", "widgets"]).inc();
        assert_eq!(family.series(("", "widgets"), &["GET", "widgets"]).get(), 1, "it began again");
    }
}
