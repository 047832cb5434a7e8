//! Connects through the proxy of a kubeconfig.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::{HeaderValue, Uri};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::rt::TokioIo;
use percent_encoding::percent_decode_str;
use tokio::net::TcpStream;
use tower::{BoxError, ServiceExt};
use url::Url;

use crate::target::{Secret, TargetError};

#[derive(Debug)]
pub(super) struct Proxy {
    kind: Kind,
    /// Without credentials.
    address: Uri,
    login: Option<(String, Secret)>,
}

#[derive(Debug)]
enum Kind {
    Http,
    Socks,
}

impl Proxy {
    pub(super) fn new(url: &Url) -> Result<Self, TargetError> {
        let bad = |reason: &str| TargetError::Proxy(reason.to_owned());
        let kind = match url.scheme() {
            "http" => Kind::Http,
            "socks5" | "socks5h" => Kind::Socks,
            other => return Err(bad(&format!("the scheme {other} is neither http nor socks5"))),
        };
        let host = url.host_str().ok_or_else(|| bad("it has no host"))?;
        let port = url.port_or_known_default().unwrap_or(1080);
        let address = format!("{}://{host}:{port}", url.scheme()).parse::<Uri>();
        let text = |part: &str| percent_decode_str(part).decode_utf8_lossy().into_owned();
        let login = (!url.username().is_empty()).then(|| {
            (text(url.username()), Secret::new(&text(url.password().unwrap_or_default())))
        });
        Ok(Self { kind, address: address.map_err(|error| bad(&error.to_string()))?, login })
    }

    /// Connects to the server through the proxy.
    pub(super) async fn connect(&self, server: Uri) -> Result<TcpStream, BoxError> {
        let mut direct = HttpConnector::new();
        direct.enforce_http(false);
        let stream: TokioIo<TcpStream> = match self.kind {
            Kind::Http => {
                let mut tunnel = Tunnel::new(self.address.clone(), direct);
                if let Some((user, password)) = &self.login {
                    let login = BASE64_STANDARD.encode(format!("{user}:{}", password.reveal()));
                    tunnel = tunnel.with_auth(HeaderValue::from_str(&format!("Basic {login}"))?);
                }
                tunnel.oneshot(server).await?
            }
            Kind::Socks => {
                let mut socks = SocksV5::new(self.address.clone(), direct);
                if let Some((user, password)) = &self.login {
                    socks = socks.with_auth(user.clone(), password.reveal().to_owned());
                }
                socks.oneshot(server).await?
            }
        };
        Ok(stream.into_inner())
    }
}
