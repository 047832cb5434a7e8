//! Sends requests and records what comes back.
//!
//! A broken exchange is an [`Exchange`] like any other, never an error: what a server does to a
//! connection is part of what it is judged by. Two ways lead out: `plain` pools and multiplexes, and `exact` sends
//! each request over a connection of its own with nothing normalised. What the first cannot send as written goes over the second.

mod body;
mod broken;
mod budget;
mod connection;
mod exact;
mod identity;
mod limiter;
mod patience;
mod ping;
mod plain;
mod proxy;
mod record;
mod secrets;
mod token_file;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper_util::rt::TokioIo;
use kubeproof_cases::case::Identity;
use tokio::time::Instant;

use crate::exchange::{Broken, Exchange, Outcome, Sent};
use crate::fence::Fence;
use crate::stream::{Handshake, OpenStream, Shape};
use crate::target::{TargetConfig, TargetError, TlsConfig};
use crate::tls::PreparedTls;
use crate::watch::OpenWatch;

pub(crate) use body::kept;
pub(crate) use broken::chain;
pub(crate) use budget::{Budget, Growth, Held};
pub(crate) use exact::OpenBody;
pub use ping::Reached;
pub(crate) use record::json_of;
pub use secrets::Secrets;
pub(crate) use token_file::TokenFile;

/// A request to be sent.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// Any token.
    pub method: String,
    /// Path and query. The path of the server's URL goes in front of it.
    pub target: String,
    /// In order, repeated names allowed. Authorization and Host are added.
    pub headers: Vec<(String, String)>,
    /// Empty for none.
    pub body: Bytes,
    /// Whose credential goes with it.
    pub identity: Identity,
    /// Over a connection of its own, with nothing normalised.
    pub exact: bool,
}

/// What a connection is to become.
#[derive(Clone, Copy, Debug)]
pub struct Upgrade<'a> {
    /// The protocols that are offered.
    pub handshake: &'a Handshake,
    /// What comes over it.
    pub shape: &'a Shape,
    /// The bearer token goes with the protocols, as browsers have to send it.
    pub token_in_protocols: bool,
}

/// How much is read, and how fast requests go out.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of an ordinary body.
    pub max_body: usize,
    /// Bytes of memory that all large answers and all events of watches take which are received or looked at.
    pub max_held: usize,
    /// Bytes of a line of a watch.
    pub max_line: usize,
    /// Bytes of a watch in all.
    pub max_watch_bytes: usize,
    /// Requests a second.
    pub max_rps: Option<u32>,
    /// For a connection to stand, TLS included. Shorter than the deadlines of requests: a server that
    /// cannot be reached is told from one that takes a request and hangs by which of them passes.
    pub connect_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_body: 32 << 20,
            max_held: 64 << 20,
            max_line: 8 << 20,
            max_watch_bytes: 32 << 20,
            max_rps: None,
            connect_timeout: Duration::from_secs(10),
        }
    }
}

/// A client of one server. Clones share connections and limits.
#[derive(Clone, Debug)]
pub struct Client {
    /// The start of the run: what every recorded time counts from.
    pub origin: Instant,
    shared: Arc<Shared>,
    fence: Arc<Fence>,
    /// Each request has a connection of its own.
    apart: bool,
}

#[derive(Debug)]
struct Shared {
    /// Without credentials.
    server: String,
    limits: Limits,
    budget: Budget,
    limiter: Option<limiter::Limiter>,
    identities: identity::Identities,
    plain: plain::Plain,
    dialer: connection::Dialer,
}

impl Client {
    /// Reads what the configuration names (certificates, tokens); connects to nothing.
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
            budget: Budget::new(limits.max_body, limits.max_held),
            limiter: limits.max_rps.map(limiter::Limiter::new),
            identities: identity::Identities::new(config)?,
            plain: plain::Plain::new(config, &tls, &limits)?,
            dialer,
            limits,
        };
        Ok(Self { origin: Instant::now(), shared: Arc::new(shared), fence: Arc::default(), apart: false })
    }

    /// A client that sends nothing beyond the fence.
    #[must_use]
    pub fn within(&self, fence: Fence) -> Self {
        Self { fence: Arc::new(fence), ..self.clone() }
    }

    /// A client that shares no connection: what others are answered cannot harm it.
    #[must_use]
    pub(crate) fn apart(&self) -> Self {
        Self { apart: true, ..self.clone() }
    }

    /// The URL of the server, without credentials.
    pub fn server(&self) -> &str {
        &self.shared.server
    }

    /// Whether an unprivileged credential was given.
    pub fn has_second(&self) -> bool {
        self.shared.identities.has_second()
    }

    /// The tokens and passwords that go out with requests, for whoever has to keep them out of sight.
    pub fn secrets(&self) -> Secrets {
        self.shared.identities.secrets()
    }

    /// Whether the run itself authenticates by a bearer token.
    pub fn by_token(&self) -> bool {
        self.shared.identities.by_token()
    }

    /// Whether the run itself acts as another user.
    pub(crate) async fn impersonates(&self) -> bool {
        self.shared.identities.impersonates().await
    }

    /// One exchange, complete or broken, ended by the deadline at the latest. A server that asks to come back later is
    /// asked again then.
    pub async fn send(&self, outgoing: Outgoing, deadline: Instant) -> Exchange {
        let ask = || self.send_once(outgoing.clone(), deadline);
        patience::insist(deadline, ask, |exchange| exchange).await
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
                // Servers close HTTP/2 connections as they like, and name the requests that came too late:
                // those have not been answered yet. A connection of its own cannot be closed under a request.
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

    /// Opens a watch over a connection of its own, and waits for the head of the answer; later, where the server asks for
    /// that.
    pub async fn watch(&self, outgoing: Outgoing, deadline: Instant) -> OpenWatch {
        patience::insist(deadline, || self.watch_once(outgoing.clone(), deadline), |watch| &watch.head).await
    }

    async fn watch_once(&self, outgoing: Outgoing, deadline: Instant) -> OpenWatch {
        let ready = match self.prepare(outgoing, deadline).await {
            Ok(ready) => ready,
            Err(exchange) => return OpenWatch::refused(*exchange),
        };
        let sent = ready.sent.clone();
        let (started, head) = exact::open(&self.shared.dialer, ready, deadline).await;
        match head {
            Err(broken) => OpenWatch::refused(self.exchange(sent, started, Outcome::Broken(broken))),
            Ok(answer) if answer.status() != 200 => {
                let outcome = answer.read(deadline, &self.shared.budget).await;
                OpenWatch::refused(self.exchange(sent, started, outcome))
            }
            Ok(answer) => {
                let (received, body) = answer.into_parts();
                let head = self.exchange(sent, started, Outcome::Answered(received));
                let Shared { limits, budget, .. } = &*self.shared;
                OpenWatch::reading(head, body, self.origin, limits, budget)
            }
        }
    }

    /// Asks for an upgrade over a connection of its own; later, where the server asks for that. What is not a 101 by the
    /// book is an ordinary answer.
    pub async fn stream(&self, outgoing: Outgoing, upgrade: Upgrade<'_>, deadline: Instant) -> OpenStream {
        let ask = || self.stream_once(outgoing.clone(), upgrade, deadline);
        patience::insist(deadline, ask, |stream| &stream.head).await
    }

    async fn stream_once(
        &self,
        outgoing: Outgoing,
        Upgrade { handshake, shape, token_in_protocols }: Upgrade<'_>,
        deadline: Instant,
    ) -> OpenStream {
        let mut ready = match self.prepare(outgoing, deadline).await {
            Ok(ready) => ready,
            Err(exchange) => return OpenStream::refused(*exchange, Vec::new()),
        };
        let token = if token_in_protocols { identity::token_to_protocols(&mut ready) } else { None };
        let sent = ready.sent.clone();
        let (started, head) = exact::open(&self.shared.dialer, ready, deadline).await;
        let refused =
            |outcome| OpenStream::refused(self.exchange(sent.clone(), started, outcome), Vec::new());
        let answer = match head {
            Err(broken) => return refused(Outcome::Broken(broken)),
            Ok(answer) if answer.status() != 101 => {
                return refused(answer.read(deadline, &self.shared.budget).await);
            }
            Ok(answer) => answer,
        };
        let (mut received, upgraded) = answer.upgraded(deadline).await;
        // A server that gives our token back must not bring it into reports.
        if let Some(token) = token {
            for (_, value) in &mut received.headers {
                *value = value.replace(&token, "$TOKEN");
            }
        }
        let problems = handshake.problems(&received);
        let protocol = handshake.chosen(&received);
        match upgraded {
            Err(broken) => refused(Outcome::Broken(broken)),
            Ok(upgraded) => {
                let head = self.exchange(sent, started, Outcome::Answered(received));
                if problems.is_empty() {
                    let io = TokioIo::new(upgraded);
                    let over = (handshake.over, protocol);
                    OpenStream::over(io, head, over, shape, self.origin)
                } else {
                    OpenStream::refused(head, problems)
                }
            }
        }
    }

    async fn prepare(&self, outgoing: Outgoing, deadline: Instant) -> Result<Ready, Box<Exchange>> {
        let turn = match self.fence.holds_back(&outgoing.method, &outgoing.target) {
            Some(why) => Err(Broken::connect(format!("not sent: {why}"))),
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
        Exchange {
            request,
            outcome,
            started: started.saturating_duration_since(self.origin),
            took: started.elapsed(),
        }
    }
}

/// A request with everything on it.
struct Ready {
    sent: Sent,
    method: http::Method,
    /// In order, credentials included.
    headers: Vec<(http::HeaderName, http::HeaderValue)>,
    /// Without a client certificate.
    anonymous: bool,
    exact: bool,
}
