//! What a server is started with.

use std::net::{Ipv4Addr, SocketAddr};

use rand::distr::{Alphanumeric, SampleString};

use crate::{Faults, Variations};

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
    /// How many events are kept per resource before a version older than them answers 410.
    pub history: usize,
    /// Have a node, which runs pods in a scripted runtime (see the README). Default: none, and pods stay pending.
    pub node: bool,
    /// Come with a custom resource, `gadgets.v1.devices.example.com`, for those who judge published schemas and need some.
    /// Default: no.
    pub sample: bool,
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
            history: 10_000,
            node: false,
            sample: false,
            faults: Faults::none(),
            variations: Variations::none(),
        }
    }
}

/// TLS with an authority and a server certificate that are generated at the start.
#[derive(Clone, Debug, Default)]
pub struct Tls {
    /// Host names and addresses of the certificate besides `localhost`, the loopback addresses and the listening one.
    pub names: Vec<String>,
}
