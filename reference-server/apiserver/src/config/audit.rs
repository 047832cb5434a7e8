//! The options of the audit log.

use std::path::PathBuf;
use std::time::Duration;

use kubeproof_apimachinery::request::yaml;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

/// The options of the audit log.
#[derive(Clone, Debug)]
pub struct AuditOptions {
    /// The file that the server appends events to, one in each line. `-` is the standard output.
    pub path: PathBuf,
    /// What the log contains.
    pub policy: AuditPolicy,
    /// When the server writes the events.
    pub mode: AuditMode,
    /// When the server replaces the file.
    pub rotation: Rotation,
}

impl AuditOptions {
    /// Returns the options of a file with the default mode and rotation.
    pub fn new(path: PathBuf, policy: AuditPolicy) -> Self {
        Self { path, policy, mode: AuditMode::default(), rotation: Rotation::default() }
    }
}

/// When the server writes the events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AuditMode {
    /// Before it responds.
    #[default]
    Blocking,
    /// Before it responds. A request fails if its first event cannot be written.
    BlockingStrict,
    /// In the background. If the queue is full, events are lost.
    Batch,
}

/// When the server replaces the file of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// The largest size of a file, in bytes.
    pub max_bytes: u64,
    /// The number of old files that remain. Without it, all remain.
    pub max_backups: Option<usize>,
    /// The time that old files remain. Without it, they remain forever.
    pub max_age: Option<Duration>,
}

impl Default for Rotation {
    /// Returns the defaults of kube-apiserver: 100 MB, and all old files.
    fn default() -> Self {
        Self { max_bytes: 100 * 1024 * 1024, max_backups: None, max_age: None }
    }
}

/// A policy: the object `Policy` of `audit.k8s.io/v1`. The first rule that matches decides.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AuditPolicy {
    #[serde(rename = "apiVersion")]
    _api_version: IgnoredAny,
    #[serde(rename = "kind")]
    _kind: IgnoredAny,
    #[serde(default, rename = "metadata")]
    _metadata: IgnoredAny,
    pub(crate) rules: Vec<Rule>,
    #[serde(default)]
    pub(crate) omit_stages: Vec<Stage>,
    #[serde(default)]
    pub(crate) omit_managed_fields: bool,
}

/// The reason why a policy cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// The file is not YAML.
    #[error("the audit policy is not YAML: {0}")]
    Yaml(String),
    /// A field is unknown, missing or has a wrong type.
    #[error("the audit policy is invalid: {0}")]
    Field(#[from] serde_json::Error),
    /// The document is another object.
    #[error("expected a Policy of audit.k8s.io/v1{}", found(api_version, kind))]
    Kind {
        /// The API version of the document.
        api_version: String,
        /// The kind of the document.
        kind: String,
    },
    /// There is no rule.
    #[error("the audit policy has no rule; one rule with a level is enough")]
    Empty,
    /// A rule is about resources and about other paths.
    #[error("rule {0} of the audit policy cannot have both resources and nonResourceURLs")]
    Mixed(usize),
}

/// How much the log contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(crate) enum Level {
    None,
    Metadata,
    Request,
    RequestResponse,
}

/// The moments of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(crate) enum Stage {
    RequestReceived,
    ResponseStarted,
    ResponseComplete,
    Panic,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Rule {
    pub(crate) level: Level,
    #[serde(default)]
    pub(crate) users: Vec<String>,
    #[serde(default)]
    pub(crate) user_groups: Vec<String>,
    #[serde(default)]
    pub(crate) verbs: Vec<String>,
    #[serde(default)]
    pub(crate) resources: Vec<GroupResources>,
    #[serde(default)]
    pub(crate) namespaces: Vec<String>,
    #[serde(default, rename = "nonResourceURLs")]
    pub(crate) non_resource_urls: Vec<String>,
    #[serde(default)]
    pub(crate) omit_stages: Vec<Stage>,
    pub(crate) omit_managed_fields: Option<bool>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct GroupResources {
    #[serde(default)]
    pub(crate) group: String,
    #[serde(default)]
    pub(crate) resources: Vec<String>,
    #[serde(default)]
    pub(crate) resource_names: Vec<String>,
}

impl AuditPolicy {
    /// Parses a policy from YAML or JSON.
    pub fn parse(text: &[u8]) -> Result<Self, PolicyError> {
        let json = yaml::to_json(text).map_err(|error| PolicyError::Yaml(error.message))?;
        // Another object has other fields, so its kind must be found before its fields.
        let document: Value = serde_json::from_slice(&json)?;
        let text = |name: &str| document[name].as_str().unwrap_or_default().to_owned();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        if api_version != "audit.k8s.io/v1" || kind != "Policy" {
            return Err(PolicyError::Kind { api_version, kind });
        }
        let policy: Self = serde_json::from_value(document)?;
        if policy.rules.is_empty() {
            return Err(PolicyError::Empty);
        }
        match policy.rules.iter().position(Rule::is_mixed) {
            Some(index) => Err(PolicyError::Mixed(index)),
            None => Ok(policy),
        }
    }
}

fn found(api_version: &str, kind: &str) -> String {
    if kind.is_empty() { String::new() } else { format!(", found a {kind:?} of {api_version:?}") }
}

impl Rule {
    /// Returns whether the rule is only about resources.
    pub(crate) fn is_about_resources(&self) -> bool {
        !self.resources.is_empty() || !self.namespaces.is_empty()
    }

    fn is_mixed(&self) -> bool {
        self.is_about_resources() && !self.non_resource_urls.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("kind: [", "is not YAML")]
    #[case("{apiVersion: audit.k8s.io/v1, kind: Policy, rules: []}", "has no rule")]
    #[case("{apiVersion: v1, kind: Pod, spec: {}}", "found a \"Pod\" of \"v1\"")]
    #[case("just a text", "expected a Policy of audit.k8s.io/v1")]
    #[case("{}", "expected a Policy of audit.k8s.io/v1")]
    #[case("{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: All}]}", "unknown variant")]
    #[case(
        "{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: None, namespaces: [a], \
         nonResourceURLs: [/a]}]}",
        "rule 0"
    )]
    fn an_invalid_policy_says_why(#[case] text: &str, #[case] why: &str) {
        let error = AuditPolicy::parse(text.as_bytes()).expect_err("an error").to_string();
        assert!(error.contains(why), "{error}");
    }
}
