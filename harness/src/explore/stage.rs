//! The checks of one resource.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use kubeproof_cases::case::Property;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use tokio::time::Instant;

use super::Ground;
use super::compare::{has_side_effect, lost, without};
use super::generate::Generator;
use super::managers::OwnManagers;
use super::prober::{Budget, Halt, JSON, Prober};
use super::property::{self, Input};
use super::schema::Schema;
use super::violation::{Failure, Violation};
use crate::capability::outgoing;
use crate::exchange::Exchange;
use crate::plan::Subject;

/// Names of objects. A deleted object may exist for a while.
const NAMES: usize = 24;

/// Time limit of the schemas.
const LOAD: Duration = Duration::from_secs(20);

/// Parts of objects that the server sets.
const SYSTEM: [&str; 2] = ["/metadata", "/status"];

/// The verdict of one check.
pub(crate) enum Verdict {
    /// The requests of the check.
    Holds(Vec<Exchange>),
    /// The resource offers nothing to check.
    None,
    Discarded,
    Undecided(String),
    Broken(Box<Failure>),
}

/// One resource.
pub(crate) struct Stage<'a> {
    ground: Ground<'a>,
    pub(crate) subject: &'a Subject,
    pub(super) budget: &'a Budget,
    /// The most checks that look for smaller objects.
    pub(super) shrink: usize,
    pub(super) schema: Arc<Schema>,
    collection: String,
    template: Value,
    names: VecDeque<String>,
}

impl<'a> Stage<'a> {
    pub(crate) fn new(
        ground: Ground<'a>,
        subject: &'a Subject,
        schema: Arc<Schema>,
        (budget, shrink): (&'a Budget, usize),
    ) -> Self {
        let Ground { namespace, prefix, .. } = ground;
        let collection = subject.collection(namespace);
        let names: VecDeque<String> = (0..NAMES).map(|n| format!("{prefix}{n:02}")).collect();
        let template = subject.object(namespace, prefix);
        Self { ground, subject, budget, shrink, schema, collection, template, names }
    }

    /// Checks a property with new objects.
    pub(super) async fn check(&mut self, property: Property, (seed, turn): (u64, u64)) -> Verdict {
        let seed = seed.wrapping_mul(1_000_003).wrapping_add(turn) ^ ((property as u64) << 56);
        let resource = self.subject.name.to_string();
        let (input, attempt) = {
            let mut generator =
                Generator::new(&self.schema, &resource, &self.template, (seed, turn));
            let Some(input) = property::input(property, &mut generator) else {
                return Verdict::None;
            };
            let attempt = input.objects.first().and_then(|first| generator.attempt(first));
            (input, attempt.filter(|_| property != Property::Rejection))
        };
        let input = self.with_attempt(input, attempt).await;
        let (result, exchanges, name) = self.once(property, &input).await;
        match result {
            Ok(()) if exchanges.is_empty() => Verdict::None,
            Ok(()) => Verdict::Holds(exchanges),
            Err(Halt::Over) => Verdict::None,
            Err(Halt::Discarded) => Verdict::Discarded,
            Err(Halt::Undecided(why)) => Verdict::Undecided(why),
            Err(Halt::Violation(violation)) => {
                Verdict::Broken(Box::new(self.failure(*violation, input, (exchanges, name))))
            }
        }
    }

    pub(super) fn failure(
        &self,
        violation: Violation,
        input: Input,
        (exchanges, name): (Vec<Exchange>, String),
    ) -> Failure {
        Failure {
            subject: self.subject.name.clone(),
            violation,
            input,
            exchanges,
            server: self.ground.client.server().to_owned(),
            collection: self.collection.clone(),
            name,
        }
    }

    /// Replaces the first object by an attempt if the server accepts it, returns it unchanged, and
    /// changes nothing else for it.
    async fn with_attempt(&mut self, mut input: Input, attempt: Option<Value>) -> Input {
        let (Some(attempt), Some(first)) = (attempt, input.objects.first_mut()) else {
            return input;
        };
        let (before, after) = (self.dry_run(first).await, self.dry_run(&attempt).await);
        if let (Some(before), Some(after)) = (before, after)
            && lost(&self.schema, &attempt, &after).is_none()
            && !has_side_effect(&before, &attempt, &after)
        {
            *first = attempt;
        }
        input
    }

    /// Returns what the server would store, without the parts that it sets itself.
    async fn dry_run(&self, object: &Value) -> Option<Value> {
        let mut prober = self.prober(Property::DryRun, self.template_name());
        let path = format!("{}?dryRun=All", self.collection);
        let reply = prober.send("POST", &path, JSON, Some(object)).await.ok()?;
        reply.is_success().then(|| without(&reply.body, &SYSTEM))
    }

    /// Returns the parts of objects that must stay: servers have rules about built-in types.
    pub(super) fn fixed(&self) -> &Value {
        if self.schema.is_complete { &Value::Null } else { &self.template }
    }

    fn template_name(&self) -> String {
        self.template["metadata"]["name"].as_str().unwrap_or_default().to_owned()
    }

    fn prober(&self, property: Property, name: String) -> Prober<'_> {
        Prober {
            ground: self.ground,
            subject: self.subject,
            schema: &self.schema,
            budget: self.budget,
            property,
            collection: self.collection.clone(),
            name,
            steps: Vec::new(),
            managers: OwnManagers::default(),
            met_others: false,
        }
    }

    /// Runs a check under the next name, and removes its objects.
    pub(super) async fn once(
        &mut self,
        property: Property,
        input: &Input,
    ) -> (Result<(), Halt>, Vec<Exchange>, String) {
        let name = self.names.pop_front().unwrap_or_default();
        let mut prober = self.prober(property, name.clone());
        if !property.verbs().iter().all(|verb| prober.has_verb(verb)) {
            self.names.push_back(name.clone());
            return (Ok(()), Vec::new(), name);
        }
        let mut result = property::check(property, &mut prober, input).await;
        if let Err(Halt::Violation(violation)) = &result
            && prober.is_of_others(violation).await
        {
            result = Err(Halt::Undecided("another client writes to the object".to_owned()));
        }
        let exchanges = prober.steps;
        self.remove(&exchanges, &name).await;
        self.names.push_back(name.clone());
        (result, exchanges, name)
    }

    /// Removes the objects that a check may have created.
    async fn remove(&self, exchanges: &[Exchange], name: &str) {
        let created = exchanges.iter().filter(|exchange| {
            let is_dry = exchange.request.target.contains("dryRun");
            exchange.request.method == "POST" && !is_dry && exchange.status() / 100 == 2
        });
        let names = created.filter_map(|exchange| exchange.json()?["metadata"]["name"].as_str());
        let mut names: Vec<&str> = names.chain([name]).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            let name = utf8_percent_encode(name, NON_ALPHANUMERIC).to_string();
            let name = name.replace("%2D", "-").replace("%2E", ".");
            let path = format!("{}/{name}", self.collection);
            let request = outgoing("DELETE", &path, JSON, None);
            self.ground.client.send(request, Instant::now() + LOAD).await;
        }
    }
}
