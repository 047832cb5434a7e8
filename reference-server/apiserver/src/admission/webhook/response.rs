//! The responses of webhooks.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kubeproof_apimachinery::serializer::json;
use kubeproof_apimachinery::status::ApiError;
use serde::Deserialize;
use serde_json::{Value, json};

/// The part `response` of an `AdmissionReview`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Response {
    uid: String,
    pub(super) allowed: bool,
    status: Option<Value>,
    patch: Option<String>,
    patch_type: Option<String>,
    pub(super) audit_annotations: Option<BTreeMap<String, String>>,
    pub(super) warnings: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Review {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    response: Option<Response>,
}

impl Response {
    /// Parses the body of a response, and checks that it belongs to the request. The error is a
    /// message for the user.
    pub(super) fn read(
        body: &[u8],
        (version, uid): (&str, &str),
        is_mutating: bool,
    ) -> Result<Self, String> {
        let review: Review = json::parse(body)
            .map_err(|error| error.to_string())
            .and_then(|review| serde_json::from_value(review).map_err(|error| error.to_string()))
            .map_err(|why| {
                format!(
                    "failed to call webhook: couldn't get version/kind; json parse error: {why}"
                )
            })?;
        let invalid = |why: String| Err(format!("received invalid webhook response: {why}"));
        let Some(response) = review.response else {
            return invalid("webhook response was absent".to_owned());
        };
        if version == "v1beta1" {
            return Ok(response);
        }
        if response.uid != uid {
            return invalid(format!("expected response.uid={uid:?}, got {:?}", response.uid));
        }
        let (group, given) = review.api_version.split_once('/').unwrap_or_default();
        if (group, given, review.kind.as_str()) != ("admission.k8s.io", "v1", "AdmissionReview") {
            return invalid(format!(
                "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got \
                 {}, Kind={}",
                review.api_version, review.kind
            ));
        }
        let has_patch = response.patch.as_deref().is_some_and(|patch| !patch.is_empty());
        match (&response.patch_type, has_patch) {
            (_, true) if !is_mutating => {
                invalid("validating webhook may not return response.patch".to_owned())
            }
            (Some(_), _) if !is_mutating => {
                invalid("validating webhook may not return response.patchType".to_owned())
            }
            (None, true) => {
                invalid("webhook returned response.patch but not response.patchType".to_owned())
            }
            (Some(_), false) => {
                invalid("webhook returned response.patchType but not response.patch".to_owned())
            }
            (Some(other), true) if other != "JSONPatch" => {
                Err(format!("unsupported patch type {other:?}"))
            }
            _ => Ok(response),
        }
    }

    /// Returns the patch, or none if there is none or an empty one.
    pub(super) fn patch(&self) -> Result<Option<Value>, String> {
        let Some(text) = self.patch.as_deref().filter(|text| !text.is_empty()) else {
            return Ok(None);
        };
        let undecodable =
            |why: String| Err(format!("received undecodable patch in webhook response: {why}"));
        let bytes = match STANDARD.decode(text) {
            Ok(bytes) => bytes,
            Err(error) => return undecodable(error.to_string()),
        };
        match json::parse(&bytes) {
            Ok(Value::Array(steps)) if steps.is_empty() => Ok(None),
            Ok(Value::Array(steps)) => Ok(Some(Value::Array(steps))),
            Ok(_) => undecodable("the patch is no array".to_owned()),
            Err(error) => undecodable(error.to_string()),
        }
    }

    /// Returns the error of a response that does not allow the request.
    pub(super) fn rejection(self, webhook: &str) -> ApiError {
        let mut status = self.status.filter(Value::is_object).unwrap_or_else(|| json!({}));
        status["kind"] = "Status".into();
        status["apiVersion"] = "v1".into();
        if !status["metadata"].is_object() {
            status["metadata"] = json!({});
        }
        if status["code"].as_u64().is_none_or(|code| !(400..600).contains(&code)) {
            status["code"] = 400.into();
        }
        if matches!(status["status"].as_str(), None | Some("" | "Success")) {
            status["status"] = "Failure".into();
        }
        let denied = format!("admission webhook {webhook:?} denied the request");
        let text = |field: &str| status[field].as_str().filter(|text| !text.is_empty());
        let message = match text("message").or_else(|| text("reason")) {
            Some(why) => format!("{denied}: {why}"),
            None => format!("{denied} without explanation"),
        };
        status["message"] = message.into();
        ApiError::of_status(status)
    }
}
