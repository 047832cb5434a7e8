//! The policy that the labels of a namespace select.

use std::fmt;

use kubeproof_apimachinery::schema::FieldError;
use serde_json::Value;

use super::checks::{self, Subject, Violation};

const PREFIX: &str = "pod-security.kubernetes.io/";

/// The levels, from the least to the most strict one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    #[default]
    Privileged,
    Baseline,
    Restricted,
}

/// The version of a policy: a minor version of Kubernetes, or the newest one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Version {
    #[default]
    Latest,
    Minor(u32),
}

/// A level in a version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LevelVersion {
    pub(super) level: Level,
    pub(super) version: Version,
}

/// The policy of a namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Policy {
    /// Pods that violate it are rejected.
    pub(super) enforce: LevelVersion,
    /// Violations are annotated in the audit log.
    pub(super) audit: LevelVersion,
    /// The response warns about violations.
    pub(super) warn: LevelVersion,
}

impl Policy {
    /// Returns the policy of labels, and the errors in them. A wrong level enforces the strictest
    /// one, and does not warn.
    pub(super) fn of(labels: &Value) -> (Self, Vec<FieldError>) {
        let mut errors = Vec::new();
        let mut read = |mode: &str, wrong: Level| {
            let label = |suffix: &str| labels[format!("{PREFIX}{mode}{suffix}")].as_str();
            let mut report = |suffix: &str, text: &str, why: &str| {
                let field = format!("metadata.labels[{PREFIX}{mode}{suffix}]");
                errors.push(FieldError::invalid(field, &text.into(), why));
            };
            let level = label("").map(|text| {
                Level::parse(text).unwrap_or_else(|| {
                    report("", text, "must be one of privileged, baseline, restricted");
                    wrong
                })
            });
            let version = label("-version").map(|text| {
                Version::parse(text).unwrap_or_else(|| {
                    report("-version", text, "must be \"latest\" or \"v1.x\"");
                    Version::Latest
                })
            });
            (level, version)
        };
        let (enforce, version) = read("enforce", Level::Restricted);
        let enforce = LevelVersion::new((enforce, version));
        let audit = LevelVersion::new(read("audit", Level::Privileged));
        let (warn_level, warn_version) = read("warn", Level::Privileged);
        let mut warn = LevelVersion::new((warn_level, warn_version));
        let is_sound = labels[format!("{PREFIX}enforce")].as_str().and_then(Level::parse).is_some();
        if warn_level.is_none() && is_sound && enforce.level > warn.level {
            warn.level = enforce.level;
            warn.version = warn_version.unwrap_or(enforce.version);
        }
        (Self { enforce, audit, warn }, errors)
    }
}

impl LevelVersion {
    fn new((level, version): (Option<Level>, Option<Version>)) -> Self {
        Self { level: level.unwrap_or_default(), version: version.unwrap_or_default() }
    }

    /// Returns what a pod violates. `newest` is the minor version of the server.
    pub(super) fn violations(self, metadata: &Value, spec: &Value, newest: u32) -> Vec<Violation> {
        let minor = match self.version {
            Version::Minor(minor) => minor.min(newest),
            Version::Latest => newest,
        };
        let pod = Subject { metadata, spec, minor };
        match self.level {
            Level::Privileged => Vec::new(),
            Level::Baseline => checks::baseline(pod),
            Level::Restricted => checks::restricted(pod),
        }
    }
}

impl Level {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "privileged" => Some(Self::Privileged),
            "baseline" => Some(Self::Baseline),
            "restricted" => Some(Self::Restricted),
            _ => None,
        }
    }
}

impl Version {
    fn parse(text: &str) -> Option<Self> {
        if text == "latest" {
            return Some(Self::Latest);
        }
        let minor = text.strip_prefix("v1.")?;
        let is_number = minor == "0" || !minor.starts_with(['0', '+']);
        minor.parse().ok().filter(|_| is_number).map(Self::Minor)
    }
}

impl fmt::Display for LevelVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = match self.level {
            Level::Privileged => "privileged",
            Level::Baseline => "baseline",
            Level::Restricted => "restricted",
        };
        match self.version {
            Version::Latest => write!(f, "{level}:latest"),
            Version::Minor(minor) => write!(f, "{level}:v1.{minor}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Value {
        pairs.iter().map(|(mode, value)| (format!("{PREFIX}{mode}"), json!(value))).collect()
    }

    #[rstest]
    #[case(&[], "privileged:latest", "privileged:latest")]
    #[case(&[("enforce", "baseline")], "baseline:latest", "baseline:latest")]
    #[case(
        &[("enforce", "restricted"), ("enforce-version", "v1.30")],
        "restricted:v1.30",
        "restricted:v1.30"
    )]
    #[case(
        &[("enforce", "baseline"), ("warn", "restricted")],
        "baseline:latest",
        "restricted:latest"
    )]
    #[case(&[("warn-version", "v1.0"), ("warn", "baseline")], "privileged:latest", "baseline:v1.0")]
    #[case(
        &[("enforce", "restricted"), ("warn", "privileged")],
        "restricted:latest",
        "privileged:latest"
    )]
    fn labels_select_the_policy(
        #[case] pairs: &[(&str, &str)],
        #[case] enforce: &str,
        #[case] warn: &str,
    ) {
        let (policy, errors) = Policy::of(&labels(pairs));
        assert_eq!(errors, []);
        assert_eq!(
            (policy.enforce.to_string(), policy.warn.to_string()),
            (enforce.into(), warn.into())
        );
    }

    #[test]
    fn wrong_labels_enforce_the_strictest_level_and_are_reported() {
        let (policy, errors) = Policy::of(&labels(&[
            ("enforce", "strict"),
            ("warn-version", "v1.01"),
            ("audit", "x"),
        ]));
        assert_eq!(policy.enforce.level, Level::Restricted);
        assert_eq!((policy.audit.level, policy.warn.level), (Level::Privileged, Level::Privileged));
        let fields: Vec<&str> = errors.iter().map(|error| error.field.as_str()).collect();
        let expected = ["enforce", "audit", "warn-version"];
        assert_eq!(fields, expected.map(|mode| format!("metadata.labels[{PREFIX}{mode}]")));
    }
}
