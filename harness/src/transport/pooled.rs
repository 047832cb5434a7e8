//! Sends ordinary requests with reqwest, without redirects, proxies or retries.
//!
//! `exact` takes requests that reqwest would change. One HTTP/2 connection carries all requests of
//! a reqwest client, and requests beyond the server's stream limit wait inside it. Therefore a pool
//! of clients shares the load.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::Method;
use http::header::{ACCEPT, CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING, UPGRADE};
use kubeproof_cases::plural;
use reqwest::{Client, ClientBuilder, Proxy, Request, Response};
use tokio::time::Instant;
use url::Url;

use super::body::Body;
use super::connection::MAX_HEADERS;
use super::exact::wire_target;
use super::failure::{by, is_tls, is_unprocessed};
use super::memory::MemoryBudget;
use super::{Limits, Ready, response};
use crate::exchange::{Broken, BrokenKind, Outcome};
use crate::target::{PreparedTls, TargetConfig, TargetError, error_chain};

/// Below the idle timeout of common servers, one second or more. A request on a closing connection
/// would look like a server error.
const IDLE: Duration = Duration::from_millis(500);

/// Concurrent requests per client, below common stream limits.
const SHARE: usize = 64;

/// Limit on clients. Beyond, clients have more requests.
const CLIENTS: usize = 32;

/// The default of 64 KiB slows large lists.
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 64 << 20;

/// Pools with and without the client certificate.
#[derive(Debug)]
pub(super) struct Plain {
    server: Url,
    prefix: String,
    authenticated: Pool,
    anonymous: Pool,
    /// False if the TLS name differs from the URL, which reqwest does not support.
    usable: bool,
}

impl Plain {
    pub(super) fn new(
        config: &TargetConfig,
        tls: &PreparedTls,
        limits: &Limits,
    ) -> Result<Self, TargetError> {
        let pool = |anonymous| {
            Pool::new(Settings {
                tls: tls.config(anonymous, &[b"h2", b"http/1.1"]),
                proxy: config.proxy.clone(),
                connect_timeout: limits.connect_timeout,
            })
        };
        Ok(Self {
            server: config.server.clone(),
            prefix: config.server.path().trim_end_matches('/').to_owned(),
            authenticated: pool(false)?,
            anonymous: pool(true)?,
            usable: tls.server_name.is_none(),
        })
    }

    /// Returns the request, if reqwest sends it unchanged.
    pub(super) fn fitting(&self, ready: &Ready) -> Option<Request> {
        let named = |wanted| ready.headers.iter().any(|(name, _)| name == wanted);
        let framing =
            [CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING, UPGRADE].into_iter().any(named);
        if ready.exact
            || !self.usable
            || framing
            || !named(ACCEPT)
            || ready.method == Method::CONNECT
        {
            return None;
        }
        let wanted = wire_target(&self.prefix, &ready.sent.target);
        let url = self.server.join("/").ok()?.join(&wanted).ok()?;
        let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
        if format!("{}{query}", url.path()) != wanted || url.host() != self.server.host() {
            return None;
        }
        let mut request = Request::new(ready.method.clone(), url);
        for (name, value) in &ready.headers {
            request.headers_mut().append(name.clone(), value.clone());
        }
        if !ready.sent.body.is_empty() {
            *request.body_mut() = Some(ready.sent.body.clone().into());
        }
        Some(request)
    }

    pub(super) async fn send(
        &self,
        request: Request,
        anonymous: bool,
        deadline: Instant,
        budget: &MemoryBudget,
    ) -> Result<Outcome, Failure> {
        let pool = if anonymous { &self.anonymous } else { &self.authenticated };
        let place = pool.place().map_err(Broken::not_sent)?;
        let responded = async {
            let stage = "waiting for the head of the response";
            let response =
                by(deadline, BrokenKind::Deadline, stage, place.0.client.execute(request)).await?;
            let response = response.map_err(|error| Failure {
                unprocessed: is_unprocessed(&error),
                broken: broken(stage, error),
            })?;
            Ok(receive(response, deadline, budget).await?)
        };
        let outcome = responded.await;
        if outcome
            .as_ref()
            .is_err_and(|failure: &Failure| failure.broken.kind == BrokenKind::Deadline)
        {
            pool.retire(&place);
        }
        outcome
    }
}

/// Why there is no response.
pub(super) struct Failure {
    pub(super) broken: Broken,
    /// True if the server did not process the request.
    pub(super) unprocessed: bool,
}

impl From<Broken> for Failure {
    fn from(broken: Broken) -> Self {
        Self { broken, unprocessed: false }
    }
}

async fn receive(
    mut response: Response,
    deadline: Instant,
    budget: &MemoryBudget,
) -> Result<Outcome, Broken> {
    let headers = response::text_headers(response.headers());
    let head = response::head(response.status(), response.version(), headers);
    let status = head.status;
    let mut body = Body::new(budget, head, response.content_length())?;
    loop {
        let length = plural(body.len(), "byte");
        let stage = format!("reading the body of a {status}, {length} so far");
        let chunk = by(deadline, BrokenKind::Deadline, &stage, response.chunk()).await?;
        let Some(chunk) = chunk.map_err(|error| broken(&stage, error))? else { break };
        body.push(&chunk, deadline).await?;
    }
    Ok(Outcome::Response(body.finish(deadline).await?))
}

fn broken(stage: &str, error: reqwest::Error) -> Broken {
    // The exchange has the URL already.
    let error = error.without_url();
    if is_tls(&error) {
        Broken::new(BrokenKind::Tls, error_chain(&error))
    } else if error.is_connect() {
        Broken::connect(error_chain(&error))
    } else {
        Broken::on_connection(stage, &error)
    }
}

/// Clients with the same settings, created on demand.
#[derive(Debug)]
struct Pool {
    settings: Settings,
    members: Mutex<Vec<Arc<Member>>>,
}

#[derive(Debug)]
struct Member {
    client: Client,
    in_flight: AtomicUsize,
}

/// A slot in a client for one request.
struct Place(Arc<Member>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Pool {
    /// Creates the first client, so that invalid settings fail early.
    fn new(settings: Settings) -> Result<Self, TargetError> {
        let first = Member::new(&settings)?;
        Ok(Self { settings, members: Mutex::new(vec![Arc::new(first)]) })
    }

    fn place(&self) -> Result<Place, TargetError> {
        let mut members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        let load = |member: &Arc<Member>| member.in_flight.load(Ordering::Relaxed);
        // The first with a free slot, to keep connections warm.
        let with_room = members.iter().find(|member| load(member) < SHARE).cloned();
        let member = match with_room {
            Some(member) => member,
            None if members.len() < CLIENTS => {
                let member = Arc::new(Member::new(&self.settings)?);
                members.push(Arc::clone(&member));
                member
            }
            None => members
                .iter()
                .min_by_key(|member| load(member))
                .cloned()
                .ok_or_else(|| TargetError::Client("there is no client".to_owned()))?,
        };
        member.in_flight.fetch_add(1, Ordering::Relaxed);
        Ok(Place(member))
    }

    /// Retires the client of a request that timed out, because its HTTP/2 connection may hang. Its
    /// other requests continue.
    fn retire(&self, place: &Place) {
        let mut members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        members.retain(|member| !Arc::ptr_eq(member, &place.0));
    }
}

impl Member {
    fn new(settings: &Settings) -> Result<Self, TargetError> {
        let client = settings
            .builder()?
            .build()
            .map_err(|error| TargetError::Client(error_chain(&error)))?;
        Ok(Self { client, in_flight: AtomicUsize::new(0) })
    }
}

struct Settings {
    tls: rustls::ClientConfig,
    proxy: Option<Url>,
    connect_timeout: Duration,
}

impl Settings {
    fn builder(&self) -> Result<ClientBuilder, TargetError> {
        let mut builder = Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .no_proxy()
            .connect_timeout(self.connect_timeout)
            .pool_idle_timeout(IDLE)
            .http1_max_headers(MAX_HEADERS)
            .http2_initial_stream_window_size(STREAM_WINDOW)
            .http2_initial_connection_window_size(CONNECTION_WINDOW)
            .http2_max_header_list_size(1 << 20)
            .tcp_nodelay(true)
            .tls_backend_preconfigured(self.tls.clone());
        if let Some(proxy) = &self.proxy {
            let proxy = Proxy::all(proxy.clone())
                .map_err(|error| TargetError::Client(error_chain(&error)))?;
            builder = builder.proxy(proxy);
        }
        Ok(builder)
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").field("proxy", &self.proxy.is_some()).finish_non_exhaustive()
    }
}
