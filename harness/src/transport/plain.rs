//! Ordinary exchanges by reqwest, everything silent switched off: HTTP/2 where ALPN offers it, else HTTP/1.1.
//!
//! What reqwest would rewrite (the target, by `url`; a missing Accept) is left to the exact transport.
//! One HTTP/2 connection carries all requests of a reqwest client, and beyond the server's limit of streams
//! further ones wait inside it without a word; so there are several clients, each with a bounded share.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::Method;
use http::header::{ACCEPT, CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING, UPGRADE};
use reqwest::{Client, ClientBuilder, Proxy, Request, Response};
use tokio::time::Instant;
use url::Url;

use super::body::Body;
use super::broken::{by, chain, is_tls, is_unprocessed};
use super::budget::Budget;
use super::connection::MAX_HEADERS;
use super::exact::wire_target;
use super::{Limits, Ready, record};
use crate::exchange::{Broken, BrokenKind, Outcome};
use crate::target::{TargetConfig, TargetError};
use crate::tls::PreparedTls;

/// Servers close idle connections, the hastiest after about two seconds. A request that meets the
/// closing would look like a server that hangs up on it, so idle connections are not kept that long.
const IDLE: Duration = Duration::from_secs(1);

/// Requests that share a client, which over HTTP/2 is a connection: below every common limit of streams.
const SHARE: usize = 64;

/// Beyond so many clients, requests share more.
const CLIENTS: usize = 32;

/// The library starts with windows of 64 KiB, which makes a large list wait for the network again and again.
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 64 << 20;

/// Clients with the run's client certificate, and without.
#[derive(Debug)]
pub(super) struct Plain {
    server: Url,
    prefix: String,
    authenticated: Pool,
    anonymous: Pool,
    /// TLS under another name than the URL's is beyond reqwest.
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

    /// The request, if reqwest would send it as it stands.
    pub(super) fn fitting(&self, ready: &Ready) -> Option<Request> {
        let named = |wanted| ready.headers.iter().any(|(name, _)| name == wanted);
        let framing = [CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING, UPGRADE].into_iter().any(named);
        if ready.exact || !self.usable || framing || !named(ACCEPT) || ready.method == Method::CONNECT {
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
        budget: &Budget,
    ) -> Result<Outcome, Failure> {
        let pool = if anonymous { &self.anonymous } else { &self.authenticated };
        let place = pool.place().map_err(|error| Broken::connect(error.to_string()))?;
        let answered = async {
            let stage = "waiting for the head of the answer";
            let response = by(deadline, BrokenKind::Deadline, stage, place.0.client.execute(request)).await?;
            let response = response.map_err(|error| Failure {
                unprocessed: is_unprocessed(&error),
                broken: broken(stage, error),
            })?;
            Ok(receive(response, deadline, budget).await?)
        };
        let outcome = answered.await;
        if outcome.as_ref().is_err_and(|failure: &Failure| failure.broken.kind == BrokenKind::Deadline) {
            pool.retire(&place);
        }
        outcome
    }
}

/// Why there is no answer.
pub(super) struct Failure {
    pub(super) broken: Broken,
    /// The server has said that it did not look at the request.
    pub(super) unprocessed: bool,
}

impl From<Broken> for Failure {
    fn from(broken: Broken) -> Self {
        Self { broken, unprocessed: false }
    }
}

async fn receive(mut response: Response, deadline: Instant, budget: &Budget) -> Result<Outcome, Broken> {
    let headers = record::text_headers(response.headers());
    let head = record::head(response.status(), response.version(), headers);
    let status = head.status;
    let mut body = Body::new(budget, head, response.content_length())?;
    loop {
        let stage = format!("reading the body of a {status}, {} bytes so far", body.len());
        let chunk = by(deadline, BrokenKind::Deadline, &stage, response.chunk()).await?;
        let Some(chunk) = chunk.map_err(|error| broken(&stage, error))? else { break };
        body.push(&chunk, deadline).await?;
    }
    Ok(Outcome::Answered(body.finish(deadline).await?))
}

fn broken(stage: &str, error: reqwest::Error) -> Broken {
    // The exchange says what was asked for.
    let error = error.without_url();
    if is_tls(&error) {
        Broken::new(BrokenKind::Tls, chain(&error))
    } else if error.is_connect() {
        Broken::connect(chain(&error))
    } else {
        Broken::on_connection(stage, &error)
    }
}

/// Clients that are alike, made as they are needed.
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

/// A request's place in a client, for as long as it is under way.
struct Place(Arc<Member>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Pool {
    /// With a first client, so that settings that cannot work are found at once.
    fn new(settings: Settings) -> Result<Self, TargetError> {
        let first = Member::new(&settings)?;
        Ok(Self { settings, members: Mutex::new(vec![Arc::new(first)]) })
    }

    fn place(&self) -> Result<Place, TargetError> {
        let mut members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        let load = |member: &Arc<Member>| member.in_flight.load(Ordering::Relaxed);
        // The first with room, not the idlest: connections that are warm stay so.
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

    /// Sends nothing more over the connection of a request that got no answer in time. Over HTTP/2 it may be the connection that has
    /// hung, which nobody is told; what is under way on it goes on.
    fn retire(&self, place: &Place) {
        let mut members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        members.retain(|member| !Arc::ptr_eq(member, &place.0));
    }
}

impl Member {
    fn new(settings: &Settings) -> Result<Self, TargetError> {
        let client = settings.builder()?.build().map_err(|error| TargetError::Client(chain(&error)))?;
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
            let proxy = Proxy::all(proxy.clone()).map_err(|error| TargetError::Client(chain(&error)))?;
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
