//! The requests of the comparison, 64 at a time.

use std::io;
use std::time::Instant;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};

use crate::servers::{Server, TOKEN};

/// The concurrent requests.
const CONCURRENCY: usize = 64;

/// The requests of a round. Lists have 500 objects, so fewer of them take as long.
const CREATES: usize = 500;
const READS: usize = 5_000;
const LISTS: usize = 100;

/// Creates objects in the namespace of the round. Returns the requests per second.
pub(crate) async fn creates(client: &Client, server: &Server, round: usize) -> io::Result<f64> {
    let namespaces = format!("{}/api/v1/namespaces", server.url);
    let namespace = json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": format!("round-{round}")},
    });
    send(post(client, &namespaces, &namespace)).await?;
    let url = format!("{namespaces}/round-{round}/configmaps");
    rate(CREATES, |index| {
        let object = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": format!("object-{index}")},
            "data": {"key": "a value of some length"},
        });
        post(client, &url, &object)
    })
    .await
}

/// Reads an object of the first round. Returns the requests per second.
pub(crate) async fn reads(client: &Client, server: &Server) -> io::Result<f64> {
    let url = format!("{}/api/v1/namespaces/round-0/configmaps/object-0", server.url);
    rate(READS, |_| client.get(&url)).await
}

/// Lists the objects of the first round. Returns the requests per second.
pub(crate) async fn lists(client: &Client, server: &Server) -> io::Result<f64> {
    let url = format!("{}/api/v1/namespaces/round-0/configmaps", server.url);
    rate(LISTS, |_| client.get(&url)).await
}

fn post(client: &Client, url: &str, object: &Value) -> RequestBuilder {
    client.post(url).header(CONTENT_TYPE, "application/json").body(object.to_string())
}

async fn rate(count: usize, request: impl Fn(usize) -> RequestBuilder) -> io::Result<f64> {
    let started = Instant::now();
    let responses = stream::iter(0..count).map(|index| send(request(index)));
    responses.buffer_unordered(CONCURRENCY).try_collect::<Vec<()>>().await?;
    #[expect(clippy::cast_precision_loss, reason = "a round has few requests")]
    Ok(count as f64 / started.elapsed().as_secs_f64())
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
