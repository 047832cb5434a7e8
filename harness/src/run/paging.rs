//! Probes pages with objects of the run, once. The conventions let a server ignore limits.

use kubeproof_cases::case::Capability;
use serde_json::json;
use tokio::time::Instant;

use super::case::Session;
use crate::capability::{ignores_limit, outgoing};
use crate::cleanup::Tracker;
use crate::event::SkipReason;
use crate::plan::{PlannedRun, Subject};

/// Objects of the probe. A server with an error in its limit may return two for a limit of one.
const OBJECTS: usize = 3;

/// The probe found too few objects, so another case probes again.
struct Undecided;

impl Session {
    /// Returns why a case about pages is skipped, or `None`.
    pub(super) async fn unsupported_paging(
        &self,
        planned: &PlannedRun,
        tracker: &Tracker,
        deadline: Instant,
    ) -> Option<SkipReason> {
        let subject = planned.subject.as_deref()?;
        if !planned.case.needs.contains(&Capability::Paging) {
            return None;
        }
        let probe = || self.probe_paging(subject, planned, (tracker, deadline));
        self.paging.get_or_try_init(probe).await.ok()?.clone()
    }

    async fn probe_paging(
        &self,
        subject: &Subject,
        planned: &PlannedRun,
        (tracker, deadline): (&Tracker, Instant),
    ) -> Result<Option<SkipReason>, Undecided> {
        let collection = subject.collection(&self.namespace);
        if self.client.may_send("POST", &collection) {
            for number in 0..OBJECTS {
                let mut object = subject.variables(&self.namespace)["template"].take();
                object["apiVersion"] = json!(subject.api_version());
                object["kind"] = json!(subject.kind);
                object["metadata"]["name"] = json!(format!("{}-page{number}", planned.name));
                let request = outgoing("POST", &collection, "application/json", Some(&object));
                let intent = tracker.intend(&request);
                let created = self.client.send(request, deadline).await;
                tracker.settle(&intent, &created);
            }
        }
        let request = outgoing("GET", &format!("{collection}?limit=1"), "application/json", None);
        let list = self.client.send(request, deadline).await;
        match ignores_limit(&list, &collection) {
            Some(Ok(())) => Ok(None),
            Some(Err(detail)) => {
                let capability = Capability::Paging;
                Ok(Some(SkipReason::MissingCapability { capability, detail }))
            }
            None => Err(Undecided),
        }
    }
}
