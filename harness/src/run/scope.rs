//! The state that steps see: variables, results, watches and streams. Each iteration of a loop has
//! its own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kubeproof_cases::case::{Capture, Check, Request};
use kubeproof_cases::expression::Expression;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::case::Session;
use super::record::{Record, SharedWatch};
use crate::cleanup::Tracker;
use crate::event::{CheckResult, SkipReason, Symptom, Verdict};
use crate::exchange::Exchange;
use crate::plan::{PlannedRun, base_values};
use crate::transport::stream::{OpenStream, StreamTimeout};
use crate::transport::watch::OpenWatch;
use crate::values::{Path, Undefined, Values, Variable};
use crate::verdict::{
    Defect, Explanation, JudgeOptions, Reported, curl, evaluate, explain, failed_at, judge,
    missing_member, missing_variable, synthetic,
};

/// The case ended. The record has the reason.
#[derive(Debug)]
pub(super) struct Ended;

/// Limit on extensions of the deadline, in case timeouts.
pub(super) const MOST_GIVEN_BACK: u32 = 5;

/// Whether the case continues.
pub(super) type Flow = Result<(), Ended>;

/// Variables and results of a case or an iteration.
pub(super) struct Scope<'a> {
    pub(super) session: &'a Session,
    pub(super) planned: &'a PlannedRun,
    pub(super) tracker: &'a Tracker,
    pub(super) deadline: Instant,
    /// The settings for judging, with the defects that other cases report.
    judging: Arc<JudgeOptions>,
    /// The latest deadline after all extensions.
    limit: Instant,
    pub(super) values: Values,
    pub(super) record: Record,
    /// The prefix of step ids, such as `writers[3].`.
    prefix: String,
    /// Values of steps and captures, for the results of a loop.
    results: BTreeMap<String, Variable>,
    watches: BTreeMap<String, SharedWatch>,
    pub(super) streams: BTreeMap<String, Arc<OpenStream>>,
    /// The requests of watches whose response has not begun.
    pub(super) late_watches: Vec<Request>,
    /// Whether controllers write to the objects of the case.
    pub(super) has_other_writers: bool,
}

impl<'a> Scope<'a> {
    pub(super) fn new(
        session: &'a Session,
        planned: &'a PlannedRun,
        tracker: &'a Tracker,
        deadline: Instant,
    ) -> Self {
        let mut values = base_values(planned, &session.namespace, &session.run, &session.pod);
        values.set("load", json!(session.load));
        values.set("seed", json!(session.seed));
        let reported = session.prerequisites.reported(planned);
        let judging = Arc::new(JudgeOptions { reported, ..session.judging.clone() });
        Self {
            values,
            judging,
            session,
            planned,
            tracker,
            deadline,
            limit: deadline + MOST_GIVEN_BACK * session.case_timeout,
            record: Record::new(),
            prefix: String::new(),
            results: BTreeMap::new(),
            watches: BTreeMap::new(),
            streams: BTreeMap::new(),
            late_watches: Vec::new(),
            has_other_writers: false,
        }
    }

    /// Creates the scope of an iteration, with all values of this one.
    pub(super) fn child(&self, id: &str, iteration: usize) -> Self {
        let prefix = format!("{}{id}[{iteration}].", self.prefix);
        let mut values = self.values.clone();
        values.requests = self.values.requests.within(&prefix);
        Self {
            values,
            judging: Arc::clone(&self.judging),
            record: self.record.child(),
            prefix,
            results: BTreeMap::new(),
            watches: self.watches.clone(),
            streams: self.streams.clone(),
            late_watches: Vec::new(),
            ..*self
        }
    }

    /// Extends the deadline by the time of a quick iteration or event. Many of them on a slow
    /// machine do not indicate a server that hangs.
    pub(super) fn give_back(&mut self, spent: Duration) {
        if spent < self.session.quick() {
            self.deadline = (self.deadline + spent).min(self.limit);
        }
    }

    /// Extends the deadline so that a wait can decide. Earlier steps may have used the time.
    pub(super) fn take_fair_wait(&mut self) {
        let fair = Instant::now() + self.session.fair_wait();
        self.deadline = self.deadline.max(fair.min(self.limit));
    }

    /// Reports whether the deadline ended the steps, and no check failed before.
    pub(super) fn is_cut_off(&self) -> bool {
        Instant::now() >= self.deadline && !self.record.fails_from(0)
    }

    /// Returns the timeout of a stream operation.
    pub(super) fn stream_timeout(&self, silence: Duration) -> StreamTimeout {
        let quick = self.session.quick();
        StreamTimeout { deadline: self.deadline, limit: self.limit, silence, quick }
    }

    /// Returns the id of a step with its iterations.
    pub(super) fn step(&self, id: &str) -> String {
        format!("{}{id}", self.prefix)
    }

    /// Evaluates the named expressions that templates read. One that has no value yet stays
    /// undefined.
    pub(super) fn define(&mut self, lets: &[(String, Expression)]) {
        for (name, expression) in lets {
            match evaluate(expression, &self.values) {
                Ok(value) => self.values.set(name.as_str(), value),
                Err(_) => self.values.unset(name, expression),
            }
        }
    }

    /// Binds a variable that is a result of this scope.
    pub(super) fn bind(&mut self, name: &str, value: impl Into<Variable>) {
        let variable = value.into();
        self.values.set(name, variable.clone());
        self.results.insert(name.to_owned(), variable);
    }

    /// Returns the record, and the results as an object.
    pub(super) fn into_results(self) -> (Record, Variable) {
        (self.record, Variable::object(self.results))
    }

    /// Binds an exchange for later steps.
    pub(super) fn bind_exchange(&mut self, id: &str, exchange: &Exchange) {
        self.values.requests.add(id, exchange);
        let code = self.reported_code(exchange);
        self.bind(id, Variable::of_outcome(exchange.outcome.clone(), code));
    }

    /// Returns the code that a create should have returned, if another case reports the wrong one.
    /// Expressions of cases then see the right one.
    fn reported_code(&self, exchange: &Exchange) -> Option<u16> {
        let (verb, status) = (exchange.request.verb(), exchange.status());
        self.judging.reported.keys().find_map(|defect| match defect {
            Defect::SuccessCode { request, expected, got }
                if exchange.request.method == "POST" && *request == verb && *got == status =>
            {
                expected.first().copied()
            }
            _ => None,
        })
    }

    /// Returns the step of the exchange that a variable holds. The step may be one of an outer
    /// scope.
    pub(super) fn step_of(&self, variable: &str) -> Option<String> {
        let (origin, _) = self.values.requests.find(&Path::of(variable))?;
        Some(origin.step)
    }

    /// Returns the step that opened a watch.
    pub(super) fn step_of_watch(&self, watch: &SharedWatch) -> Option<String> {
        let (name, _) = self.watches.iter().find(|(_, open)| Arc::ptr_eq(open, watch))?;
        self.step_of(name)
    }

    pub(super) fn open(&mut self, id: &str, watch: OpenWatch) -> SharedWatch {
        let watch = Arc::new(Mutex::new(watch));
        self.watches.insert(id.to_owned(), Arc::clone(&watch));
        self.record.opened(self.step(id), Arc::clone(&watch));
        watch
    }

    pub(super) fn watch(&self, id: &str) -> Option<SharedWatch> {
        self.watches.get(id).cloned()
    }

    pub(super) fn opened_stream(&mut self, id: &str, stream: OpenStream) -> Arc<OpenStream> {
        let stream = Arc::new(stream);
        self.streams.insert(id.to_owned(), Arc::clone(&stream));
        let check = self.own_check(&format!("{id}-framing"), id);
        self.record.opened_stream(self.step(id), Arc::clone(&stream), check);
        self.bind_exchange(id, &stream.head);
        stream
    }

    /// Updates the variable of a stream. A stream of an outer scope is no result of this one.
    pub(super) fn refresh_stream(&mut self, id: &str, stream: &OpenStream) {
        self.refresh(id, stream.snapshot());
    }

    fn refresh(&mut self, id: &str, snapshot: Exchange) {
        let variable = Variable::of_outcome(snapshot.outcome, None);
        self.values.set(id, variable.clone());
        if let Some(result) = self.results.get_mut(id) {
            *result = variable;
        }
    }

    /// Updates the variables of all watches and streams.
    pub(super) async fn refresh_watches(&mut self) {
        for (id, watch) in self.watches.clone() {
            self.refresh_watch(&id, &watch).await;
        }
        for (id, stream) in self.streams.clone() {
            self.refresh_stream(&id, &stream);
        }
    }

    /// Updates the variable of a watch. A watch of an outer scope is no result of this one.
    pub(super) async fn refresh_watch(&mut self, id: &str, watch: &SharedWatch) {
        let snapshot = watch.lock().await.snapshot();
        self.refresh(id, snapshot);
    }

    /// Judges the checks of a step. With a missing capture, errors of checks are left out, since
    /// the capture itself fails.
    pub(super) fn judge(
        &mut self,
        checks: &[Check],
        id: &str,
        exchange: Option<&Exchange>,
        missing: &[&Capture],
    ) {
        let step = self.step(id);
        for check in checks {
            self.define(&check.lets);
            let result = judge(check, &step, exchange, &self.values, &self.judging);
            if let Some(result) = result
                && (missing.is_empty() || result.verdict != Verdict::Error)
            {
                self.record.check(result);
            }
        }
    }

    /// Binds captured values of a step, and returns the captures without a value.
    pub(super) fn capture<'c>(
        &mut self,
        captures: &'c [Capture],
        id: &str,
        from: Option<&Value>,
    ) -> Vec<&'c Capture> {
        let mut missing = Vec::new();
        for capture in captures {
            match from.and_then(|value| value.pointer(&capture.pointer)) {
                Some(value) => {
                    self.values.requests.captured(&capture.name, id, &capture.pointer);
                    self.bind(&capture.name, value.clone());
                }
                None => missing.push(capture),
            }
        }
        missing
    }

    /// Ends the case if captures are missing.
    pub(super) fn require(&mut self, missing: &[&Capture], id: &str) -> Flow {
        for capture in missing {
            let origin = self.values.requests.find(&Path::of(id)).map(|(origin, _)| origin);
            let (message, symptom) = missing_member(origin.as_ref(), &capture.pointer);
            if self.is_reported(Some(&symptom), &message) {
                continue;
            }
            let check = format!("{id}-{}", capture.name);
            let expected = json!({"present": capture.pointer});
            let curl = origin.map(|o| curl::line(&o.request, &self.session.judging.server));
            let check = synthetic(check, Verdict::Fail, &self.step(id));
            let symptom = Some(symptom);
            self.record.check(CheckResult { expected, message, curl, symptom, ..check });
        }
        if missing.is_empty() { Ok(()) } else { Err(Ended) }
    }

    /// Reports whether another case reports a symptom. The case ends as blocked then, because it
    /// needs what is missing.
    pub(super) fn is_reported(&mut self, symptom: Option<&Symptom>, defect: &str) -> bool {
        let found = symptom.and_then(Defect::of).and_then(|one| self.judging.reported.get(&one));
        let Some(case) = found else { return false };
        let (defect, case) = (defect.to_owned(), case.clone());
        self.record.block(SkipReason::Reported { defect, case });
        true
    }

    /// Returns the defects that other cases report.
    pub(super) fn reported(&self) -> &Reported {
        &self.judging.reported
    }

    /// Creates a check of the language for a step, at the level of the case.
    pub(super) fn own_check(&self, check: &str, id: &str) -> CheckResult {
        let case = &self.planned.case;
        CheckResult {
            level: case.level,
            requirements: case.requirements.clone(),
            steps: vec![self.step_of(id).unwrap_or_else(|| self.step(id))],
            ..synthetic(check.to_owned(), Verdict::Pass, &self.step(id))
        }
    }

    /// Ends the case at a step that cannot run. Consequences of earlier failures are not reported
    /// again.
    pub(super) fn stuck(&mut self, id: &str, message: String) -> Ended {
        self.ended(id, Verdict::Error, message)
    }

    /// Like `stuck`, with a verdict.
    pub(super) fn ended(&mut self, id: &str, verdict: Verdict, message: String) -> Ended {
        self.ended_with(id, verdict, Value::Null, message)
    }

    /// Like `ended`, with an actual value.
    pub(super) fn ended_with(
        &mut self,
        id: &str,
        verdict: Verdict,
        actual: Value,
        message: String,
    ) -> Ended {
        if verdict == Verdict::Error && self.record.block_by_reported() {
            return Ended;
        }
        if !self.record.has_failed() {
            let check = synthetic(format!("{id}-done"), verdict, &self.step(id));
            self.record.check(CheckResult { actual, message, ..check });
        }
        Ended
    }

    /// Ends the case at a step whose template has no value. If a response lacks the member, the
    /// server is at fault.
    pub(super) fn undefined(&mut self, id: &str, undefined: &Undefined) -> Ended {
        match missing_variable(&undefined.0, &self.values) {
            Some(why) => self.lacking(id, why),
            None => self.stuck(id, undefined.to_string()),
        }
    }

    /// Ends the case at a step whose expression has no usable value. If a response lacks a member,
    /// the server is at fault.
    pub(super) fn unusable(&mut self, id: &str, expression: &Expression, message: String) -> Ended {
        let why = explain(expression, &self.values);
        if why.has_response { self.lacking(id, why) } else { self.stuck(id, message) }
    }

    /// Ends the case because a response lacks what a step needs. Consequences of earlier failures
    /// are not reported again.
    pub(super) fn lacking(&mut self, id: &str, why: Explanation) -> Ended {
        if self.is_reported(why.symptom.as_ref(), &why.message) {
            return Ended;
        }
        if !self.record.has_failed() {
            let check = self.own_check(&format!("{id}-done"), id);
            let verdict = failed_at(check.level);
            let Explanation { message, actual, symptom, steps, .. } = why;
            let first = steps.first().and_then(|step| self.values.requests.of_step(step));
            let curl = first.map(|sent| curl::line(&sent, &self.session.judging.server));
            let decided = CheckResult { verdict, actual, message, curl, steps, symptom, ..check };
            self.record.check(decided);
        }
        Ended
    }
}
