//! Small makers for tests.

use std::time::Duration;

use kubeproof_cases::case::{Case, Edition, Level};
use serde_json::Value;

use crate::event::{CaseResult, CheckResult, Verdict};

/// A case without steps.
pub(crate) fn case(id: &str) -> Case {
    Case {
        id: id.to_owned(),
        summary: "the server does what it must".to_owned(),
        why: None,
        requirements: vec!["general.rest-verbs".to_owned()],
        editions: Edition::ALL.to_vec(),
        level: Level::Must,
        subject: None,
        needs: Vec::new(),
        protocols: Vec::new(),
        catches: Vec::new(),
        steps: Vec::new(),
        file: format!("{id}.yaml"),
    }
}

/// A result that passes.
pub(crate) fn result(id: &str, subject: &str) -> CaseResult {
    CaseResult {
        id: id.to_owned(),
        subject: subject.to_owned(),
        level: Level::Must,
        requirements: Vec::new(),
        summary: String::new(),
        why: None,
        verdict: Verdict::Pass,
        reason: String::new(),
        duration: Duration::ZERO,
        checks: Vec::new(),
        exchanges: Vec::new(),
        known: None,
    }
}

/// A check of a result.
pub(crate) fn check_result(id: &str, verdict: Verdict) -> CheckResult {
    crate::verdict::synthetic(id.to_owned(), verdict, "step", Value::Null, Value::Null, String::new())
}
