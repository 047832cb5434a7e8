//! The plugins in their order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use kubeproof_apimachinery::status::ApiError;
use serde_json::Value;

use super::certificates::{CertificateApproval, CertificateSigning, CertificateSubjectRestriction};
use super::claims::ClaimStatusPermission;
use super::default_class::{DefaultIngressClass, DefaultStorageClass};
use super::escalation::RoleEscalation;
use super::limit_ranger::LimitRanger;
use super::namespace_lifecycle::NamespaceLifecycle;
use super::nodes::{PodResizeValidator, PodTopologyLabels, TaintNodesByCondition};
use super::pod_security::PodSecurity;
use super::policy::{MutatingPolicies, ValidatingPolicies};
use super::priority::Priority;
use super::resource_quota::{PendingRequests, ResourceQuota};
use super::runtime_class::RuntimeClass;
use super::service_account::ServiceAccount;
use super::tolerations::DefaultTolerationSeconds;
use super::volumes::{PersistentVolumeClaimResize, StorageObjectInUseProtection};
use super::webhook::{MutatingWebhooks, ValidatingWebhooks};
use super::{Attributes, Plugin};
use crate::config::Options;
use crate::http::metrics::Admission;

/// The plugins of newer versions, and the minor version of Kubernetes that enables them.
const SINCE: [(&str, u32); 3] =
    [("PodTopologyLabels", 35), ("PodResizeValidator", 36), ("ClaimStatusPermission", 36)];

/// The plugins of a server.
pub(crate) struct Chain {
    plugins: Vec<Box<dyn Plugin>>,
}

impl Chain {
    /// Returns the enabled plugins in the order of kube-apiserver.
    pub(crate) fn new(options: &Options, pending: &Arc<PendingRequests>) -> Self {
        let newest = options.version.numbers().1.parse().unwrap_or_default();
        let mut plugins: Vec<Box<dyn Plugin>> = vec![
            Box::new(RoleEscalation),
            Box::new(ClaimStatusPermission),
            Box::new(NamespaceLifecycle),
            Box::new(LimitRanger),
            Box::new(ServiceAccount),
            Box::new(TaintNodesByCondition),
            Box::new(PodSecurity { newest }),
            Box::new(Priority),
            Box::new(DefaultTolerationSeconds),
            Box::new(DefaultStorageClass),
            Box::new(StorageObjectInUseProtection),
            Box::new(PersistentVolumeClaimResize),
            Box::new(RuntimeClass),
            Box::new(CertificateApproval),
            Box::new(CertificateSigning),
            Box::new(CertificateSubjectRestriction),
            Box::new(DefaultIngressClass),
            Box::new(PodTopologyLabels),
            Box::new(PodResizeValidator),
            Box::new(MutatingPolicies::default()),
            Box::new(MutatingWebhooks::default()),
            Box::new(ValidatingPolicies::default()),
            Box::new(ValidatingWebhooks::default()),
            Box::new(ResourceQuota { pending: Arc::clone(pending) }),
        ];
        let exists = |name| SINCE.iter().all(|(new, since)| name != *new || newest >= *since);
        plugins.retain(|plugin| options.admission_plugins.has(plugin.name()));
        plugins.retain(|plugin| exists(plugin.name()));
        Self { plugins }
    }

    /// Returns whether a plugin may change the object of the request.
    pub(crate) fn mutates(&self, request: &Attributes<'_>) -> bool {
        self.plugins.iter().any(|plugin| plugin.mutates() && plugin.handles(request))
    }

    /// Runs the mutating phase. If a plugin requests it, the whole phase runs a second time.
    pub(crate) async fn mutate(
        &self,
        request: Attributes<'_>,
        object: &mut Value,
    ) -> Result<(), ApiError> {
        self.mutate_once(request, object).await?;
        if request.reinvocation.begin_second_run() {
            self.mutate_once(request, object).await?;
        }
        Ok(())
    }

    async fn mutate_once(
        &self,
        request: Attributes<'_>,
        object: &mut Value,
    ) -> Result<(), ApiError> {
        for plugin in self.plugins.iter().filter(|plugin| plugin.handles(&request)) {
            let since = Instant::now();
            let result = plugin.mutate(request, object).await;
            observe(plugin.name(), "admit", &request, (result.is_err(), since));
            result?;
        }
        Ok(())
    }

    /// Runs the validating phase.
    pub(crate) async fn validate(
        &self,
        request: Attributes<'_>,
        object: &Value,
    ) -> Result<(), ApiError> {
        for plugin in self.plugins.iter().filter(|plugin| plugin.handles(&request)) {
            let since = Instant::now();
            let result = plugin.validate(request, object).await;
            observe(plugin.name(), "validate", &request, (result.is_err(), since));
            result?;
        }
        Ok(())
    }
}

fn observe(
    name: &str,
    kind: &str,
    request: &Attributes<'_>,
    (is_rejected, since): (bool, Instant),
) {
    let operation = request.operation.name();
    request.metrics.plugin(Admission { name, kind, operation, is_rejected, since });
}

/// The webhooks and policies that run again for a request. It tells the first run from the second.
#[derive(Debug, Default)]
pub(crate) struct Reinvocation(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    is_second_run: bool,
    requested: bool,
    plugins: BTreeMap<&'static str, PluginState>,
}

/// The state of one plugin, such as that of webhooks.
#[derive(Debug, Default)]
struct PluginState {
    /// The object after the first run.
    output: Value,
    /// What may run again if the object changes.
    candidates: BTreeSet<String>,
    /// What runs again.
    due: BTreeSet<String>,
}

impl PluginState {
    fn require_candidates(&mut self) {
        self.due.append(&mut self.candidates);
    }
}

impl Reinvocation {
    /// Starts the second run if a plugin requested it. There is no third one.
    fn begin_second_run(&self) -> bool {
        let mut state = self.state();
        let begins = state.requested && !state.is_second_run;
        state.is_second_run |= begins;
        begins
    }

    /// Returns whether this is the second run.
    pub(super) fn is_second_run(&self) -> bool {
        self.state().is_second_run
    }

    /// Begins the run of a plugin. If other plugins changed its output, all candidates run again.
    pub(super) fn begin_plugin(&self, plugin: &'static str, object: &Value) {
        let mut state = self.state();
        let is_second_run = state.is_second_run;
        let own = state.plugins.entry(plugin).or_default();
        if is_second_run && own.output != *object {
            own.require_candidates();
        }
    }

    /// Ends the run of a plugin, whose output is the object.
    pub(super) fn end_plugin(&self, plugin: &'static str, object: &Value) {
        self.state().plugins.entry(plugin).or_default().output = object.clone();
    }

    /// Returns whether a webhook or policy runs. In the second run, only those run that are due.
    pub(super) fn may_run(&self, plugin: &'static str, id: &str) -> bool {
        let state = self.state();
        let due = || state.plugins.get(plugin).is_some_and(|own| own.due.contains(id));
        !state.is_second_run || due()
    }

    /// Records that a webhook or policy of the plugin changed the object, so earlier candidates of
    /// it run again.
    pub(super) fn object_changed(&self, plugin: &'static str) {
        let mut state = self.state();
        state.requested = true;
        state.plugins.entry(plugin).or_default().require_candidates();
    }

    /// Records that a webhook or policy ran, and runs again if the object changes.
    pub(super) fn may_run_again(&self, plugin: &'static str, id: &str) {
        self.state().plugins.entry(plugin).or_default().candidates.insert(id.to_owned());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
