//! The webhooks of a configuration, parsed.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kubeproof_apimachinery::object::Object as _;
use kubeproof_apimachinery::serializer::json;
use serde_json::Value;

use super::super::conditions::Conditions;
use super::super::rules::Constraints;
use crate::http::client::Client;

/// The timeout of a call, in seconds, if the configuration has none.
const TIMEOUT: u64 = 10;

/// A webhook.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "they are independent facts about a webhook")]
pub(super) struct Webhook {
    /// Distinguishes the webhooks of all configurations.
    pub(super) id: String,
    pub(super) configuration: String,
    pub(super) name: String,
    pub(super) constraints: Constraints,
    pub(super) conditions: Conditions,
    pub(super) ignores_failures: bool,
    /// A dry run may call the webhook.
    pub(super) supports_dry_run: bool,
    pub(super) is_mutating: bool,
    /// The webhook runs again if a later one changed the object.
    pub(super) reinvokes: bool,
    pub(super) timeout: Duration,
    /// The first version of `AdmissionReview` that the server supports.
    pub(super) review_version: Option<&'static str>,
    pub(super) target: Target,
}

/// The server of a webhook.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) url: Option<String>,
    pub(super) service: Option<ServiceRef>,
    pub(super) ca_pem: Vec<u8>,
    /// The client of the URL, with its idle connections.
    pub(super) client: OnceLock<Arc<Client>>,
}

/// A port of a service.
#[derive(Debug)]
pub(super) struct ServiceRef {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) path: String,
    pub(super) port: u16,
}

/// Parses a configuration. One that cannot be parsed has no webhooks.
pub(super) fn parse(text: &[u8]) -> Option<Arc<[Webhook]>> {
    let configuration = json::parse(text).ok()?;
    let name = configuration.meta("name");
    let is_mutating = configuration["kind"] == "MutatingWebhookConfiguration";
    let webhooks = configuration["webhooks"].as_array().into_iter().flatten().enumerate();
    Some(webhooks.map(|(index, webhook)| read(webhook, name, index, is_mutating)).collect())
}

fn read(webhook: &Value, configuration: &str, index: usize, is_mutating: bool) -> Webhook {
    let name = webhook["name"].as_str().unwrap_or_default();
    let versions = webhook["admissionReviewVersions"].as_array().into_iter().flatten();
    let mut versions = versions.filter_map(Value::as_str);
    let ignores_failures = webhook["failurePolicy"] == "Ignore";
    Webhook {
        id: format!("{configuration}/{name}/{index}"),
        configuration: configuration.to_owned(),
        name: name.to_owned(),
        constraints: Constraints::of_webhook(webhook),
        conditions: Conditions::of_webhook(webhook, ignores_failures),
        ignores_failures,
        supports_dry_run: matches!(webhook["sideEffects"].as_str(), Some("None" | "NoneOnDryRun")),
        is_mutating,
        reinvokes: webhook["reinvocationPolicy"] == "IfNeeded",
        timeout: Duration::from_secs(webhook["timeoutSeconds"].as_u64().unwrap_or(TIMEOUT)),
        review_version: versions.find_map(|version| match version {
            "v1" => Some("v1"),
            "v1beta1" => Some("v1beta1"),
            _ => None,
        }),
        target: target(&webhook["clientConfig"]),
    }
}

fn target(config: &Value) -> Target {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let service = config["service"].as_object().map(|_| {
        let service = &config["service"];
        let port = service["port"].as_u64().and_then(|port| u16::try_from(port).ok());
        ServiceRef {
            namespace: text(&service["namespace"]),
            name: text(&service["name"]),
            path: text(&service["path"]),
            port: port.unwrap_or(443),
        }
    });
    Target {
        url: config["url"].as_str().map(str::to_owned),
        service,
        ca_pem: STANDARD.decode(text(&config["caBundle"])).unwrap_or_default(),
        client: OnceLock::new(),
    }
}
