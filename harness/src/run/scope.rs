//! What steps see: variables, results and open watches. Each iteration of a loop has a scope of its own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kubeproof_cases::case::{Capture, Check};
use serde_json::{Map, Value, json};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::RunPod;
use super::case::Session;
use super::record::{Record, SharedWatch};
use crate::cleanup::Tracker;
use crate::event::{CheckResult, Verdict};
use crate::exchange::Exchange;
use crate::plan::PlannedRun;
use crate::stream::{OpenStream, Patience};
use crate::values::Values;
use crate::verdict::{exchange_value, judge, synthetic};
use crate::watch::OpenWatch;

/// The case does not go on; the record says why.
#[derive(Debug)]
pub(super) struct Ended;

/// An iteration is quick that takes no more than this part of the time of a case.
const QUICK: u32 = 10;

/// How often the time of a case is given back at most.
pub(super) const MOST_GIVEN_BACK: u32 = 5;

/// Whether the case goes on.
pub(super) type Flow = Result<(), Ended>;

/// The variables and results of a case, or of one iteration in it.
pub(super) struct Scope<'a> {
    pub(super) session: &'a Session,
    pub(super) planned: &'a PlannedRun,
    pub(super) tracker: &'a Tracker,
    pub(super) deadline: Instant,
    /// Where the deadline cannot be moved beyond.
    limit: Instant,
    pub(super) values: Values,
    pub(super) record: Record,
    /// What stands before the ids of its steps: `writers[3].`.
    prefix: String,
    /// Steps and captures of this scope, for the list of results of a loop.
    results: BTreeMap<String, Arc<Value>>,
    watches: BTreeMap<String, SharedWatch>,
    pub(super) streams: BTreeMap<String, Arc<OpenStream>>,
}

/// What every case knows from the beginning.
pub(crate) fn base_values(planned: &PlannedRun, namespace: &str, run: &str, pod: &RunPod) -> Values {
    let mut values = Values::new();
    for (name, value) in pod.variables(namespace) {
        values.set(name, value);
    }
    if let Some(protocol) = &planned.protocol {
        values.set("protocol", json!(protocol.to_string()));
        values.set("protocol.name", json!(protocol.name));
        values.set("protocol.over", json!(protocol.over.to_string()));
    }
    values.set("name", json!(planned.name));
    values.set("run", json!(run));
    let Some(subject) = &planned.subject else {
        values.set("ns", json!(namespace));
        return values;
    };
    values.set("ns", json!(if subject.namespaced { namespace } else { "" }));
    values.set("collection", json!(subject.collection(namespace)));
    values.set("collection.all", json!(subject.collection_of_all()));
    values.set("subject", subject.variables(namespace));
    values
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
        Self {
            values,
            session,
            planned,
            tracker,
            deadline,
            limit: deadline + MOST_GIVEN_BACK * session.case_timeout,
            record: Record::default(),
            prefix: String::new(),
            results: BTreeMap::new(),
            watches: BTreeMap::new(),
            streams: BTreeMap::new(),
        }
    }

    /// The scope of an iteration. It sees everything that is known here.
    pub(super) fn child(&self, id: &str, iteration: usize) -> Self {
        Self {
            values: self.values.clone(),
            record: Record::default(),
            prefix: format!("{}{id}[{iteration}].", self.prefix),
            results: BTreeMap::new(),
            watches: self.watches.clone(),
            streams: self.streams.clone(),
            ..*self
        }
    }

    /// Gives back the time of an iteration, or of the wait for an event, that was quick: many of them on a slow machine are no
    /// sign of a server that hangs.
    pub(super) fn give_back(&mut self, spent: Duration) {
        if spent < self.session.case_timeout / QUICK {
            self.deadline = (self.deadline + spent).min(self.limit);
        }
    }

    /// For a stream: until it has been silent for so long, or the time of the case is over.
    pub(super) fn patience_of(&self, silence: Duration) -> Patience {
        let quick = self.session.case_timeout / QUICK;
        Patience { deadline: self.deadline, limit: self.limit, silence, quick }
    }

    /// The step's name with its iterations.
    pub(super) fn step(&self, id: &str) -> String {
        format!("{}{id}", self.prefix)
    }

    /// Binds a variable that is a result of this scope.
    pub(super) fn bind(&mut self, name: &str, value: Value) {
        let value = Arc::new(value);
        self.values.set(name, Arc::clone(&value));
        self.results.insert(name.to_owned(), value);
    }

    /// What the scope did, and the results as an object.
    pub(super) fn into_results(self) -> (Record, Value) {
        drop(self.values);
        let results: Map<String, Value> =
            self.results.into_iter().map(|(name, value)| (name, Arc::unwrap_or_clone(value))).collect();
        (self.record, Value::Object(results))
    }

    /// Makes an exchange known to later steps.
    pub(super) fn bind_exchange(&mut self, id: &str, exchange: &Exchange) {
        self.bind(id, exchange_value(exchange));
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

    /// Brings the variable of a stream up to date. One that was opened outside is no result of this iteration.
    pub(super) fn refresh_stream(&mut self, id: &str, stream: &OpenStream) {
        let value = Arc::new(exchange_value(&stream.snapshot()));
        self.values.set(id, Arc::clone(&value));
        if let Some(result) = self.results.get_mut(id) {
            *result = value;
        }
    }

    /// Brings the variables of watches that iterations may have read up to date.
    pub(super) async fn refresh_watches(&mut self) {
        for (id, watch) in self.watches.clone() {
            self.refresh_watch(&id, &watch).await;
        }
        for (id, stream) in self.streams.clone() {
            self.refresh_stream(&id, &stream);
        }
    }

    /// Brings the variable of a watch up to date. One that was opened outside is no result of this iteration.
    pub(super) async fn refresh_watch(&mut self, id: &str, watch: &SharedWatch) {
        let value = Arc::new(exchange_value(&watch.lock().await.snapshot()));
        self.values.set(id, Arc::clone(&value));
        if let Some(result) = self.results.get_mut(id) {
            *result = value;
        }
    }

    /// Judges checks of a step. Those that cannot be judged for want of a missing capture say no more than its own
    /// failure will.
    pub(super) fn judge(
        &mut self,
        checks: &[Check],
        id: &str,
        exchange: Option<&Exchange>,
        missing: &[&Capture],
    ) {
        let step = self.step(id);
        for check in checks {
            let result = judge(check, &step, exchange, &self.values, &self.session.judging);
            if let Some(result) = result
                && (missing.is_empty() || result.verdict != Verdict::Error)
            {
                self.record.check(result);
            }
        }
    }

    /// Binds what is taken out of an answer or object, and gives back what is not there.
    pub(super) fn capture<'c>(&mut self, captures: &'c [Capture], from: Option<&Value>) -> Vec<&'c Capture> {
        let mut missing = Vec::new();
        for capture in captures {
            match from.and_then(|value| value.pointer(&capture.pointer)) {
                Some(value) => self.bind(&capture.name, value.clone()),
                None => missing.push(capture),
            }
        }
        missing
    }

    /// Ends the case for want of values.
    pub(super) fn require(&mut self, missing: &[&Capture], id: &str) -> Flow {
        for capture in missing {
            let message = match capture.pointer.as_str() {
                "" => "the answer has no JSON body".to_owned(),
                pointer => format!("the answer has nothing at {pointer}"),
            };
            let check = format!("{id}-{}", capture.name);
            self.fail(check, Verdict::Fail, id, json!({"present": capture.pointer}), Value::Null, message);
        }
        if missing.is_empty() { Ok(()) } else { Err(Ended) }
    }

    /// A check of the harness itself that does not hold.
    pub(super) fn fail(
        &mut self,
        check: String,
        verdict: Verdict,
        id: &str,
        expected: Value,
        actual: Value,
        message: String,
    ) {
        let step = self.step(id);
        self.record.check(synthetic(check, verdict, &step, expected, actual, message));
    }

    /// A check that the language makes of a step, at the level of the case.
    pub(super) fn own_check(&self, check: &str, id: &str) -> CheckResult {
        let case = &self.planned.case;
        CheckResult {
            level: case.level,
            requirements: case.requirements.clone(),
            ..synthetic(
                check.to_owned(),
                Verdict::Pass,
                &self.step(id),
                Value::Null,
                Value::Null,
                String::new(),
            )
        }
    }

    /// Ends the case at a step that cannot be done. What follows from an earlier failure is not told again.
    pub(super) fn stuck(&mut self, id: &str, message: String) -> Ended {
        self.ended(id, Verdict::Error, message)
    }

    /// The same where it is known what that says of the server.
    pub(super) fn ended(&mut self, id: &str, verdict: Verdict, message: String) -> Ended {
        if !self.record.has_failed() {
            self.fail(format!("{id}-done"), verdict, id, Value::Null, Value::Null, message);
        }
        Ended
    }
}
