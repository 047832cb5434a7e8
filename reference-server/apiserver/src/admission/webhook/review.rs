//! The requests to webhooks: `AdmissionReview` in the version of the rule.

use std::borrow::Cow;

use kubeproof_apimachinery::status::ApiError;
use serde_json::{Value, json};

use super::super::rules::Match;
use super::super::{Attributes, variables};
use super::configuration::Webhook;

/// A webhook that a request must be sent to.
pub(super) struct Invocation<'w> {
    pub(super) webhook: &'w Webhook,
    found: Match,
}

impl<'w> Invocation<'w> {
    /// Returns how to call a webhook for a request, or none if it is not called.
    pub(super) fn find(
        webhook: &'w Webhook,
        request: &Attributes<'_>,
        object: &Value,
    ) -> Result<Option<Self>, ApiError> {
        let Some(found) = webhook.constraints.matches(request, object)? else { return Ok(None) };
        let invocation = Self { webhook, found };
        if webhook.conditions.is_empty() {
            return Ok(Some(invocation));
        }
        let shown = invocation.shown(request, object);
        let old = invocation.old(request);
        let roots = variables::roots(request, &shown, old.as_deref());
        let holds =
            webhook.conditions.hold(&roots, &[]).map_err(|why| request.forbidden(object, &why))?;
        Ok(holds.then_some(invocation))
    }

    /// Returns the object in the version of the rule.
    pub(super) fn shown<'v>(&self, request: &Attributes<'_>, object: &'v Value) -> Cow<'v, Value> {
        self.found.shown(request, object)
    }

    fn old<'v>(&self, request: &Attributes<'v>) -> Option<Cow<'v, Value>> {
        request.old.map(|old| self.shown(request, old))
    }

    /// Returns a patched object in the version of the request, with defaults.
    pub(super) fn restore(
        &self,
        request: &Attributes<'_>,
        patched: Value,
    ) -> Result<Value, ApiError> {
        self.found.restore(request, patched).map_err(|why| ApiError::internal_cause(&why))
    }

    /// Returns the body of the call.
    pub(super) fn review(
        &self,
        request: &Attributes<'_>,
        object: &Value,
        (version, uid): (&str, &str),
    ) -> Value {
        let ty = self.found.resource(request);
        let mut fields = variables::request(request, object);
        fields["uid"] = uid.into();
        fields["requestKind"] = fields["kind"].clone();
        fields["requestResource"] = fields["resource"].clone();
        if !request.info.subresource.is_empty() {
            fields["requestSubResource"] = request.info.subresource.as_str().into();
        }
        if let Match::Equivalent(_) = self.found {
            fields["resource"]["group"] = ty.group.as_str().into();
            fields["resource"]["version"] = ty.version.as_str().into();
            if request.info.subresource.is_empty() || request.info.subresource == "status" {
                fields["kind"]["group"] = ty.group.as_str().into();
                fields["kind"]["version"] = ty.version.as_str().into();
            }
        }
        fields["object"] = object.clone();
        fields["oldObject"] = self.old(request).as_deref().cloned().unwrap_or_default();
        json!({
            "kind": "AdmissionReview",
            "apiVersion": format!("admission.k8s.io/{version}"),
            "request": fields,
        })
    }
}
