//! What a server is started with.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use rand::distr::{Alphanumeric, SampleString};

use crate::{Cuts, Faults, Variations};

/// Everything that a server is started with; [`Config::default`] is right for a test in the same process.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where to listen; port 0 takes a free one. Default: a free port on the loopback interface.
    pub listen: SocketAddr,
    /// Serve TLS, or plain HTTP (the default, and the fastest to start).
    pub tls: Option<Tls>,
    /// The bearer token of the administrator, who may do everything. Default: a random one.
    pub admin_token: String,
    /// The bearer token of a user who is known but has no rights. Default: none.
    pub user_token: Option<String>,
    /// The bearer token of a user who may read everything and change nothing. Default: none.
    pub viewer_token: Option<String>,
    /// How many events are kept per resource before a version older than them answers 410.
    pub history: usize,
    /// Have a node, which runs pods in a scripted runtime (see the README). Default: none, and pods stay pending.
    pub node: bool,
    /// Come with a custom resource, `gadgets.v1.devices.example.com`, for those who judge published schemas and need some.
    /// Default: no.
    pub sample: bool,
    /// What a client is granted, so that others are served too.
    pub limits: Limits,
    /// What this server is without. Default: nothing.
    pub cuts: Cuts,
    /// The deliberate bugs of this server. Default: none.
    pub faults: Faults,
    /// The lawful differences of this server. Default: none.
    pub variations: Variations,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            tls: None,
            admin_token: Alphanumeric.sample_string(&mut rand::rng(), 32),
            user_token: None,
            viewer_token: None,
            history: 10_000,
            node: false,
            sample: false,
            limits: Limits::DEFAULT,
            cuts: Cuts::none(),
            faults: Faults::none(),
            variations: Variations::none(),
        }
    }
}

/// What one client is granted. What lies beyond is answered with 408, 413 or 429, or the connection is closed.
///
/// These are the limits that a test may want to move. Others are fixed, as they are in a real server: a body has at most 3 MiB, and
/// its JSON at most 500 levels.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How long the handshake of TLS and the head of a request may take; also how long a connection may rest between requests.
    /// Default: 30 seconds.
    pub head: Duration,
    /// How long the body of a request may take. Default: 60 seconds.
    pub body: Duration,
    /// How long a client may take nothing of an answer or a watch that is sent to it. Logs, commands and forwarded ports wait for
    /// ever. Default: 60 seconds.
    pub stall: Duration,
    /// How many bytes of bodies may be under way at once; the first 64 KiB of each do not count. Default: 128 MiB.
    pub bodies: usize,
    /// How many connections may be open without having asked for anything; beyond it the oldest go. Default: 1024.
    pub waiting: usize,
}

impl Limits {
    /// The limits of a server that is not told otherwise.
    pub const DEFAULT: Self = Self {
        head: Duration::from_secs(30),
        body: Duration::from_mins(1),
        stall: Duration::from_mins(1),
        bodies: 128 * 1024 * 1024,
        waiting: 1024,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// TLS with an authority and a server certificate that are generated at the start.
#[derive(Clone, Debug, Default)]
pub struct Tls {
    /// Host names and addresses of the certificate besides `localhost`, the loopback addresses and the listening one.
    pub names: Vec<String>,
}
