//! Checks a property with generated objects, as a step of a case.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use kubeproof_cases::case::Explore;
use tokio_util::sync::CancellationToken;

use super::scope::{Ended, Flow, Scope};
use crate::event::Symptom;
use crate::exchange::Exchange;
use crate::explore::{self, Budget, Claim, Failure, Ground, Schema, Stage, Verdict};
use crate::plan::Subject;
use crate::verdict::{curl, failed_at};

/// The most checks that look for smaller objects. `kubeproof explore` finds smaller ones.
const SHRINK: usize = 40;

/// The number of first turns.
const TURNS: u64 = 1_000;

const LATE: &str = "the case timeout (--case-timeout) expired";

impl Scope<'_> {
    pub(super) async fn explore(&mut self, step: &Explore) -> Flow {
        let Some(subject) = self.planned.subject.clone() else {
            return Err(self.stuck(&step.id, "generated objects need a subject".to_owned()));
        };
        let session = self.session;
        // No name begins with the prefix of another case.
        let prefix = format!("{}-e", self.planned.name);
        let ground = Ground {
            client: &session.client,
            capabilities: &session.capabilities,
            namespace: &session.namespace,
            tracker: self.tracker,
            prefix: &prefix,
        };
        let budget = Budget::new(usize::MAX, self.deadline, &CancellationToken::new());
        let schema = self.generated_schema(&subject).await;
        let mut stage = Stage::new(ground, &subject, schema, (&budget, SHRINK));
        let seed = self.seed_of(step);
        // Each turn makes another mistake, so the runs make different ones.
        let first = seed % TURNS;
        let (mut shown, mut why) = (None, None);
        for turn in first..first + u64::from(step.checks) {
            match explore::check(&mut stage, step.property, (seed, turn)).await {
                Verdict::Holds(exchanges) => shown = shown.or(Some(exchanges)),
                Verdict::None if budget.is_over() => why = Some(LATE.to_owned()),
                Verdict::None => {}
                Verdict::Discarded => why = Some("the server rejects the objects".to_owned()),
                Verdict::Undecided(undecided) => why = Some(undecided),
                Verdict::Broken(failure) => return self.broken(step, *failure).await,
            }
        }
        if let (None, Some(why)) = (&shown, why) {
            return Err(self.stuck(&step.id, format!("no check has a verdict: {why}")));
        }
        let exchanges = shown.unwrap_or_default();
        self.show(step, exchanges);
        self.record.check(self.own_check(&step.id, &step.id));
        Ok(())
    }

    /// Returns the schema for generated objects. The run loads it once.
    async fn generated_schema(&self, subject: &Subject) -> Arc<Schema> {
        let mut schemas = self.session.generated_schemas.lock().await;
        if let Some(known) = schemas.get(&subject.name) {
            return Arc::clone(known);
        }
        let schema = Arc::new(Schema::load(&self.session.client, subject, self.deadline).await);
        schemas.insert(subject.name.clone(), Arc::clone(&schema));
        schema
    }

    /// Returns a seed that differs for each case and subject, and follows from the seed of the run.
    fn seed_of(&self, step: &Explore) -> u64 {
        let mut hasher = DefaultHasher::new();
        let subject = self.planned.subject_name();
        (self.session.seed, &self.planned.case.id, subject, &step.id).hash(&mut hasher);
        hasher.finish()
    }

    async fn broken(&mut self, step: &Explore, failure: Failure) -> Flow {
        let Failure { violation, exchanges, .. } = failure;
        let wrong = exchanges.get(violation.step).cloned();
        let symptom = wrong.as_ref().and_then(|wrong| symptom(&violation.claim, wrong));
        if self.is_reported(symptom.as_ref(), &violation.message) {
            return Err(Ended);
        }
        self.show(step, exchanges);
        let mut check = self.own_check(&step.id, &step.id);
        check.verdict = failed_at(check.level);
        check.message = violation.message;
        check.symptom = symptom;
        if let Some(wrong) = &wrong {
            check.curl = Some(curl::line(&wrong.request, &self.session.judging.server));
        }
        let before = self.record.checks();
        self.record.check(check);
        if let Some(wrong) = &wrong
            && let Some(why) = self.session.excuse(wrong, self.planned, self.deadline).await
        {
            self.record.excuse(before, &why);
        }
        Err(Ended)
    }

    fn show(&mut self, step: &Explore, exchanges: Vec<Exchange>) {
        for (n, exchange) in exchanges.into_iter().enumerate() {
            self.record.sent(self.step(&format!("{}[{n}]", step.id)), exchange);
        }
    }
}

/// Returns what is wrong with a response, if other cases can meet the same.
fn symptom(claim: &Claim, wrong: &Exchange) -> Option<Symptom> {
    match claim {
        Claim::Status(expected) => Some(Symptom::StatusCode {
            request: wrong.request.verb(),
            expected: vec![*expected],
            got: wrong.status(),
        }),
        Claim::Present(at) => {
            Some(Symptom::MissingField { field: at.trim_start_matches('/').replace('/', ".") })
        }
        _ => None,
    }
}
