//! The requests of the comparison.

use std::io;
use std::time::{Duration, Instant};

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};

use crate::servers::{Server, TOKEN};

/// Concurrent requests.
const CONCURRENCY: usize = 64;

/// The objects of the large list.
const MANY: usize = 10_000;

/// Concurrent watches, and the objects that a round creates for them.
const WATCHES: usize = 1_000;
const WATCHED: usize = 20;

/// A kind of requests.
#[derive(Clone, Copy)]
pub(crate) enum Load {
    Create,
    Get,
    List,
    ListMany,
    Watch,
}

/// The figures of one round.
#[derive(Clone, Copy)]
pub(crate) struct Sample {
    /// Requests or events per second.
    pub(crate) per_second: f64,
    /// Requests or events for each second of CPU time of the server.
    pub(crate) per_cpu_second: f64,
}

impl Load {
    /// All loads. Later ones use the objects of earlier ones.
    pub(crate) const ALL: [Self; 5] =
        [Self::Create, Self::Get, Self::List, Self::ListMany, Self::Watch];

    /// Returns the name of the row.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Create => "POST of a ConfigMap",
            Self::Get => "GET of a ConfigMap",
            Self::List => "LIST of 500 ConfigMaps",
            Self::ListMany => "LIST of 10,000 ConfigMaps",
            Self::Watch => "events to 1,000 watches",
        }
    }

    /// Creates what all rounds use.
    pub(crate) async fn prepare(self, client: &Client, server: &Server) -> io::Result<()> {
        match self {
            Self::Create => namespace(client, server, "load").await,
            Self::Get | Self::Watch => namespace(client, server, self.namespace()).await,
            Self::List => fill(client, server, self.namespace(), 500).await,
            Self::ListMany => fill(client, server, self.namespace(), MANY).await,
        }
    }

    /// The namespace of its objects.
    fn namespace(self) -> &'static str {
        match self {
            Self::Create => "load",
            Self::Get => "load-get",
            Self::List => "load-list",
            Self::ListMany => "load-many",
            Self::Watch => "load-watch",
        }
    }

    /// Sends the requests of a round.
    pub(crate) async fn run(
        self,
        client: &Client,
        server: &Server,
        round: usize,
    ) -> io::Result<Sample> {
        let url = config_maps(server, self.namespace());
        match self {
            Self::Create => {
                let create = |index| post(client, &url, &config_map(round, index));
                sample(server, 2_000, create).await
            }
            Self::Get => {
                send(post(client, &url, &config_map(round, 0))).await?;
                let object = format!("{url}/object-{round}-0");
                sample(server, 20_000, |_| client.get(&object)).await
            }
            Self::List => sample(server, 200, |_| client.get(&url)).await,
            Self::ListMany => sample(server, 10, |_| client.get(&url)).await,
            Self::Watch => fan_out(client, server, &url, round).await,
        }
    }
}

fn config_maps(server: &Server, namespace: &str) -> String {
    format!("{}/api/v1/namespaces/{namespace}/configmaps", server.url)
}

fn config_map(round: usize, index: usize) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": format!("object-{round}-{index}")},
        "data": {"key": "a value of some length"},
    })
}

async fn namespace(client: &Client, server: &Server, name: &str) -> io::Result<()> {
    let url = format!("{}/api/v1/namespaces", server.url);
    let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    send(post(client, &url, &body)).await
}

async fn fill(client: &Client, server: &Server, name: &str, count: usize) -> io::Result<()> {
    namespace(client, server, name).await?;
    let url = config_maps(server, name);
    all(count, |index| post(client, &url, &config_map(0, index))).await
}

fn post(client: &Client, url: &str, object: &Value) -> RequestBuilder {
    client.post(url).header(CONTENT_TYPE, "application/json").body(object.to_string())
}

async fn sample(
    server: &Server,
    count: usize,
    request: impl Fn(usize) -> RequestBuilder,
) -> io::Result<Sample> {
    let meter = Meter::start(server)?;
    all(count, request).await?;
    meter.stop(count)
}

async fn all(count: usize, request: impl Fn(usize) -> RequestBuilder) -> io::Result<()> {
    let responses = stream::iter(0..count).map(|index| send(request(index)));
    responses.buffer_unordered(CONCURRENCY).try_collect::<Vec<()>>().await?;
    Ok(())
}

/// Sends a request, and reads the whole response.
async fn send(request: RequestBuilder) -> io::Result<()> {
    let response = request.bearer_auth(TOKEN).send().await.map_err(io::Error::other)?;
    let status = response.status();
    let body = response.bytes().await.map_err(io::Error::other)?;
    if status.is_success() {
        return Ok(());
    }
    let body = String::from_utf8_lossy(&body);
    Err(io::Error::other(format!("expected success, got HTTP {status}: {body}")))
}

/// Creates objects that all watches receive.
async fn fan_out(client: &Client, server: &Server, url: &str, round: usize) -> io::Result<Sample> {
    // A server limits the streams of a connection, so each watch has its own.
    let separate = Client::builder().danger_accept_invalid_certs(true).no_proxy().http1_only();
    let separate = separate.build().map_err(io::Error::other)?;
    let version = current_version(client, url).await?;
    let open = |_| {
        let watch = format!("{url}?watch=true&resourceVersion={version}");
        let request = separate.get(watch).bearer_auth(TOKEN).send();
        async { request.await.and_then(reqwest::Response::error_for_status) }
    };
    let watches = stream::iter(0..WATCHES).map(open).buffer_unordered(CONCURRENCY);
    let watches: Vec<reqwest::Response> = watches.try_collect().await.map_err(io::Error::other)?;
    let meter = Meter::start(server)?;
    let readers: Vec<_> =
        watches.into_iter().map(|watch| tokio::spawn(read_events(watch, WATCHED))).collect();
    all(WATCHED, |index| post(client, url, &config_map(round, index))).await?;
    for reader in readers {
        reader.await.map_err(io::Error::other)??;
    }
    meter.stop(WATCHES * WATCHED)
}

async fn current_version(client: &Client, url: &str) -> io::Result<String> {
    let request = client.get(format!("{url}?limit=1")).bearer_auth(TOKEN);
    let response = request.send().await.map_err(io::Error::other)?;
    let list = response.bytes().await.map_err(io::Error::other)?;
    let list: Value = serde_json::from_slice(&list)?;
    let version = list["metadata"]["resourceVersion"].as_str();
    version.map(str::to_owned).ok_or_else(|| io::Error::other("the list has no version"))
}

/// Reads events. Each is a line.
async fn read_events(mut watch: reqwest::Response, count: usize) -> io::Result<()> {
    let mut lines = 0;
    while lines < count {
        let chunk = watch.chunk().await.map_err(io::Error::other)?;
        let chunk = chunk.ok_or_else(|| io::Error::other("the server closed a watch"))?;
        lines += chunk.split(|byte| *byte == b'\n').count() - 1;
    }
    Ok(())
}

/// The clock and the CPU time of the server at the start of a measurement.
struct Meter<'a> {
    server: &'a Server,
    started: Instant,
    used: Duration,
}

impl<'a> Meter<'a> {
    fn start(server: &'a Server) -> io::Result<Self> {
        Ok(Self { server, started: Instant::now(), used: server.cpu_time()? })
    }

    fn stop(self, count: usize) -> io::Result<Sample> {
        let elapsed = self.started.elapsed();
        let used = self.server.cpu_time()?.saturating_sub(self.used);
        #[expect(clippy::cast_precision_loss, reason = "a round has less than 2^52 requests")]
        let per = |time: Duration| count as f64 / time.as_secs_f64().max(0.01);
        Ok(Sample { per_second: per(elapsed), per_cpu_second: per(used) })
    }
}
