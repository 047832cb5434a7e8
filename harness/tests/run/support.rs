//! Builds catalogues and scripted servers, and collects the events of runs.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::StreamExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use kubeproof_cases::case::Identity;
use kubeproof_cases::{Catalogue, Loader};
use kubeproof_harness::event::{CaseResult, Event, RunFinished, Verdict};
use kubeproof_harness::exchange::Exchange;
use kubeproof_harness::plan::RunOptions;
use kubeproof_harness::plan::{Plan, plan};
use kubeproof_harness::run::run;
use kubeproof_harness::target::{Credential, TargetConfig};
use kubeproof_harness::transport::{Client, Limits, Outgoing};
use kubeproof_reference_server::{Config, Running, Server};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Builds a catalogue of cases, each with its id and its text after the requirements.
pub(crate) fn catalogue(cases: &[(&str, &str)]) -> Catalogue {
    let mut loader = Loader::without_cases();
    for (id, text) in cases {
        let head = "summary: The server does what it must\nrequirements: [general.rest-verbs]\n";
        loader =
            loader.file(&format!("{id}.yaml"), &format!("{id}.yaml"), &format!("{head}{text}"));
    }
    loader.load().unwrap_or_else(|diagnostics| panic!("{diagnostics}"))
}

/// A case that lists the objects of a built-in subject.
pub(crate) const READS: &str = "
subject: {of: builtin, verbs: [list]}
steps:
  - request: {id: read, method: GET, path: '${collection}', expect: [{id: ok, status: 200}]}
";

/// Options with a short case timeout.
pub(crate) fn options() -> RunOptions {
    RunOptions { case_timeout: Duration::from_secs(5), ..RunOptions::default() }
}

/// A scripted reply.
pub(crate) enum Reply {
    /// A status and a body.
    Json(u16, Value),
    /// A 200 with a version after a delay.
    After(Duration),
    /// A 200 whose body never ends.
    Silence,
    /// A 200 with one watch event, whose body never ends.
    Event(Value),
    /// A 429 that asks for another attempt after a second.
    Busy,
    /// No reply.
    Hang,
    /// A closed connection.
    HangUp,
    /// A closed connection. From then on, the server refuses connections.
    GoAway,
}

/// A server with a reply function, which records its requests.
pub(crate) struct Peer {
    pub(crate) client: Client,
    log: Arc<Log>,
}

/// The requests that a peer received.
#[derive(Default)]
struct Log {
    asked: Mutex<Vec<String>>,
    /// Requests without a response so far, and the most of them at any time.
    waiting: Mutex<(usize, usize)>,
    /// Cancelled when the peer goes away, and when it has closed its port.
    leaves: CancellationToken,
    is_gone: CancellationToken,
}

impl Peer {
    pub(crate) async fn start(
        response: impl Fn(&str, &str, &Value) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = client(&format!("http://{}", listener.local_addr().unwrap()), None);
        let log = Arc::new(Log::default());
        let (response, seen) = (Arc::new(response), Arc::clone(&log));
        tokio::spawn(async move {
            let leaves = seen.leaves.clone();
            while let Some(Ok((stream, _))) = leaves.run_until_cancelled(listener.accept()).await {
                let (response, log) = (Arc::clone(&response), Arc::clone(&seen));
                let service = service_fn(move |request| {
                    reply(request, Arc::clone(&response), Arc::clone(&log))
                });
                let connection = hyper::server::conn::http1::Builder::new();
                tokio::spawn(connection.serve_connection(TokioIo::new(stream), service));
            }
            drop(listener);
            seen.is_gone.cancel();
        });
        Self { client, log }
    }

    /// Returns the largest number of requests at the same time.
    pub(crate) fn most_at_once(&self) -> usize {
        self.log.waiting.lock().unwrap().1
    }

    /// Counts requests with this line.
    pub(crate) fn asked(&self, line: &str) -> usize {
        self.log.asked.lock().unwrap().iter().filter(|asked| *asked == line).count()
    }

    /// Returns requests that are not reads.
    pub(crate) fn writes(&self) -> Vec<String> {
        let asked = self.log.asked.lock().unwrap();
        asked.iter().filter(|line| !line.starts_with("GET ")).cloned().collect()
    }
}

async fn reply(
    request: Request<hyper::body::Incoming>,
    response: Arc<impl Fn(&str, &str, &Value) -> Reply>,
    log: Arc<Log>,
) -> Result<Response<UnsyncBoxBody<Bytes, Infallible>>, &'static str> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let body = serde_json::from_slice(&body).unwrap_or_default();
    let target = head.uri.to_string();
    log.asked.lock().unwrap().push(format!("{} {target}", head.method));
    if log.leaves.is_cancelled() {
        return Err("it is gone");
    }
    log.arrived();
    let responded = respond(response(head.method.as_str(), &target, &body), &target, &log).await;
    log.waiting.lock().unwrap().0 -= 1;
    responded
}

async fn respond(
    response: Reply,
    target: &str,
    log: &Log,
) -> Result<Response<UnsyncBoxBody<Bytes, Infallible>>, &'static str> {
    let with = |status: u16, body: UnsyncBoxBody<Bytes, Infallible>| {
        Ok(Response::builder()
            .status(status)
            .header("content-type", "application/json")
            .body(body)
            .unwrap())
    };
    let json =
        |status: u16, json: &Value| with(status, Full::from(json.to_string()).boxed_unsync());
    match response {
        // Otherwise the peer would not look like a Kubernetes API.
        Reply::Json(200 | 404, _) | Reply::After(Duration::ZERO) if target == "/version" => {
            json(200, &json!({"gitVersion": "v1.2.3"}))
        }
        Reply::Json(status, body) => json(status, &body),
        Reply::Busy => Ok(Response::builder()
            .status(429)
            .header("retry-after", "1")
            .body(Full::default().boxed_unsync())
            .unwrap()),
        Reply::After(time) => {
            let _ = tokio::time::timeout(time, std::future::pending::<()>()).await;
            json(200, &json!({"gitVersion": "v1.2.3"}))
        }
        Reply::Silence => {
            with(200, StreamBody::new(futures_util::stream::pending()).boxed_unsync())
        }
        Reply::Event(event) => {
            let frame = Frame::data(Bytes::from(format!("{event}\n")));
            let frames = futures_util::stream::iter([Ok(frame)]);
            let endless = frames.chain(futures_util::stream::pending());
            with(200, StreamBody::new(endless).boxed_unsync())
        }
        Reply::Hang => std::future::pending().await,
        Reply::HangUp => Err("as the script says"),
        Reply::GoAway => {
            log.leaves.cancel();
            log.is_gone.cancelled().await;
            Err("it goes away")
        }
    }
}

impl Log {
    fn arrived(&self) {
        let (waiting, most) = &mut *self.waiting.lock().unwrap();
        *waiting += 1;
        *most = (*most).max(*waiting);
    }
}

fn client(url: &str, token: Option<&str>) -> Client {
    let mut config = TargetConfig::new(url).unwrap();
    if let Some(token) = token {
        config.credential = Credential::token(token).unwrap();
    }
    Client::new(&config, Limits::default()).unwrap()
}

/// Starts the reference server with an administrator's client.
pub(crate) async fn reference() -> (Running, Client) {
    let server = Server::start(Config::default()).await.unwrap();
    let client = client(&server.url(), Some(server.admin_token()));
    (server, client)
}

/// Capacity of the event channel.
const CHANNEL_CAPACITY: usize = 64;

/// A run in progress.
pub(crate) struct RunInProgress {
    pub(crate) interrupt: CancellationToken,
    events: mpsc::Receiver<Event>,
}

/// The events of a run.
#[derive(Debug, Default)]
pub(crate) struct RunEvents {
    pub(crate) results: Vec<Arc<CaseResult>>,
    pub(crate) notices: Vec<String>,
    pub(crate) finished: Option<RunFinished>,
}

impl RunInProgress {
    pub(crate) async fn begin(
        catalogue: &Catalogue,
        client: &Client,
        options: &RunOptions,
    ) -> Self {
        Self::begin_within(CHANNEL_CAPACITY, catalogue, client, options).await
    }

    /// Starts a run with this capacity of the event channel.
    pub(crate) async fn begin_within(
        unheard: usize,
        catalogue: &Catalogue,
        client: &Client,
        options: &RunOptions,
    ) -> Self {
        Self::follow(unheard, plan(catalogue, client, options).await.unwrap(), client, options)
    }

    fn follow(unheard: usize, plan: Plan, client: &Client, options: &RunOptions) -> Self {
        let (sender, events) = mpsc::channel(unheard);
        let interrupt = CancellationToken::new();
        let (client, options, token) = (client.clone(), options.clone(), interrupt.clone());
        tokio::spawn(async move { run(plan, client, &options, sender, token).await });
        Self { interrupt, events }
    }

    /// Waits for an event.
    pub(crate) async fn until(&mut self, is_it: impl Fn(&Event) -> bool) {
        while let Some(event) = self.events.recv().await {
            if is_it(&event) {
                return;
            }
        }
        panic!("the run ended before");
    }

    /// Returns the starts and the ends of cases in their order.
    pub(crate) async fn course(mut self) -> Vec<String> {
        let mut course = Vec::new();
        while let Some(event) = self.events.recv().await {
            match event {
                Event::CaseStarted { id, .. } => course.push(format!("start {id}")),
                Event::CaseFinished(result) => course.push(format!("end {}", result.id)),
                Event::RunStarted(_)
                | Event::Notice(_)
                | Event::Leftover(_)
                | Event::Progress(_)
                | Event::RunFinished(_) => {}
            }
        }
        course
    }

    /// Collects the remaining events of the run.
    pub(crate) async fn end(mut self) -> RunEvents {
        let mut run = RunEvents::default();
        while let Some(event) = self.events.recv().await {
            match event {
                Event::CaseFinished(result) => run.results.push(result),
                Event::Notice(text) | Event::Leftover(text) => run.notices.push(text),
                Event::RunFinished(finished) => run.finished = Some(finished),
                Event::RunStarted(_) | Event::CaseStarted { .. } | Event::Progress(_) => {}
            }
        }
        run
    }
}

/// Plans and runs cases, and collects the events.
pub(crate) async fn run_cases(
    catalogue: &Catalogue,
    client: &Client,
    options: &RunOptions,
) -> RunEvents {
    RunInProgress::begin(catalogue, client, options).await.end().await
}

impl RunEvents {
    /// Returns the only result of a case.
    pub(crate) fn of(&self, id: &str) -> &CaseResult {
        let mut results = self.results.iter().filter(|result| result.id == id);
        let (first, second) = (results.next(), results.next());
        assert!(second.is_none(), "{id} has several results");
        first.unwrap_or_else(|| panic!("{id} has no result"))
    }

    pub(crate) fn count(&self, verdict: Verdict) -> usize {
        self.finished.as_ref().unwrap().summary[&verdict]
    }
}

/// Returns the verdicts of checks by id.
pub(crate) fn checks(result: &CaseResult) -> Vec<(&str, Verdict)> {
    result.checks.iter().map(|check| (check.id.as_str(), check.verdict)).collect()
}

/// Lists the names of objects.
pub(crate) async fn names(client: &Client, path: &str) -> Vec<String> {
    let exchange = send(client, "GET", path, Bytes::new()).await;
    let items = exchange.json().unwrap_or(&json!({}))["items"].clone();
    let items = items.as_array().cloned().unwrap_or_default();
    items.iter().map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

/// Creates an object that does not belong to a run.
pub(crate) async fn create(client: &Client, path: &str, object: &Value) {
    assert_eq!(send(client, "POST", path, object.to_string().into()).await.status(), 201);
}

async fn send(client: &Client, method: &str, target: &str, body: Bytes) -> Exchange {
    let request = Outgoing {
        method: method.into(),
        target: target.into(),
        headers: ["accept", "content-type"]
            .map(|name| (name.into(), "application/json".into()))
            .into(),
        body,
        identity: Identity::Admin,
        exact: false,
    };
    client.send(request, Instant::now() + Duration::from_secs(5)).await
}
