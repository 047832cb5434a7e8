//! Sends the requests of one check, and records them for its reproduction.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kubeproof_cases::case::{Capability, Identity, Property};
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Ground;
use super::compare::Difference;
use super::managers::OwnManagers;
use super::schema::Schema;
use super::violation::{Claim, Scope, Violation};
use crate::exchange::{Exchange, Outcome, WatchEvent};
use crate::plan::Subject;
use crate::transport::Outgoing;
use crate::transport::watch::{Next, OpenWatch};

/// Time limit of a request.
const REQUEST: Duration = Duration::from_secs(10);

/// Time for an event after its write.
const EVENT: Duration = Duration::from_secs(5);

/// The prober opens a watch that the server closes at most this often again.
const REOPENED: usize = 8;

/// The most repetitions of a PUT that meets the writes of a controller.
const RETRIED: usize = 5;

/// Parts of objects that controllers leave to users.
const OF_USERS: [&str; 5] = ["/spec", "/data", "/binaryData", "/metadata/labels", "/rules"];

/// The most bytes of a recorded list. A check keeps all its responses.
const RECORDED: usize = 64 << 10;

pub(super) const JSON: &str = "application/json";

/// Why a check ends early.
#[derive(Debug)]
pub(super) enum Halt {
    /// The server breaks the property.
    Violation(Box<Violation>),
    /// The server has rules that its schema does not contain, so the object proves nothing.
    Discarded,
    /// The server does not respond well enough.
    Undecided(String),
    /// No requests or no time are left, or the run was interrupted.
    Over,
}

/// The requests and the time that are left.
#[derive(Debug)]
pub(crate) struct Budget {
    sent: AtomicUsize,
    most: usize,
    end: Instant,
    interrupt: CancellationToken,
}

impl Budget {
    pub(crate) fn new(most: usize, end: Instant, interrupt: &CancellationToken) -> Self {
        Self { sent: AtomicUsize::new(0), most, end, interrupt: interrupt.clone() }
    }

    /// Returns the number of requests so far.
    pub(crate) fn sent(&self) -> usize {
        self.sent.load(Ordering::Relaxed)
    }

    fn take(&self) -> Result<(), Halt> {
        if self.is_over() {
            return Err(Halt::Over);
        }
        self.sent.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    pub(crate) fn is_over(&self) -> bool {
        self.sent.load(Ordering::Relaxed) >= self.most
            || Instant::now() >= self.end
            || self.interrupt.is_cancelled()
    }
}

/// A response.
#[derive(Clone, Debug)]
pub(super) struct Reply {
    /// The place of its request among all requests of the check.
    pub(super) step: usize,
    pub(super) status: u16,
    /// The body without the fields of other clients.
    pub(super) body: Value,
    /// The body of an object that other clients write to.
    shared: Option<Value>,
}

impl Reply {
    pub(super) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    pub(super) fn version(&self) -> &str {
        version(&self.body)
    }

    /// Returns the body with the fields of other clients.
    pub(super) fn whole(&self) -> &Value {
        self.shared.as_ref().unwrap_or(&self.body)
    }

    /// Reports whether another client wrote to the object.
    pub(super) fn is_shared(&self) -> bool {
        self.shared.is_some()
    }
}

/// Returns the version of an object or a list.
pub(super) fn version(object: &Value) -> &str {
    object.pointer("/metadata/resourceVersion").and_then(Value::as_str).unwrap_or_default()
}

/// A watch that the server may close at any time.
#[derive(Debug)]
pub(super) struct Watching {
    open: OpenWatch,
    /// The place of its request.
    pub(super) step: usize,
    /// The version of the last event.
    last: String,
    reopened: usize,
}

/// The client of one check.
#[derive(Debug)]
pub(super) struct Prober<'a> {
    pub(super) ground: Ground<'a>,
    pub(super) subject: &'a Subject,
    pub(super) schema: &'a Schema,
    pub(super) budget: &'a Budget,
    pub(super) property: Property,
    pub(super) collection: String,
    /// The name of the first object. The names of others begin with it.
    pub(super) name: String,
    /// All requests so far.
    pub(super) steps: Vec<Exchange>,
    pub(super) managers: OwnManagers,
    /// Whether another client wrote to an object of this check.
    pub(super) met_others: bool,
}

impl Prober<'_> {
    /// Reports whether the target supports what a request needs.
    pub(super) fn offers(&self, capability: Capability) -> bool {
        self.ground.capabilities.missing(capability).is_none()
    }

    pub(super) fn has_verb(&self, verb: &str) -> bool {
        self.subject.verbs.contains(verb)
    }

    pub(super) fn path(&self) -> String {
        format!("{}/{}", self.collection, self.name)
    }

    /// Returns an object under the name of this check.
    pub(super) fn named(&self, object: &Value) -> Value {
        let mut object = object.clone();
        object["metadata"]["name"] = json!(self.name);
        object
    }

    pub(super) async fn create(&mut self, object: &Value) -> Result<Reply, Halt> {
        let collection = self.collection.clone();
        self.send("POST", &collection, JSON, Some(object)).await
    }

    pub(super) async fn get(&mut self) -> Result<Reply, Halt> {
        let path = self.path();
        self.send("GET", &path, JSON, None).await
    }

    /// Replaces the object. The version is that of an earlier response.
    pub(super) async fn put(
        &mut self,
        object: &Value,
        version: &str,
        query: &str,
    ) -> Result<Reply, Halt> {
        let mut object = self.named(object);
        object["metadata"]["resourceVersion"] = json!(version);
        let path = format!("{}{query}", self.path());
        let mut reply = self.send("PUT", &path, JSON, Some(&object)).await?;
        for _ in 0..RETRIED {
            if reply.status != 409 {
                break;
            }
            let current = self.get().await?;
            let is_newer = current.version() != object["metadata"]["resourceVersion"];
            if !current.is_shared() || !is_newer {
                break;
            }
            object["metadata"]["resourceVersion"] = json!(current.version());
            reply = self.send("PUT", &path, JSON, Some(&object)).await?;
        }
        Ok(reply)
    }

    pub(super) async fn patch(
        &mut self,
        media: &str,
        patch: &Value,
        query: &str,
    ) -> Result<Reply, Halt> {
        let target = format!("{}{query}", self.path());
        self.send("PATCH", &target, media, Some(patch)).await
    }

    pub(super) async fn delete(&mut self) -> Result<Reply, Halt> {
        let path = self.path();
        self.send("DELETE", &path, JSON, None).await
    }

    pub(super) async fn send(
        &mut self,
        method: &str,
        target: &str,
        media: &str,
        body: Option<&Value>,
    ) -> Result<Reply, Halt> {
        self.budget.take()?;
        let mut headers = vec![("accept".to_owned(), JSON.to_owned())];
        if body.is_some() {
            headers.push(("content-type".to_owned(), media.to_owned()));
        }
        let body = body.map(|body| text_of(body, media).into()).unwrap_or_default();
        let request = outgoing(method, target, headers, body);
        // A server may store a dry run, too.
        self.ground.tracker.intend_again(&request);
        let mut exchange = self.ground.client.send(request, Instant::now() + REQUEST).await;
        let status = exchange.status();
        if method == "POST" && status == 201 {
            self.managers.learn(exchange.json().unwrap_or(&Value::Null));
        }
        let (body, shared) = self.own(exchange.json().unwrap_or(&Value::Null));
        let reply = Reply { step: self.steps.len(), status, body, shared };
        let is_undecided = is_unclear(&exchange).then(|| exchange.in_words());
        if reply.body["items"].is_array() {
            exchange.shorten_body(RECORDED);
        }
        self.steps.push(exchange);
        is_undecided.map_or(Ok(reply), |words| Err(Halt::Undecided(words)))
    }

    /// Removes the fields of other clients. Returns the whole body, too, if there are any.
    fn own(&mut self, body: &Value) -> (Value, Option<Value>) {
        if self.schema.is_complete {
            return (body.clone(), None);
        }
        if self.managers.is_shared(body) {
            self.met_others = true;
            return (self.managers.without_others(body), Some(body.clone()));
        }
        let mut body = body.clone();
        let items = body.get_mut("items").and_then(Value::as_array_mut);
        for item in items.into_iter().flatten() {
            self.met_others |= self.managers.is_shared(item);
            *item = self.managers.without_others(item);
        }
        (body, None)
    }

    /// Reports whether another client may have caused a violation. A server without such clients
    /// breaks the same property.
    pub(super) async fn is_of_others(&mut self, violation: &Violation) -> bool {
        let conflicts =
            self.steps.get(violation.step).is_some_and(|exchange| exchange.status() == 409);
        let may_be = match &violation.claim {
            Claim::Member { at, .. } => !OF_USERS.iter().any(|part| at.starts_with(part)),
            Claim::Rejected { .. } => conflicts,
            Claim::Accepted
            | Claim::Status(_)
            | Claim::Present(_)
            | Claim::Names(_)
            | Claim::Event(_) => true,
        };
        if !may_be || self.schema.is_complete {
            return false;
        }
        // A conflict does not show the object.
        self.met_others || self.get().await.is_ok_and(|reply| reply.is_shared())
    }

    /// Opens a watch on the collection. `None` if the server does not serve it.
    pub(super) async fn watch(&mut self, query: &str) -> Result<Option<Watching>, Halt> {
        self.budget.take()?;
        let target = format!("{}?watch=true&{query}", self.collection);
        let headers = vec![("accept".to_owned(), JSON.to_owned())];
        let request = outgoing("GET", &target, headers, bytes::Bytes::new());
        let open = self.ground.client.watch(request, Instant::now() + REQUEST).await;
        let step = self.steps.len();
        self.steps.push(open.head.clone());
        if !open.is_open() {
            return match open.head.status() {
                0 | 410 | 429 | 500.. => Err(Halt::Undecided(open.head.in_words())),
                _ => Ok(None),
            };
        }
        Ok(Some(Watching { open, step, last: String::new(), reopened: 0 }))
    }

    /// Returns the next event of an object of this check, or the next bookmark. `None` if there is
    /// no event in time, although the server responds.
    pub(super) async fn event(
        &mut self,
        watching: &mut Watching,
    ) -> Result<Option<WatchEvent>, Halt> {
        loop {
            match watching.open.next(Instant::now() + EVENT).await {
                Next::Event(event) if event.kind == "ERROR" => {
                    return Err(Halt::Undecided(format!("the watch ended: {}", event.object)));
                }
                Next::Event(mut event) => {
                    event.object = Arc::new(self.own(&event.object).0);
                    version(&event.object).clone_into(&mut watching.last);
                    let name = event.object["metadata"]["name"].as_str().unwrap_or_default();
                    if event.kind == "BOOKMARK" || name.starts_with(&self.name) {
                        return Ok(Some(event));
                    }
                }
                Next::Deadline => {
                    let collection = format!("{}?limit=1", self.collection);
                    self.send("GET", &collection, JSON, None).await?;
                    return Ok(None);
                }
                Next::End(end) => {
                    watching.reopened += 1;
                    if watching.reopened > REOPENED || watching.last.is_empty() {
                        return Err(Halt::Undecided(format!("the watch ended: {end:?}")));
                    }
                    let query = format!("resourceVersion={}", watching.last);
                    let again = self.watch(&query).await?;
                    let again = again.ok_or_else(|| {
                        Halt::Undecided("the watch cannot be opened again".to_owned())
                    })?;
                    watching.open = again.open;
                }
            }
        }
    }

    /// Returns a violation of a response.
    pub(super) fn violation(&self, step: usize, message: String, claim: Claim) -> Halt {
        Halt::Violation(Box::new(Violation { property: self.property, message, step, claim }))
    }

    /// Requires a successful response.
    pub(super) fn require(&self, reply: &Reply, what: &str) -> Result<(), Halt> {
        if reply.is_success() {
            return Ok(());
        }
        let words = self.in_words(reply.step);
        let message = format!("expected {what} to succeed, got {words}");
        Err(self.violation(reply.step, message, Claim::Accepted))
    }

    /// Describes a response.
    pub(super) fn in_words(&self, step: usize) -> String {
        self.steps.get(step).map(Exchange::in_words).unwrap_or_default()
    }

    /// Requires that there is no difference.
    pub(super) fn require_same(
        &self,
        step: usize,
        difference: Option<Difference>,
        (what, scope): (&str, Scope),
    ) -> Result<(), Halt> {
        let Some(Difference { at, expected, actual }) = difference else { return Ok(()) };
        let show = |value: &Option<Value>| match value {
            Some(value) => crate::exchange::shorten(&value.to_string()),
            None => "no value".to_owned(),
        };
        let (wanted, found) = (show(&expected), show(&actual));
        let message = format!("{what} has another {at}: expected {wanted}, got {found}");
        Err(self.violation(step, message, Claim::Member { scope, at, value: expected }))
    }
}

/// Returns the text of a body. An applied configuration is YAML, where some characters end a line.
fn text_of(body: &Value, media: &str) -> String {
    let text = body.to_string();
    if media == "application/apply-patch+yaml" {
        [('\u{2028}', "\\u2028"), ('\u{2029}', "\\u2029"), ('\u{feff}', "\\ufeff")]
            .iter()
            .fold(text, |text, (letter, escape)| text.replace(*letter, escape))
    } else {
        text
    }
}

/// Reports whether a response proves nothing about the server.
fn is_unclear(exchange: &Exchange) -> bool {
    match &exchange.outcome {
        Outcome::Broken(_) => true,
        Outcome::Response(response) => matches!(response.status, 429 | 502 | 503 | 504),
    }
}

/// Returns the media type of the body of a request.
pub(super) fn media_type(exchange: &Exchange) -> &str {
    let headers = &exchange.request.headers;
    let found = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    found.map_or("", |(_, value)| value.as_str())
}

fn outgoing(
    method: &str,
    target: &str,
    headers: Vec<(String, String)>,
    body: bytes::Bytes,
) -> Outgoing {
    let (method, target) = (method.to_owned(), target.to_owned());
    Outgoing { method, target, headers, body, identity: Identity::Admin, exact: false }
}
