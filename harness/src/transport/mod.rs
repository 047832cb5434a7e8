//! Sends requests and records responses.
//!
//! A broken exchange is an [`Exchange`], not an error, because verdicts judge it. `pooled` reuses
//! and multiplexes connections. `exact` sends each request unchanged over its own connection, also
//! requests that `pooled` cannot send unchanged.

mod body;
mod connection;
mod documents;
mod exact;
mod failure;
pub(crate) mod health;
mod identity;
mod limits;
mod memory;
mod ping;
mod pooled;
mod proxy;
mod queue;
mod rate_limiter;
mod response;
mod retry;
mod secrets;
pub mod stream;
pub mod watch;
mod wire;
pub(crate) mod write_policy;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper_util::rt::TokioIo;
use kubeproof_cases::case::Identity;
use kubeproof_cases::protocol::Carrier;
use tokio::time::Instant;

use crate::exchange::{Broken, Exchange, Outcome, Sent};
use crate::target::{PreparedTls, TargetConfig, TargetError, TlsConfig};

use self::health::Health;
pub use self::limits::Limits;
use self::memory::MemoryBudget;
pub use self::ping::Reached;
use self::queue::{Queue, Turn};
pub(crate) use self::retry::asks_to_wait;
pub use self::secrets::{Secrets, data_forms};
use self::stream::{Handshake, OpenStream, Shape};
use self::watch::OpenWatch;
pub use self::write_policy::WritePolicy;

/// A request to send.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// The method, any token.
    pub method: String,
    /// Path and query. The path of the server's URL is its prefix.
    pub target: String,
    /// In order, with repeated names. Authorization and Host are added.
    pub headers: Vec<(String, String)>,
    /// Empty without a body.
    pub body: Bytes,
    /// The credential to use.
    pub identity: Identity,
    /// True for a dedicated connection without normalisation.
    pub exact: bool,
}

/// A requested protocol upgrade.
#[derive(Clone, Copy, Debug)]
pub struct Upgrade<'a> {
    /// The offered protocols.
    pub handshake: &'a Handshake,
    /// The channels of the stream.
    pub shape: &'a Shape,
    /// True to send the bearer token as a subprotocol, like browsers.
    pub token_in_protocols: bool,
}

/// A client of one server. Clones share connections and limits.
#[derive(Clone, Debug)]
pub struct Client {
    /// The start of the run, which all times are relative to.
    pub origin: Instant,
    shared: Arc<Shared>,
    write_policy: Arc<WritePolicy>,
    /// True to use a connection per request.
    apart: bool,
    /// Receives the outcome of each request.
    health: Option<Arc<Health>>,
    /// Sends one request at a time.
    queue: Option<Arc<Queue>>,
}

#[derive(Debug)]
struct Shared {
    /// URL without credentials.
    server: String,
    limits: Limits,
    budget: MemoryBudget,
    limiter: Option<rate_limiter::Limiter>,
    identities: identity::Identities,
    plain: pooled::Plain,
    dialer: connection::Dialer,
}

impl Client {
    /// Reads certificates and tokens. Does not connect.
    pub fn new(config: &TargetConfig, limits: Limits) -> Result<Self, TargetError> {
        let tls = match &config.tls {
            TlsConfig::Prepared(tls) => PreparedTls::clone(tls),
            TlsConfig::Options(options) if config.server.scheme() == "https" => {
                PreparedTls::from_options(options)?
            }
            TlsConfig::Options(_) => PreparedTls::trusting_nobody()?,
        };
        let dialer = connection::Dialer::new(config, &tls, limits.connect_timeout)?;
        let shared = Shared {
            server: config.display_url(),
            budget: MemoryBudget::new(limits.max_body, limits.max_held),
            limiter: limits.max_rps.map(rate_limiter::Limiter::new),
            identities: identity::Identities::new(config)?,
            plain: pooled::Plain::new(config, &tls, &limits)?,
            dialer,
            limits,
        };
        Ok(Self {
            origin: Instant::now(),
            shared: Arc::new(shared),
            write_policy: Arc::default(),
            apart: false,
            health: None,
            queue: None,
        })
    }

    /// Returns a client that obeys a write policy.
    #[must_use]
    pub fn within(&self, write_policy: WritePolicy) -> Self {
        Self { write_policy: Arc::new(write_policy), ..self.clone() }
    }

    /// Reports whether the write policy permits a request.
    pub(crate) fn may_send(&self, method: &str, target: &str) -> bool {
        self.write_policy.denial(method, target).is_none()
    }

    /// Returns a client without shared connections.
    #[must_use]
    pub(crate) fn apart(&self) -> Self {
        Self { apart: true, ..self.clone() }
    }

    /// Returns a client that reports the outcome of each request.
    #[must_use]
    pub(crate) fn observed_by(&self, health: &Arc<Health>) -> Self {
        Self { health: Some(Arc::clone(health)), ..self.clone() }
    }

    /// Returns a client that sends one request at a time. Each request has this time.
    #[must_use]
    pub(crate) fn one_at_a_time(&self, timeout: Duration) -> Self {
        Self { queue: Some(Arc::new(Queue::new(timeout))), ..self.clone() }
    }

    /// Returns the URL without credentials.
    pub fn server(&self) -> &str {
        &self.shared.server
    }

    /// Waits until half of the memory for responses is free.
    pub(crate) async fn half_memory_free(&self) {
        self.shared.budget.half_free().await;
    }

    /// Reports whether there is an unprivileged credential.
    pub fn has_second(&self) -> bool {
        self.shared.identities.has_second()
    }

    /// Returns the tokens and passwords to redact.
    pub fn secrets(&self) -> Secrets {
        self.shared.identities.secrets()
    }

    /// Reports whether the main credential is a bearer token.
    pub fn by_token(&self) -> bool {
        self.shared.identities.by_token()
    }

    /// Reports whether requests impersonate a user.
    pub(crate) async fn impersonates(&self) -> bool {
        self.shared.identities.impersonates().await
    }

    /// Completes one exchange by the deadline. Retries after 429 with Retry-After.
    pub async fn send(&self, outgoing: Outgoing, deadline: Instant) -> Exchange {
        let (_turn, deadline) = self.wait_for_turn(deadline).await;
        let ask = || self.send_once(outgoing.clone(), deadline);
        retry::with_retries(deadline, ask, |exchange| exchange).await
    }

    async fn wait_for_turn(&self, deadline: Instant) -> (Option<Turn<'_>>, Instant) {
        match &self.queue {
            Some(queue) => queue.turn(deadline).await,
            None => (None, deadline),
        }
    }

    async fn send_once(&self, outgoing: Outgoing, deadline: Instant) -> Exchange {
        let ready = match self.prepare(outgoing, deadline).await {
            Ok(ready) => ready,
            Err(exchange) => return *exchange,
        };
        let sent = ready.sent.clone();
        let Shared { plain, dialer, budget, .. } = &*self.shared;
        if let Some(request) = plain.fitting(&ready).filter(|_| !self.apart) {
            let started = Instant::now();
            let outcome = match plain.send(request, ready.anonymous, deadline, budget).await {
                Ok(outcome) => outcome,
                Err(failure) if !failure.unprocessed => Outcome::Broken(failure.broken),
                // Servers may close HTTP/2 connections at any time, and identify the unprocessed
                // requests. These are sent again over a dedicated connection.
                Err(_) => match self.turn(deadline).await {
                    Ok(()) => exact::send(dialer, ready, deadline, budget).await.1,
                    Err(broken) => Outcome::Broken(broken),
                },
            };
            return self.exchange(sent, started, outcome);
        }
        let (started, outcome) = exact::send(dialer, ready, deadline, budget).await;
        self.exchange(sent, started, outcome)
    }

    /// Opens a watch over its own connection, and waits for the head. Retries after 429 with
    /// Retry-After.
    pub async fn watch(&self, outgoing: Outgoing, deadline: Instant) -> OpenWatch {
        let (_turn, deadline) = self.wait_for_turn(deadline).await;
        retry::with_retries(
            deadline,
            || self.watch_once(outgoing.clone(), deadline),
            |watch| &watch.head,
        )
        .await
    }

    /// Opens a watch without waiting for the head of the response. It keeps only these members.
    pub(crate) fn start_watch(
        &self,
        outgoing: Outgoing,
        deadline: Instant,
        keep: &[String],
    ) -> OpenWatch {
        let Outgoing { method, target, headers, body, identity, .. } = outgoing.clone();
        let request = Sent { method, target, headers, body, identity };
        let started = self.origin.elapsed();
        let (client, keep) = (self.clone(), keep.to_vec());
        let response = async move { client.watch(outgoing, deadline).await.keeping(&keep) };
        OpenWatch::sending(request, started, response)
    }

    async fn watch_once(&self, outgoing: Outgoing, deadline: Instant) -> OpenWatch {
        let ready = match self.prepare(outgoing, deadline).await {
            Ok(ready) => ready,
            Err(exchange) => return OpenWatch::rejected(*exchange),
        };
        let sent = ready.sent.clone();
        let (started, head) = exact::open(&self.shared.dialer, ready, deadline).await;
        match head {
            Err(broken) => {
                OpenWatch::rejected(self.exchange(sent, started, Outcome::Broken(broken)))
            }
            Ok(response) if response.status() != 200 => {
                let outcome = response.read(deadline, &self.shared.budget).await;
                OpenWatch::rejected(self.exchange(sent, started, outcome))
            }
            Ok(response) => {
                let (received, body) = response.into_parts();
                let head = self.exchange(sent, started, Outcome::Response(received));
                let Shared { limits, budget, .. } = &*self.shared;
                OpenWatch::reading(head, body, self.origin, limits, budget)
            }
        }
    }

    /// Opens a stream over its own connection. Retries after 429 with Retry-After. Without a valid
    /// 101, or a 200 for the body of a response, the stream is not open.
    pub async fn stream(
        &self,
        outgoing: Outgoing,
        upgrade: Upgrade<'_>,
        deadline: Instant,
    ) -> OpenStream {
        let ask = || self.stream_once(outgoing.clone(), upgrade, deadline);
        retry::with_retries(deadline, ask, |stream| &stream.head).await
    }

    async fn stream_once(
        &self,
        outgoing: Outgoing,
        Upgrade { handshake, shape, token_in_protocols }: Upgrade<'_>,
        deadline: Instant,
    ) -> OpenStream {
        let mut ready = match self.prepare(outgoing, deadline).await {
            Ok(ready) => ready,
            Err(exchange) => return OpenStream::rejected(*exchange, Vec::new()),
        };
        let token =
            if token_in_protocols { identity::token_to_protocols(&mut ready) } else { None };
        let sent = ready.sent.clone();
        let (started, head) = exact::open(&self.shared.dialer, ready, deadline).await;
        let rejected = |outcome| {
            OpenStream::rejected(self.exchange(sent.clone(), started, outcome), Vec::new())
        };
        let response = match head {
            Err(broken) => return rejected(Outcome::Broken(broken)),
            Ok(response) if response.status() != handshake.over.opening_status() => {
                return rejected(response.read(deadline, &self.shared.budget).await);
            }
            Ok(response) => response,
        };
        if handshake.over == Carrier::Http {
            let (received, body) = response.into_parts();
            let head = self.exchange(sent, started, Outcome::Response(received));
            return OpenStream::of_body(body, head, shape, self.origin);
        }
        let (mut received, upgraded) = response.upgraded(deadline).await;
        // A server may echo the token, which reports must not show.
        if let Some(token) = token {
            for (_, value) in &mut received.headers {
                *value = value.replace(&token, "$TOKEN");
            }
        }
        let problems = handshake.problems(&received);
        let protocol = handshake.chosen(&received);
        match upgraded {
            Err(broken) => rejected(Outcome::Broken(broken)),
            Ok(upgraded) => {
                let head = self.exchange(sent, started, Outcome::Response(received));
                if problems.is_empty() {
                    let io = TokioIo::new(upgraded);
                    let over = (handshake.over, protocol);
                    OpenStream::over(io, head, over, shape, self.origin)
                } else {
                    OpenStream::rejected(head, problems)
                }
            }
        }
    }

    async fn prepare(&self, outgoing: Outgoing, deadline: Instant) -> Result<Ready, Box<Exchange>> {
        let turn = match self.write_policy.denial(&outgoing.method, &outgoing.target) {
            Some(why) => Err(Broken::not_sent(why)),
            None => self.turn(deadline).await,
        };
        let prepared = match turn {
            Ok(()) => self.shared.identities.prepare(&outgoing, deadline).await,
            Err(broken) => Err(broken),
        };
        prepared.map_err(|broken| {
            let sent = Sent {
                method: outgoing.method,
                target: outgoing.target,
                headers: outgoing.headers,
                body: outgoing.body,
                identity: outgoing.identity,
            };
            Box::new(self.exchange(sent, Instant::now(), Outcome::Broken(broken)))
        })
    }

    async fn turn(&self, deadline: Instant) -> Result<(), Broken> {
        match &self.shared.limiter {
            Some(limiter) => limiter.turn(deadline).await,
            None => Ok(()),
        }
    }

    fn exchange(&self, request: Sent, started: Instant, outcome: Outcome) -> Exchange {
        let exchange = Exchange {
            request,
            outcome,
            started: started.saturating_duration_since(self.origin),
            took: started.elapsed(),
        };
        if let Some(health) = &self.health {
            health.observe(&exchange);
        }
        exchange
    }
}

/// A request, ready to send.
struct Ready {
    sent: Sent,
    method: http::Method,
    /// In order, including credentials.
    headers: Vec<(http::HeaderName, http::HeaderValue)>,
    /// True without the client certificate.
    anonymous: bool,
    exact: bool,
}
