//! Sends the operations, and reads what the checks need from the responses.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use kubeproof_cases::case::Identity;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::history::{Action, Content, Operation, Outcome, Snapshot, State};
use crate::exchange::{Exchange, Outcome as Sent};
use crate::transport::{Client, Outgoing};

/// Time limit of a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Limit on the pages of a list.
const PAGES: usize = 1000;

/// Versions that watches may start from.
const KNOWN: usize = 256;

const JSON: &str = "application/json";

/// The objects of the clients, and how to change them.
#[derive(Debug)]
pub(super) struct Workload {
    pub(super) client: Client,
    pub(super) collection: String,
    /// A valid object without a name.
    pub(super) template: Value,
    /// The names that the clients use.
    pub(super) names: Vec<String>,
    /// All names begin with it.
    pub(super) prefix: String,
    pub(super) field: Field,
    /// Versions that the server returned in this round.
    known: Mutex<VecDeque<String>>,
}

/// The map that the clients write to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Field {
    /// The data of a config map.
    Data,
    /// Annotations, which each object has.
    Annotations,
}

impl Field {
    fn prefix(self) -> &'static str {
        match self {
            Self::Data => "kubeproof-",
            Self::Annotations => "kubeproof.dev/",
        }
    }

    pub(super) fn pointer(self) -> &'static str {
        match self {
            Self::Data => "/data",
            Self::Annotations => "/metadata/annotations",
        }
    }

    /// Returns a part of an object with this content.
    fn part(self, content: &Content) -> Value {
        let entries = content.iter().map(|(key, value)| (self.key(key), value.clone().into()));
        let entries = Value::Object(entries.collect());
        match self {
            Self::Data => json!({"data": entries}),
            Self::Annotations => json!({"metadata": {"annotations": entries}}),
        }
    }

    fn key(self, key: &str) -> String {
        format!("{}{key}", self.prefix())
    }

    /// Returns the entries of the clients in an object.
    fn content(self, object: &Value) -> Content {
        let entries = object.pointer(self.pointer()).and_then(Value::as_object);
        let of_clients = |(key, value): (&String, &Value)| {
            let key = key.strip_prefix(self.prefix())?.to_owned();
            Some((key, value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
        };
        entries.into_iter().flatten().filter_map(of_clients).collect()
    }
}

impl Workload {
    pub(super) fn new(
        client: Client,
        collection: String,
        template: Value,
        (prefix, names): (String, Vec<String>),
        field: Field,
    ) -> Self {
        let known = Mutex::default();
        Self { client, collection, template, names, prefix, field, known }
    }

    /// The time on the clock of the run.
    pub(super) fn now(&self) -> Duration {
        self.client.origin.elapsed()
    }

    /// Performs an operation.
    pub(super) async fn perform(&self, client: usize, action: Action) -> Operation {
        let start = self.now();
        let outcome = self.outcome_of(client, &action).await;
        let end = self.now();
        let version = match &outcome {
            Outcome::Object(state) if action.writes() => Some(&state.version),
            Outcome::Listed(snapshot, _) => Some(&snapshot.version),
            _ => None,
        };
        if let Some(version) = version {
            self.learn(version);
        }
        Operation { client, start, end, action, outcome }
    }

    /// Forgets the versions of the last round.
    pub(super) fn begin(&self, version: &str) {
        self.known().clear();
        self.learn(version);
    }

    /// Returns a version that the server returned; `place` chooses it.
    pub(super) fn known_version(&self, place: usize) -> Option<String> {
        let known = self.known();
        known.get(place % known.len().max(1)).cloned()
    }

    fn learn(&self, version: &str) {
        if version.is_empty() {
            return;
        }
        let mut known = self.known();
        if known.len() == KNOWN {
            known.pop_front();
        }
        known.push_back(version.to_owned());
    }

    fn known(&self) -> std::sync::MutexGuard<'_, VecDeque<String>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn outcome_of(&self, client: usize, action: &Action) -> Outcome {
        let field = self.field;
        let path = action.name().map(|name| format!("{}/{name}", self.collection));
        let path = path.unwrap_or_else(|| self.collection.clone());
        let (method, target, media, body) = match action {
            Action::Create(name, content) => {
                ("POST", self.collection.clone(), JSON, Some(self.object(name, content, None)))
            }
            Action::Update(name, version, content) => {
                let object = self.object(name, content, version.as_deref());
                ("PUT", path, JSON, Some(object))
            }
            Action::MergePatch(_, content) => {
                ("PATCH", path, "application/merge-patch+json", Some(field.part(content)))
            }
            Action::JsonPatch(_, content) => {
                let operations = content.iter().map(|(key, value)| {
                    let key = field.key(key).replace('/', "~1");
                    let path = format!("{}/{key}", field.pointer());
                    json!({"op": "add", "path": path, "value": value})
                });
                let operations = Value::Array(operations.collect());
                ("PATCH", path, "application/json-patch+json", Some(operations))
            }
            Action::Apply(name, content) => {
                let object = self.object(name, content, None);
                let target = format!("{path}?fieldManager=kubeproof-{client}&force=true");
                ("PATCH", target, "application/apply-patch+yaml", Some(object))
            }
            Action::Delete(_, version) => {
                ("DELETE", path, JSON, self.delete_options(version.as_deref()))
            }
            Action::Get(_) => ("GET", path, JSON, None),
            Action::List(limit) => return self.list(*limit).await,
        };
        let exchange = self.send(method, &target, media, body.as_ref()).await;
        if let Some(failure) = failure(&exchange) {
            return failure;
        }
        match (action, exchange.json()) {
            (Action::Delete(..), body) => Outcome::Deleted(body.and_then(uid_of_deleted)),
            (_, Some(object)) => Outcome::Object(self.state(object)),
            (_, None) => Outcome::Object(State::default()),
        }
    }

    /// Reads a list, page by page if there is a limit.
    pub(super) async fn list(&self, limit: Option<usize>) -> Outcome {
        let mut target = match limit {
            Some(limit) => format!("{}?limit={limit}", self.collection),
            None => self.collection.clone(),
        };
        let mut snapshot: Option<Snapshot> = None;
        let mut pages = Vec::new();
        for _ in 0..PAGES {
            let exchange = self.send("GET", &target, JSON, None).await;
            if let Some(failure) = failure(&exchange) {
                return failure;
            }
            let list = exchange.json().unwrap_or(&Value::Null);
            let whole = snapshot.get_or_insert_with(|| Snapshot {
                version: text_at(list, "/metadata/resourceVersion"),
                objects: Vec::new(),
            });
            let items = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
            pages.push(items.len());
            whole
                .objects
                .extend(items.iter().map(|item| self.state(item)).filter(|s| self.is_own(s)));
            let token = text_at(list, "/metadata/continue");
            if token.is_empty() {
                break;
            }
            let limit = limit.map(|limit| format!("limit={limit}&")).unwrap_or_default();
            let token =
                percent_encoding::utf8_percent_encode(&token, percent_encoding::NON_ALPHANUMERIC);
            target = format!("{}?{limit}continue={token}", self.collection);
        }
        Outcome::Listed(snapshot.unwrap_or_default(), pages)
    }

    /// Deletes an object of an earlier round.
    pub(super) async fn remove(&self, name: &str) {
        let path = format!("{}/{name}", self.collection);
        self.send("DELETE", &path, JSON, self.delete_options(None).as_ref()).await;
    }

    /// Reports whether a finalizer or a grace period keeps an object after its deletion. Namespaces
    /// have finalizers in their spec, too.
    pub(super) async fn outlives_deletion(&self, name: &str) -> bool {
        let path = format!("{}/{name}", self.collection);
        let exchange = self.send("GET", &path, JSON, None).await;
        let object = exchange.json().unwrap_or(&Value::Null);
        let has_items = |pointer| {
            object.pointer(pointer).and_then(Value::as_array).is_some_and(|l| !l.is_empty())
        };
        has_items("/metadata/finalizers")
            || has_items("/spec/finalizers")
            || !text_at(object, "/metadata/deletionTimestamp").is_empty()
    }

    /// Returns the body of a DELETE. Pods go at once only without a grace period.
    fn delete_options(&self, version: Option<&str>) -> Option<Value> {
        let is_graceful = self.collection.ends_with("/pods");
        if version.is_none() && !is_graceful {
            return None;
        }
        let mut options = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
        if let Some(version) = version {
            options["preconditions"] = json!({ "resourceVersion": version });
        }
        if is_graceful {
            options["gracePeriodSeconds"] = json!(0);
        }
        Some(options)
    }

    async fn send(
        &self,
        method: &str,
        target: &str,
        media: &str,
        body: Option<&Value>,
    ) -> Exchange {
        let mut headers = vec![("accept".to_owned(), JSON.to_owned())];
        if body.is_some() {
            headers.push(("content-type".to_owned(), media.to_owned()));
        }
        let request = Outgoing {
            method: method.to_owned(),
            target: target.to_owned(),
            headers,
            body: body.map(|body| body.to_string().into()).unwrap_or_default(),
            identity: Identity::Admin,
            exact: false,
        };
        self.client.send(request, Instant::now() + REQUEST_TIMEOUT).await
    }

    fn object(&self, name: &str, content: &Content, version: Option<&str>) -> Value {
        let mut object = self.template.clone();
        object["metadata"]["name"] = name.into();
        if let Some(version) = version {
            object["metadata"]["resourceVersion"] = version.into();
        }
        let part = self.field.part(content);
        if let Some(entries) = part.pointer(self.field.pointer()) {
            match self.field {
                Field::Data => object["data"] = entries.clone(),
                Field::Annotations => object["metadata"]["annotations"] = entries.clone(),
            }
        }
        object
    }

    /// Returns what the checks need of an object.
    pub(super) fn state(&self, object: &Value) -> State {
        State {
            name: text_at(object, "/metadata/name"),
            uid: text_at(object, "/metadata/uid"),
            version: text_at(object, "/metadata/resourceVersion"),
            content: self.field.content(object),
        }
    }

    pub(super) fn is_own(&self, state: &State) -> bool {
        state.name.starts_with(&self.prefix)
    }
}

/// Returns the outcome of a request without success.
fn failure(exchange: &Exchange) -> Option<Outcome> {
    match &exchange.outcome {
        Sent::Broken(broken) => Some(Outcome::Unknown(broken.message.clone())),
        Sent::Response(response) => match response.status {
            200..300 => None,
            500.. => Some(Outcome::Unknown(exchange.in_words())),
            code => {
                let reason = response.json.as_ref().map(|status| text_at(status, "/reason"));
                Some(Outcome::Rejected(code, reason.unwrap_or_default()))
            }
        },
    }
}

/// The response of a DELETE is the object, or a Status about it.
fn uid_of_deleted(body: &Value) -> Option<String> {
    let place = if body["kind"] == "Status" { "/details/uid" } else { "/metadata/uid" };
    Some(text_at(body, place)).filter(|uid| !uid.is_empty())
}

fn text_at(value: &Value, pointer: &str) -> String {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}
