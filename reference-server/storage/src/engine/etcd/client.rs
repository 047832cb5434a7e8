//! A client of etcd 3, which uses one server until it fails, and then the next one.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream;
use http::uri::PathAndQuery;
use prost::Message;
use tokio::time::error::Elapsed;
use tokio::time::{Instant, sleep, timeout};
use tonic::client::Grpc;
use tonic::metadata::MetadataValue;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Code, ConnectError, Request, Status, Streaming};
use tonic_prost::ProstCodec;

use super::messages::{
    CompactionRequest, CompactionResponse, RangeRequest, RangeResponse, TxnRequest, TxnResponse,
    WatchCreateRequest, WatchRequest, WatchResponse,
};
use super::{EtcdError, EtcdOptions, EtcdTls};

/// The time that a server may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// The time that a request may take. An election takes about two seconds.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// The interval of pings on an idle connection, and the time that a response to one may take.
const KEEP_ALIVE: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(3));
/// The time during which a request is repeated, and the pauses.
const RETRIES: (Duration, Duration) = (Duration::from_secs(5), Duration::from_millis(50));

/// A client, which is cheap to clone.
#[derive(Clone)]
pub(super) struct Client {
    channels: Arc<[Channel]>,
    /// The index of the server in use.
    current: Arc<AtomicUsize>,
}

impl Client {
    /// Creates a client. It connects when it sends the first request.
    pub(super) fn new(options: &EtcdOptions) -> Result<Self, EtcdError> {
        let channels = options.servers.iter().map(|url| channel(url, options.tls.as_ref()));
        let channels: Arc<[Channel]> = channels.collect::<Result<_, _>>()?;
        if channels.is_empty() {
            return Err(EtcdError::NoServer);
        }
        Ok(Self { channels, current: Arc::default() })
    }

    /// Reads keys. The result has all writes that ended before the call. A read has no effects, so
    /// the client repeats it if a server fails.
    pub(super) async fn range(&self, request: RangeRequest) -> Result<RangeResponse, Status> {
        self.repeated("/etcdserverpb.KV/Range", request, is_outage).await
    }

    /// Runs a transaction. If a server fails after it has received the transaction, the outcome is
    /// unknown.
    pub(super) async fn transact(&self, request: TxnRequest) -> Result<TxnResponse, Status> {
        self.repeated("/etcdserverpb.KV/Txn", request, is_unsent).await
    }

    /// Discards the history before a revision.
    pub(super) async fn compact(&self, revision: u64) -> Result<CompactionResponse, Status> {
        let request = CompactionRequest { revision: revision.cast_signed() };
        self.repeated("/etcdserverpb.KV/Compact", request, is_unsent).await
    }

    /// Starts a watch, which ends when the stream is dropped.
    pub(super) async fn watch(
        &self,
        create: WatchCreateRequest,
    ) -> Result<Streaming<WatchResponse>, Status> {
        let (index, mut grpc) = self.grpc();
        let start = async {
            grpc.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
            let create = WatchRequest { create: Some(create) };
            // The end of the requests would end the watch.
            let mut request = Request::new(stream::iter([create]).chain(stream::pending()));
            // Otherwise, a server without its cluster would keep the watch open.
            request.metadata_mut().insert("hasleader", MetadataValue::from_static("true"));
            let path = PathAndQuery::from_static("/etcdserverpb.Watch/Watch");
            Ok(grpc.streaming(request, path, ProstCodec::default()).await?.into_inner())
        };
        self.observed(index, timeout(REQUEST_TIMEOUT, start).await)
    }

    /// Uses another server for the next requests.
    pub(super) fn switch(&self) {
        self.leave(self.current.load(Ordering::Relaxed));
    }

    /// Sends a request until a server responds, or an error forbids another attempt.
    async fn repeated<M1, M2>(
        &self,
        path: &'static str,
        request: M1,
        may_repeat: fn(&Status) -> bool,
    ) -> Result<M2, Status>
    where
        M1: Message + Clone + 'static,
        M2: Message + Default + 'static,
    {
        let (limit, pause) = RETRIES;
        let deadline = Instant::now() + limit;
        loop {
            match self.unary(path, request.clone()).await {
                Err(status) if may_repeat(&status) && Instant::now() < deadline => {
                    sleep(pause).await;
                }
                result => return result,
            }
        }
    }

    async fn unary<M1, M2>(&self, path: &'static str, request: M1) -> Result<M2, Status>
    where
        M1: Message + 'static,
        M2: Message + Default + 'static,
    {
        let (index, mut grpc) = self.grpc();
        let call = async {
            grpc.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
            let path = PathAndQuery::from_static(path);
            let codec = ProstCodec::default();
            Ok(grpc.unary(Request::new(request), path, codec).await?.into_inner())
        };
        self.observed(index, timeout(REQUEST_TIMEOUT, call).await)
    }

    fn grpc(&self) -> (usize, Grpc<Channel>) {
        let index = self.current.load(Ordering::Relaxed) % self.channels.len();
        let grpc = Grpc::new(self.channels[index].clone());
        // A response can have many objects, and etcd limits the size of each.
        (index, grpc.max_decoding_message_size(usize::MAX))
    }

    /// Leaves a server that failed.
    fn observed<T>(
        &self,
        index: usize,
        result: Result<Result<T, Status>, Elapsed>,
    ) -> Result<T, Status> {
        let result = result.unwrap_or_else(|_| {
            Err(Status::deadline_exceeded(format!("no response within {REQUEST_TIMEOUT:?}")))
        });
        if result.as_ref().is_err_and(is_outage) {
            self.leave(index);
        }
        result
    }

    fn leave(&self, index: usize) {
        let next = (index + 1) % self.channels.len();
        // If another request has left the server already, the new one stays.
        let order = Ordering::Relaxed;
        let _ = self.current.compare_exchange(index, next, order, order);
    }
}

/// Reports whether another server may succeed.
fn is_outage(status: &Status) -> bool {
    use Code::{Cancelled, DeadlineExceeded, Internal, Unavailable, Unknown};
    matches!(status.code(), Unavailable | DeadlineExceeded | Cancelled | Internal | Unknown)
}

/// Reports whether no server has received the request.
pub(super) fn is_unsent(status: &Status) -> bool {
    let mut cause = status.source();
    while let Some(error) = cause {
        if error.is::<ConnectError>() {
            return true;
        }
        cause = error.source();
    }
    false
}

/// Reports whether a revision is compacted.
pub(super) fn is_compacted(status: &Status) -> bool {
    status.code() == Code::OutOfRange && status.message().contains("compacted")
}

fn channel(url: &str, tls: Option<&EtcdTls>) -> Result<Channel, EtcdError> {
    let invalid =
        |why: &dyn std::fmt::Display| EtcdError::Url { url: url.to_owned(), why: why.to_string() };
    let is_https = url.starts_with("https://");
    if !is_https && !url.starts_with("http://") {
        return Err(invalid(&"expected http://HOST:PORT or https://HOST:PORT"));
    }
    let (interval, limit) = KEEP_ALIVE;
    let mut endpoint = Endpoint::from_shared(url.to_owned())
        .map_err(|error| invalid(&error))?
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(interval)
        .keep_alive_timeout(limit)
        .keep_alive_while_idle(true);
    if is_https {
        let config = tls_config(tls.unwrap_or(&EtcdTls::default()));
        endpoint = endpoint.tls_config(config).map_err(|error| invalid(&source_of(&error)))?;
    }
    Ok(endpoint.connect_lazy())
}

fn tls_config(tls: &EtcdTls) -> ClientTlsConfig {
    let mut config = ClientTlsConfig::new();
    if let Some(pem) = &tls.ca_pem {
        config = config.ca_certificate(Certificate::from_pem(pem));
    }
    if let Some((certificate, key)) = &tls.client_pem {
        config = config.identity(Identity::from_pem(certificate, key));
    }
    config
}

/// Returns the innermost cause of an error, which has the reason.
pub(super) fn source_of(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
