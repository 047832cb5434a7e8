//! The requests of the comparison.

use std::io;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::try_join_all;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use serde_json::{Value, json};

use crate::client::{Client, Connection, get, post, send_all};
use crate::servers::Server;

/// Connections with one request at a time.
const CONNECTIONS: usize = 64;

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
        let path = config_maps(self.namespace());
        match self {
            Self::Create => {
                let create = |index| post(&path, &config_map(round, index));
                sample(client, server, 5_000, create).await
            }
            Self::Get => {
                client
                    .connect(server.port)
                    .await?
                    .send(post(&path, &config_map(round, 0))?)
                    .await?;
                let object = format!("{path}/object-{round}-0");
                sample(client, server, 20_000, |_| get(&object)).await
            }
            Self::List => sample(client, server, 200, |_| get(&path)).await,
            Self::ListMany => sample(client, server, 10, |_| get(&path)).await,
            Self::Watch => fan_out(client, server, &path, round).await,
        }
    }
}

fn config_maps(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps")
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
    let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    client.connect(server.port).await?.send(post("/api/v1/namespaces", &body)?).await?;
    Ok(())
}

async fn fill(client: &Client, server: &Server, name: &str, count: usize) -> io::Result<()> {
    namespace(client, server, name).await?;
    let path = config_maps(name);
    let requests = requests(count, |index| post(&path, &config_map(0, index)))?;
    send_all(client.open(server.port, CONNECTIONS).await?, requests).await
}

async fn sample(
    client: &Client,
    server: &Server,
    count: usize,
    request: impl Fn(usize) -> io::Result<Request<Full<Bytes>>>,
) -> io::Result<Sample> {
    let requests = requests(count, request)?;
    let connections = client.open(server.port, CONNECTIONS).await?;
    let meter = Meter::start(server)?;
    send_all(connections, requests).await?;
    meter.stop(count)
}

fn requests(
    count: usize,
    request: impl Fn(usize) -> io::Result<Request<Full<Bytes>>>,
) -> io::Result<Vec<Request<Full<Bytes>>>> {
    (0..count).map(request).collect()
}

/// Creates objects that all watches receive.
async fn fan_out(client: &Client, server: &Server, path: &str, round: usize) -> io::Result<Sample> {
    let version = current_version(client, server, path).await?;
    let watch = format!("{path}?watch=true&resourceVersion={version}");
    let mut watches = Vec::new();
    for mut connection in client.open(server.port, WATCHES).await? {
        let events = connection.open(get(&watch)?).await?;
        watches.push((connection, events));
    }
    let requests = requests(WATCHED, |index| post(path, &config_map(round, index)))?;
    let creators = client.open(server.port, CONNECTIONS.min(WATCHED)).await?;
    let meter = Meter::start(server)?;
    let readers = try_join_all(watches.into_iter().map(|watch| read_events(watch, WATCHED)));
    let (created, read) = tokio::join!(send_all(creators, requests), readers);
    created?;
    read?;
    meter.stop(WATCHES * WATCHED)
}

async fn current_version(client: &Client, server: &Server, path: &str) -> io::Result<String> {
    let mut connection = client.connect(server.port).await?;
    let list = connection.send(get(&format!("{path}?limit=1"))?).await?;
    let list: Value = serde_json::from_slice(&list)?;
    let version = list["metadata"]["resourceVersion"].as_str();
    version.map(str::to_owned).ok_or_else(|| io::Error::other("the list has no version"))
}

/// Reads events. Each is a line. The watch ends with its connection.
async fn read_events(watch: (Connection, Incoming), count: usize) -> io::Result<()> {
    let (_connection, mut events) = watch;
    let mut lines = 0;
    while lines < count {
        let frame = events.frame().await;
        let frame = frame.ok_or_else(|| io::Error::other("the server closed a watch"))?;
        let frame = frame.map_err(io::Error::other)?;
        let data = frame.data_ref().map_or(&[][..], |data| data);
        lines += data.split(|byte| *byte == b'\n').count() - 1;
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
