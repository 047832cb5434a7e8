//! Constructors for tests.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cel::Program;
use kubeproof_cases::case::{Case, Edition, Identity, Level};
use kubeproof_cases::expression::Expression;
use kubeproof_cases::expression::Needs;
use kubeproof_cases::yaml::Span;
use serde_json::Value;

use crate::event::{CaseResult, CheckResult, Verdict};
use crate::exchange::{Exchange, Outcome, Received, Sent, WatchEvent};

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
        provides: None,
        alone: false,
        depends_on: Vec::new(),
        lets: Vec::new(),
        protocols: Vec::new(),
        catches: Vec::new(),
        steps: Vec::new(),
        profile: None,
        file: format!("{id}.yaml"),
    }
}

/// A passed result.
pub(crate) fn result(id: &str, subject: &str) -> CaseResult {
    CaseResult {
        id: id.to_owned(),
        subject: subject.to_owned(),
        level: Level::Must,
        profile: None,
        requirements: Vec::new(),
        summary: String::new(),
        why: None,
        verdict: Verdict::Pass,
        reason: String::new(),
        skip: None,
        duration: Duration::ZERO,
        checks: Vec::new(),
        exchanges: Vec::new(),
        known: None,
    }
}

pub(crate) fn check_result(id: &str, verdict: Verdict) -> CheckResult {
    crate::verdict::synthetic(id.to_owned(), verdict, "step")
}

/// A parsed expression.
pub(crate) fn expression(text: &str) -> Expression {
    let program = Program::compile(text).unwrap();
    let mut variables: Vec<String> =
        program.references().variables().iter().map(|name| (*name).to_owned()).collect();
    variables.sort();
    let needs = Needs::of(program.expression(), &[]);
    Expression {
        text: text.to_owned(),
        program: Arc::new(program),
        variables,
        lets: Vec::new(),
        needs,
        span: Span::default(),
    }
}

/// A GET with this outcome.
pub(crate) fn exchange(target: &str, outcome: Outcome) -> Exchange {
    let request = Sent {
        method: "GET".to_owned(),
        target: target.to_owned(),
        headers: vec![("accept".to_owned(), "application/json".to_owned())],
        body: Bytes::new(),
        identity: Identity::Second,
    };
    Exchange { request, outcome, started: Duration::ZERO, took: Duration::ZERO }
}

/// A response without a body.
pub(crate) fn received(status: u16) -> Received {
    Received::head(status, "HTTP/1.1", Vec::new())
}

pub(crate) fn event(kind: &str, object: Value) -> WatchEvent {
    WatchEvent { kind: kind.to_owned(), object: Arc::new(object), at: Duration::ZERO }
}
