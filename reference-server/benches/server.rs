//! The speed of the reference server, relative to a bare hyper server in the same run.
//!
//! The baseline returns the same bytes from a constant, so its time is the cost of HTTP and of the
//! client. Compare ratios to the baseline, not absolute times.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use futures_util::stream::{FuturesUnordered, StreamExt};
use http::{Method, Request, header};
use http_body_util::{BodyExt, Full};
use hyper::service::service_fn;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use kubeproof_reference_server::{Config, Running, Server};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;

type Http = Client<HttpConnector, Full<Bytes>>;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const TOKEN: &str = "bench";
/// The token of a user with the permissions of a role.
const USER_TOKEN: &str = "user";

/// Allows all users to read everything.
const BINDING: &str = r#"{
    "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
    "metadata": {"name": "view"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
    "subjects": [{
        "apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:authenticated"
    }]
}"#;

criterion_group!(benches, start, get, post, list, fan_out);
criterion_main!(benches);

/// Measures the time from the start of a server to its first response.
fn start(c: &mut Criterion) {
    let runtime = runtime();
    c.bench_function("start to first response", |b| {
        b.to_async(&runtime).iter(|| async {
            let server = serve().await;
            let http = http_client();
            get_once(&http, &format!("{}/readyz", server.url())).await;
            server.shutdown().await;
        });
    });
}

/// Measures reads of one object, 64 at a time over one connection pool.
fn get(c: &mut Criterion) {
    const READS: usize = 2_000;
    let runtime = runtime();
    let (server, peer) = runtime.block_on(async {
        let server = serve().await;
        let http = http_client();
        create(&http, &server, "one").await;
        let body = get_once(&http, &format!("{}{MAPS}/one", server.url())).await;
        let url = format!("{}/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", server.url());
        let (status, _) = send(&http, TOKEN, Method::POST, &url, BINDING.into()).await;
        assert_eq!(status, 201);
        (server, bare_peer(body).await)
    });
    let mut group = c.benchmark_group("GET");
    group.throughput(Throughput::Elements(READS as u64));
    for (name, url, token) in [
        ("reference-server", server.url(), TOKEN),
        ("reference-server, with roles", server.url(), USER_TOKEN),
        ("bare-hyper", peer, TOKEN),
    ] {
        let url = format!("{}{MAPS}/one", url.trim_end_matches('/'));
        let http = http_client();
        group.bench_with_input(BenchmarkId::from_parameter(name), &url, |b, url| {
            b.to_async(&runtime).iter(|| many(&http, token, url, READS));
        });
    }
    group.finish();
}

/// Measures creates, 64 at a time.
fn post(c: &mut Criterion) {
    const WRITES: usize = 500;
    let runtime = runtime();
    let mut group = c.benchmark_group("POST");
    group.throughput(Throughput::Elements(WRITES as u64));
    group.bench_function("reference-server", |b| {
        b.to_async(&runtime).iter_custom(|iterations| async move {
            let mut total = Duration::ZERO;
            for _ in 0..iterations {
                let server = serve().await;
                let http = http_client();
                let started = Instant::now();
                let mut running = FuturesUnordered::new();
                for index in 0..WRITES {
                    if running.len() == 64 {
                        running.next().await;
                    }
                    let (http, server) = (&http, &server);
                    running.push(
                        async move { create(http, server, &format!("object-{index}")).await },
                    );
                }
                while running.next().await.is_some() {}
                total += started.elapsed();
                drop(running);
                server.shutdown().await;
            }
            total
        });
    });
    group.finish();
}

/// Measures a list of 10,000 objects.
fn list(c: &mut Criterion) {
    const OBJECTS: usize = 10_000;
    let runtime = runtime();
    let (server, http) = runtime.block_on(async {
        let server = serve().await;
        let http = http_client();
        for index in 0..OBJECTS {
            create(&http, &server, &format!("object-{index}")).await;
        }
        (server, http)
    });
    let url = format!("{}{MAPS}", server.url());
    let mut group = c.benchmark_group("LIST");
    group.throughput(Throughput::Elements(OBJECTS as u64));
    group.sample_size(20);
    group.bench_function("10,000 objects", |b| b.to_async(&runtime).iter(|| get_once(&http, &url)));
    group.finish();
}

/// Measures the time from one write to its arrival at a thousand watchers.
fn fan_out(c: &mut Criterion) {
    const WATCHERS: usize = 1_000;
    let runtime = runtime();
    let (server, http, mut watchers) = runtime.block_on(async {
        let server = serve().await;
        let http = http_client();
        let mut watchers = Vec::with_capacity(WATCHERS);
        for _ in 0..WATCHERS {
            watchers.push(watch(server.addr()).await);
        }
        (server, http, watchers)
    });
    let mut group = c.benchmark_group("watch");
    group.throughput(Throughput::Elements(WATCHERS as u64));
    group.sample_size(20);
    let mut serial = 0_u64;
    group.bench_function("one event to 1,000 watchers", |b| {
        b.iter_custom(|iterations| {
            let mut total = Duration::ZERO;
            for _ in 0..iterations {
                serial += 1;
                let name = format!("event-{serial}");
                total += runtime.block_on(async {
                    let started = Instant::now();
                    create(&http, &server, &name).await;
                    let waiting: FuturesUnordered<_> =
                        watchers.iter_mut().map(|watcher| read_until(watcher, &name)).collect();
                    assert_eq!(waiting.count().await, WATCHERS);
                    started.elapsed()
                });
            }
            total
        });
    });
    group.finish();
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime")
}

async fn serve() -> Running {
    let config = Config {
        admin_token: TOKEN.into(),
        user_token: Some(USER_TOKEN.into()),
        ..Config::default()
    };
    Server::start(config).await.expect("the reference server starts")
}

/// Starts a server that returns the same bytes for every request.
async fn bare_peer(body: Bytes) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let body = body.clone();
            let _ = stream.set_nodelay(true);
            tokio::spawn(async move {
                let service = service_fn(move |_: Request<hyper::body::Incoming>| {
                    let body = body.clone();
                    async move {
                        let response = http::Response::builder()
                            .header(header::CONTENT_TYPE, "application/json")
                            .body(Full::new(body));
                        Ok::<_, Infallible>(response.expect("a response"))
                    }
                });
                let _ = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    });
    format!("http://{address}")
}

fn http_client() -> Http {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    Client::builder(TokioExecutor::new()).pool_max_idle_per_host(128).build(connector)
}

async fn many(http: &Http, token: &str, url: &str, count: usize) {
    let mut running = FuturesUnordered::new();
    for _ in 0..count {
        if running.len() == 64 {
            running.next().await;
        }
        running.push(get_as(http, token, url));
    }
    while running.next().await.is_some() {}
}

async fn get_once(http: &Http, url: &str) -> Bytes {
    get_as(http, TOKEN, url).await
}

async fn get_as(http: &Http, token: &str, url: &str) -> Bytes {
    let (status, body) = send(http, token, Method::GET, url, Bytes::new()).await;
    assert_eq!(status, 200, "{url}");
    body
}

async fn create(http: &Http, server: &Running, name: &str) {
    let body = format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}"}},
            "data":{{"key":"a value of some length"}}}}"#
    );
    let url = format!("{}{MAPS}", server.url());
    let (status, response) = send(http, TOKEN, Method::POST, &url, Bytes::from(body)).await;
    assert_eq!(status, 201, "{}", String::from_utf8_lossy(&response));
}

async fn send(http: &Http, token: &str, method: Method, url: &str, body: Bytes) -> (u16, Bytes) {
    let request = Request::builder()
        .method(method)
        .uri(url)
        .header(header::AUTHORIZATION, format!("Bearer {token}"))
        .header(header::CONTENT_TYPE, "application/json")
        .body(Full::new(body))
        .expect("a request");
    let response = http.request(request).await.expect("a response");
    let status = response.status().as_u16();
    (status, response.into_body().collect().await.expect("a body").to_bytes())
}

/// Opens a watch over a bare socket and reads the response head.
async fn watch(address: SocketAddr) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    let request = format!(
        "GET {MAPS}?watch=true HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {TOKEN}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.expect("the request goes out");
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        assert_ne!(
            reader.read_line(&mut line).await.expect("a head"),
            0,
            "the watch ended in its head"
        );
    }
    reader
}

async fn read_until(watcher: &mut BufReader<TcpStream>, name: &str) {
    let wanted = format!("\"name\":\"{name}\"");
    let mut line = String::new();
    while !line.contains(&wanted) {
        line.clear();
        assert_ne!(watcher.read_line(&mut line).await.expect("an event"), 0, "the watch ended");
    }
}
