//! Catalogues of a few cases, scripted servers, and what a run over them tells.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use kubeproof_cases::case::Identity;
use kubeproof_cases::{Catalogue, Loader};
use kubeproof_harness::event::{CaseResult, Event, RunFinished, Verdict};
use kubeproof_harness::exchange::Exchange;
use kubeproof_harness::plan::{Plan, plan};
use kubeproof_harness::run::{RunOptions, run};
use kubeproof_harness::target::{Credential, TargetConfig};
use kubeproof_harness::transport::{Client, Limits, Outgoing};
use kubeproof_reference_server::{Config, Running, Server};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// A catalogue of these cases alone, given by id and by what follows the requirements.
pub(crate) fn catalogue(cases: &[(&str, &str)]) -> Catalogue {
    let mut loader = Loader::without_cases();
    for (id, text) in cases {
        let head = "summary: The server does what it must\nrequirements: [general.rest-verbs]\n";
        loader = loader.file(&format!("{id}.yaml"), &format!("{id}.yaml"), &format!("{head}{text}"));
    }
    loader.load().unwrap_or_else(|diagnostics| panic!("{diagnostics}"))
}

/// Options with a short time for each case.
pub(crate) fn options() -> RunOptions {
    RunOptions { case_timeout: Duration::from_secs(5), ..RunOptions::default() }
}

/// What a scripted server answers.
pub(crate) enum Reply {
    /// This.
    Json(u16, Value),
    /// 200 and nothing in it, so much later.
    After(Duration),
    /// 200, and no more of the body, ever.
    Silence,
    /// Nothing, ever.
    Hang,
    /// The end of the connection.
    HangUp,
}

/// A server that answers by a function of method, target and body, and remembers what it was asked.
pub(crate) struct Peer {
    pub(crate) client: Client,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Peer {
    pub(crate) async fn start(answer: impl Fn(&str, &str, &Value) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = client(&format!("http://{}", listener.local_addr().unwrap()), None);
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (answer, log) = (Arc::new(answer), Arc::clone(&asked));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (answer, log) = (Arc::clone(&answer), Arc::clone(&log));
                let service =
                    service_fn(move |request| reply(request, Arc::clone(&answer), Arc::clone(&log)));
                let connection = hyper::server::conn::http1::Builder::new();
                tokio::spawn(connection.serve_connection(TokioIo::new(stream), service));
            }
        });
        Self { client, asked }
    }

    /// How often this was asked for so far.
    pub(crate) fn asked(&self, line: &str) -> usize {
        self.asked.lock().unwrap().iter().filter(|asked| *asked == line).count()
    }

    /// Requests so far that may change something.
    pub(crate) fn writes(&self) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        asked.iter().filter(|line| !line.starts_with("GET ")).cloned().collect()
    }
}

async fn reply(
    request: Request<hyper::body::Incoming>,
    answer: Arc<impl Fn(&str, &str, &Value) -> Reply>,
    log: Arc<Mutex<Vec<String>>>,
) -> Result<Response<UnsyncBoxBody<Bytes, Infallible>>, &'static str> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let body = serde_json::from_slice(&body).unwrap_or_default();
    let target = head.uri.to_string();
    log.lock().unwrap().push(format!("{} {target}", head.method));
    let with = |status: u16, body: UnsyncBoxBody<Bytes, Infallible>| {
        Ok(Response::builder().status(status).header("content-type", "application/json").body(body).unwrap())
    };
    let json = |status: u16, json: &Value| with(status, Full::from(json.to_string()).boxed_unsync());
    match answer(head.method.as_str(), &target, &body) {
        Reply::Json(status, body) => json(status, &body),
        Reply::After(time) => {
            let _ = tokio::time::timeout(time, std::future::pending::<()>()).await;
            json(200, &json!({}))
        }
        Reply::Silence => with(200, StreamBody::new(futures_util::stream::pending()).boxed_unsync()),
        Reply::Hang => std::future::pending().await,
        Reply::HangUp => Err("as the script says"),
    }
}

fn client(url: &str, token: Option<&str>) -> Client {
    let mut config = TargetConfig::new(url).unwrap();
    if let Some(token) = token {
        config.credential = Credential::token(token).unwrap();
    }
    Client::new(&config, Limits::default()).unwrap()
}

/// The reference server, and a client of its administrator.
pub(crate) async fn reference() -> (Running, Client) {
    let server = Server::start(Config::default()).await.unwrap();
    let client = client(&server.url(), Some(server.admin_token()));
    (server, client)
}

/// Events that a run tells before it waits for the test to hear them.
const UNHEARD: usize = 64;

/// A run that is under way.
pub(crate) struct Going {
    pub(crate) interrupt: CancellationToken,
    events: mpsc::Receiver<Event>,
}

/// What a run told.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) results: Vec<Arc<CaseResult>>,
    pub(crate) notices: Vec<String>,
    pub(crate) finished: Option<RunFinished>,
}

impl Going {
    pub(crate) async fn begin(catalogue: &Catalogue, client: &Client, options: &RunOptions) -> Self {
        Self::begin_within(UNHEARD, catalogue, client, options).await
    }

    /// A run that may be ahead by so many events.
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

    /// Waits for this event.
    pub(crate) async fn until(&mut self, is_it: impl Fn(&Event) -> bool) {
        while let Some(event) = self.events.recv().await {
            if is_it(&event) {
                return;
            }
        }
        panic!("the run ended before");
    }

    /// What the run tells from here to its end.
    pub(crate) async fn end(mut self) -> Told {
        let mut told = Told::default();
        while let Some(event) = self.events.recv().await {
            match event {
                Event::CaseFinished(result) => told.results.push(result),
                Event::Notice(text) => told.notices.push(text),
                Event::RunFinished(finished) => told.finished = Some(finished),
                Event::RunStarted(_) | Event::CaseStarted { .. } => {}
            }
        }
        told
    }
}

/// Plans and runs.
pub(crate) async fn told(catalogue: &Catalogue, client: &Client, options: &RunOptions) -> Told {
    Going::begin(catalogue, client, options).await.end().await
}

impl Told {
    /// The one result of this case.
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

/// The verdicts of the checks, by their ids.
pub(crate) fn checks(result: &CaseResult) -> Vec<(&str, Verdict)> {
    result.checks.iter().map(|check| (check.id.as_str(), check.verdict)).collect()
}

/// The names in a list that the client gets.
pub(crate) async fn names(client: &Client, path: &str) -> Vec<String> {
    let exchange = send(client, "GET", path, Bytes::new()).await;
    let items = exchange.json().unwrap_or(&json!({}))["items"].clone();
    let items = items.as_array().cloned().unwrap_or_default();
    items.iter().map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

/// Creates an object that is none of a run's.
pub(crate) async fn create(client: &Client, path: &str, object: &Value) {
    assert_eq!(send(client, "POST", path, object.to_string().into()).await.status(), 201);
}

async fn send(client: &Client, method: &str, target: &str, body: Bytes) -> Exchange {
    let request = Outgoing {
        method: method.into(),
        target: target.into(),
        headers: ["accept", "content-type"].map(|name| (name.into(), "application/json".into())).into(),
        body,
        identity: Identity::Admin,
        exact: false,
    };
    client.send(request, Instant::now() + Duration::from_secs(5)).await
}
