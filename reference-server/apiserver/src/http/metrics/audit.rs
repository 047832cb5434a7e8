//! The metrics of the audit log.

use prometheus::{IntCounter, Registry};

use super::counts::Counts;
use super::families::{known, register};

/// The metrics of the audit log, which counts its events itself.
#[derive(Debug)]
pub(super) struct AuditMetrics {
    events: IntCounter,
    losses: IntCounter,
}

impl AuditMetrics {
    pub(super) fn new(registry: &Registry) -> Self {
        let counter = |name, help| {
            let counter = known(IntCounter::new(name, help));
            register(registry, counter.clone());
            counter
        };
        Self {
            events: counter("apiserver_audit_event_total", "Events in the audit log."),
            losses: counter("apiserver_audit_error_total", "Events that the audit log lacks."),
        }
    }

    pub(super) fn update(&self, counts: &Counts<'_>) {
        self.events.reset();
        self.events.inc_by(counts.audit_events);
        self.losses.reset();
        self.losses.inc_by(counts.audit_losses);
    }
}
