//! Probes for the configuration of admission.

use serde_json::{Value, json};

use super::{ProbeResult, Requester, Resources, creatable, creatable_by_dry_run, named, root_of};
use crate::capability::ProbeOptions;

const GROUP: &str = "admissionregistration.k8s.io";

/// A kind of configuration.
#[derive(Clone, Copy)]
pub(super) enum Admission {
    ValidatingPolicy,
    MutatingPolicy,
    ValidatingWebhook,
}

impl Admission {
    /// Returns the resources that cases create. The first one is that of [`Self::manifest`].
    fn resources(self) -> &'static [&'static str] {
        match self {
            Self::ValidatingPolicy => {
                &["validatingadmissionpolicies", "validatingadmissionpolicybindings"]
            }
            Self::MutatingPolicy => {
                &["mutatingadmissionpolicies", "mutatingadmissionpolicybindings"]
            }
            Self::ValidatingWebhook => &["validatingwebhookconfigurations"],
        }
    }

    fn manifest(self, name: &str) -> Value {
        let (kind, field, content) = match self {
            Self::ValidatingPolicy => (
                "ValidatingAdmissionPolicy",
                "spec",
                json!({
                    "matchConstraints": nothing(), "validations": [{"expression": "true"}],
                }),
            ),
            Self::MutatingPolicy => (
                "MutatingAdmissionPolicy",
                "spec",
                json!({
                    "matchConstraints": nothing(), "reinvocationPolicy": "Never",
                    "mutations": [{
                        "patchType": "ApplyConfiguration",
                        "applyConfiguration": {"expression": "Object{}"},
                    }],
                }),
            ),
            Self::ValidatingWebhook => ("ValidatingWebhookConfiguration", "webhooks", json!([])),
        };
        let mut manifest = json!({
            "apiVersion": format!("{GROUP}/v1"), "kind": kind, "metadata": {"name": name},
        });
        manifest[field] = content;
        manifest
    }
}

/// Returns constraints that no object matches.
fn nothing() -> Value {
    json!({
        "objectSelector": {"matchLabels": {"kubeproof-policy": "none"}},
        "resourceRules": [{
            "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
            "resources": ["configmaps"],
        }],
    })
}

/// Reports whether the run may configure admission.
pub(super) async fn admission(
    requester: &Requester<'_>,
    resources: &Resources,
    options: &ProbeOptions<'_>,
    admission: Admission,
) -> ProbeResult {
    let [first, ..] = admission.resources() else { return Ok(()) };
    for plural in admission.resources() {
        creatable(resources, &named(plural, "v1", GROUP))?;
    }
    let collection = format!("{}/{first}", root_of(&named(first, "v1", GROUP)));
    let manifest = admission.manifest(options.probe_name);
    creatable_by_dry_run(requester, options, &collection, &manifest).await
}
