//! `MutatingAdmissionWebhook` and `ValidatingAdmissionWebhook`.
//!
//! A configuration takes effect with the next request, because [`Follower`] reads the log of the
//! store.

mod call;
mod configuration;
mod response;
mod review;
mod service;

use std::sync::Arc;

use futures_util::future::join_all;
use kubeproof_apimachinery::patch;
use kubeproof_apimachinery::status::ApiError;
use kubeproof_storage::Store;
use serde_json::{Value, json};

use self::call::Failure;
use self::configuration::Webhook;
use self::review::Invocation;
use super::{Attributes, Decision, Plugin, rules};
use crate::registry::follower::Follower;

/// The webhooks of all configurations of one kind.
struct Webhooks(Follower<Arc<[Webhook]>>);

impl Webhooks {
    /// Returns the webhooks in the order of their configurations' names.
    fn all(&self, store: &Store) -> Vec<Arc<[Webhook]>> {
        self.0.read(store, |all| all.values().cloned().collect())
    }

    fn handles(&self, request: &Attributes<'_>) -> bool {
        !rules::is_exempt(request) && self.0.read(request.context.store, |all| !all.is_empty())
    }
}

/// Calls the mutating webhooks one after the other.
pub(super) struct MutatingWebhooks(Webhooks);

impl Default for MutatingWebhooks {
    fn default() -> Self {
        let table = "mutatingwebhookconfigurations.admissionregistration.k8s.io";
        Self(Webhooks(Follower::new(table, configuration::parse)))
    }
}

impl Plugin for MutatingWebhooks {
    fn name(&self) -> &'static str {
        "MutatingAdmissionWebhook"
    }

    fn handles(&self, request: &Attributes<'_>) -> bool {
        self.0.handles(request)
    }

    fn mutates(&self) -> bool {
        true
    }

    fn mutate<'a>(&'a self, request: Attributes<'a>, object: &'a mut Value) -> Decision<'a> {
        Box::pin(self.dispatch(request, object))
    }
}

impl MutatingWebhooks {
    async fn dispatch(&self, request: Attributes<'_>, object: &mut Value) -> Result<(), ApiError> {
        request.reinvocation.begin_plugin(self.name(), object);
        let configurations = self.0.all(request.context.store);
        let webhooks = configurations.iter().flat_map(|webhooks| webhooks.iter());
        for (index, webhook) in webhooks.enumerate() {
            let Some(invocation) = Invocation::find(webhook, &request, object)? else { continue };
            if !request.reinvocation.may_run(self.name(), &webhook.id) {
                continue;
            }
            let changed = mutate(&invocation, &request, object, index).await?;
            if changed {
                request.reinvocation.object_changed(self.name());
            }
            if webhook.reinvokes {
                request.reinvocation.may_run_again(self.name(), &webhook.id);
            }
        }
        request.reinvocation.end_plugin(self.name(), object);
        Ok(())
    }
}

/// Calls a webhook, and applies its patch. Returns whether the object changed.
async fn mutate(
    invocation: &Invocation<'_>,
    request: &Attributes<'_>,
    object: &mut Value,
    index: usize,
) -> Result<bool, ApiError> {
    let webhook = invocation.webhook;
    let round = u8::from(request.reinvocation.is_second_run());
    let place = format!("round_{round}_index_{index}");
    let shown = invocation.shown(request, object);
    let changed = match call::call(invocation, request, &shown).await {
        Ok(None) => false,
        Ok(Some(_)) if object.is_null() => {
            return Err(ApiError::internal_cause(&format!(
                "admission webhook {:?} attempted to modify the object, which is not supported \
                 for this operation",
                webhook.name
            )));
        }
        Ok(Some(document)) => {
            let patched = patch::json::apply(&shown, &document)
                .map_err(|error| ApiError::internal_cause(&error))?;
            let key = format!("patch.webhook.admission.k8s.io/{place}");
            let value = json!({
                "configuration": webhook.configuration, "webhook": webhook.name,
                "patch": document, "patchType": "JSONPatch",
            });
            request.record.annotate(key, value.to_string());
            let patched = invocation.restore(request, patched)?;
            let changed = patched != *object;
            *object = patched;
            changed
        }
        Err(failure) => {
            failure.decide(
                webhook,
                request,
                &format!("mutation.webhook.admission.k8s.io/{place}"),
            )?;
            false
        }
    };
    let value = json!({
        "configuration": webhook.configuration, "webhook": webhook.name, "mutated": changed,
    });
    let key = format!("mutation.webhook.admission.k8s.io/{place}");
    request.record.annotate(key, value.to_string());
    Ok(changed)
}

/// Calls the validating webhooks at the same time.
pub(super) struct ValidatingWebhooks(Webhooks);

impl Default for ValidatingWebhooks {
    fn default() -> Self {
        let table = "validatingwebhookconfigurations.admissionregistration.k8s.io";
        Self(Webhooks(Follower::new(table, configuration::parse)))
    }
}

impl Plugin for ValidatingWebhooks {
    fn name(&self) -> &'static str {
        "ValidatingAdmissionWebhook"
    }

    fn handles(&self, request: &Attributes<'_>) -> bool {
        self.0.handles(request)
    }

    fn validate<'a>(&'a self, request: Attributes<'a>, object: &'a Value) -> Decision<'a> {
        Box::pin(self.dispatch(request, object))
    }
}

impl ValidatingWebhooks {
    async fn dispatch(&self, request: Attributes<'_>, object: &Value) -> Result<(), ApiError> {
        let configurations = self.0.all(request.context.store);
        let mut invocations = Vec::new();
        for webhook in configurations.iter().flat_map(|webhooks| webhooks.iter()) {
            invocations.extend(Invocation::find(webhook, &request, object)?);
        }
        let calls = invocations.iter().enumerate().map(|(index, invocation)| async move {
            let shown = invocation.shown(&request, object);
            let result = call::call(invocation, &request, &shown).await;
            let place = format!("validating.webhook.admission.k8s.io/round_0_index_{index}");
            match result {
                Ok(_) => Ok(()),
                Err(failure) => failure.decide(invocation.webhook, &request, &place),
            }
        });
        join_all(calls).await.into_iter().collect()
    }
}

impl Failure {
    /// Applies the failure policy: returns an error, or records that the webhook was ignored.
    fn decide(
        self,
        webhook: &Webhook,
        request: &Attributes<'_>,
        place: &str,
    ) -> Result<(), ApiError> {
        match self {
            Self::Rejected(error) => Err(*error),
            Self::Failed(_) if webhook.ignores_failures => {
                request.record.annotate(format!("failed-open.{place}"), webhook.name.clone());
                Ok(())
            }
            Self::Failed(why) => {
                let why = format!("failed calling webhook {:?}: {why}", webhook.name);
                Err(ApiError::internal_cause(&why))
            }
        }
    }
}
