//! The server under test: where it is, and who asks.
//!
//! Everything that is secret lives in [`Secret`], which no formatter shows.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use http::HeaderValue;
use url::Url;

use crate::kubeconfig::Login;
use crate::tls::{PreparedTls, TlsOptions};

/// A bearer token, a password or a key. Neither `Debug` nor `Display` shows it.
#[derive(Clone, Eq, PartialEq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Takes a secret; surrounding white space (the newline of a token file) is no part of it.
    pub fn new(text: &str) -> Self {
        Self(text.trim().into())
    }

    /// The secret, for the wire alone.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// The value of an Authorization header with this token; `None` when it cannot stand in a header.
    pub(crate) fn bearer(&self) -> Option<HeaderValue> {
        let mut value = HeaderValue::from_str(&format!("Bearer {}", self.0)).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<redacted>")
    }
}

/// How a request proves who sends it, beside a client certificate.
#[derive(Clone, Debug, Default)]
pub enum Credential {
    /// By nothing, or by the client certificate alone.
    #[default]
    None,
    /// By a bearer token.
    Token(Secret),
    /// By a bearer token in a file, which is read again once a minute: projected tokens rotate.
    TokenFile(PathBuf),
    /// As a kubeconfig says: exec plugin, OIDC, token file, basic auth; refreshed when it expires.
    Login(Login),
}

impl Credential {
    /// A bearer token, checked to be one that a header can carry.
    pub fn token(token: &str) -> Result<Self, TargetError> {
        let secret = Secret::new(token);
        if secret.reveal().is_empty() || secret.bearer().is_none() {
            return Err(TargetError::Token { place: "the token given".to_owned() });
        }
        Ok(Self::Token(secret))
    }

    /// A file with a bearer token, checked to hold one now.
    pub fn token_file(path: &Path) -> Result<Self, TargetError> {
        let text = read_file("token file", path)?;
        match Self::token(&String::from_utf8_lossy(&text)) {
            Ok(_) => Ok(Self::TokenFile(path.to_owned())),
            Err(_) => Err(TargetError::Token { place: path.display().to_string() }),
        }
    }
}

/// Everything that is needed to talk to a server.
#[derive(Clone, Debug)]
pub struct TargetConfig {
    /// Its URL. A path is kept in front of every target (a workspace, a proxy's mount point).
    pub server: Url,
    /// The run's own credential.
    pub credential: Credential,
    /// An unprivileged user's, for cases about 403.
    pub second: Option<Credential>,
    /// Trust, and the client certificate.
    pub tls: TlsConfig,
    /// The user that the run's own requests act as.
    pub impersonate: Option<String>,
    /// An HTTP or SOCKS5 proxy; only ever from a kubeconfig that names one, never from the environment.
    pub proxy: Option<Url>,
}

/// Where the TLS settings come from.
#[derive(Clone, Debug)]
pub enum TlsConfig {
    /// From options; read when the client is made.
    Options(TlsOptions),
    /// Made by the kubeconfig loader.
    Prepared(Box<PreparedTls>),
}

impl Default for TlsConfig {
    fn default() -> Self {
        Self::Options(TlsOptions::default())
    }
}

impl TargetConfig {
    /// A server by its URL, without a credential.
    pub fn new(server: &str) -> Result<Self, TargetError> {
        let bad =
            |reason: &str| TargetError::Url { url: without_password(server), reason: reason.to_owned() };
        let url = Url::parse(server).map_err(|error| bad(&error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(bad("the scheme is neither http nor https"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(bad("it holds a user name or password; give a token instead"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(bad("it has a query or a fragment"));
        }
        Ok(Self {
            server: url,
            credential: Credential::None,
            second: None,
            tls: TlsConfig::default(),
            impersonate: None,
            proxy: None,
        })
    }

    /// The URL as reports name the server: no credential is in it, and no slash ends it.
    pub fn display_url(&self) -> String {
        self.server.as_str().trim_end_matches('/').to_owned()
    }
}

/// Why there is no client for a target, or no use in one.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// Not the URL of a server.
    #[error("{url:?} is not the URL of a server: {reason}; expected something like https://host:6443")]
    Url {
        /// As given, without a password.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A file that was named cannot be read.
    #[error("cannot read the {what} {}: {source}", path.display())]
    File {
        /// What it was to hold.
        what: &'static str,
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A certificate or key is none.
    #[error("the {what} cannot be used: {reason}; expected PEM")]
    Certificate {
        /// Which of them.
        what: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// A token is empty or holds what no header can carry.
    #[error("{place} holds no bearer token: expected one line of printable characters")]
    Token {
        /// Where it came from.
        place: String,
    },
    /// The user to act as cannot stand in a header.
    #[error("{user:?} cannot be a user name to act as: expected printable characters")]
    Impersonate {
        /// As given.
        user: String,
    },
    /// The kubeconfig cannot be used.
    #[error("the kubeconfig cannot be used: {0}")]
    Kubeconfig(String),
    /// The HTTP client cannot be built.
    #[error("the HTTP client cannot be set up: {0}")]
    Client(String),
    /// No answer.
    #[error("{server} cannot be reached: {reason}{}", advice.map(|a| format!("; {a}")).unwrap_or_default())]
    Unreachable {
        /// The URL.
        server: String,
        /// The chain of causes.
        reason: String,
        /// What to do.
        advice: Option<&'static str>,
    },
    /// The server tells nothing to those who do not say who they are.
    #[error(
        "{server} tells nothing to a client without a credential: {path} answered 403 Forbidden; give a token, a client certificate or a kubeconfig"
    )]
    Anonymous {
        /// The URL.
        server: String,
        /// What was asked for.
        path: &'static str,
    },
    /// The server does not know us.
    #[error("{server} does not accept the credential: {path} answered 401 Unauthorized; {advice}")]
    Unauthenticated {
        /// The URL.
        server: String,
        /// What was asked for.
        path: &'static str,
        /// What to do.
        advice: &'static str,
    },
}

/// Reads a file that the user named.
pub(crate) fn read_file(what: &'static str, path: &Path) -> Result<Vec<u8>, TargetError> {
    std::fs::read(path).map_err(|source| TargetError::File { what, path: path.to_owned(), source })
}

/// A URL that failed to parse may hold a password all the same.
fn without_password(url: &str) -> String {
    let start = url.find("://").map_or(0, |at| at + 3);
    let authority_end = url[start..].find(['/', '?', '#']).map_or(url.len(), |at| start + at);
    match url[start..authority_end].rfind('@') {
        Some(at) => format!("{}{}", &url[..start], &url[start + at + 1..]),
        None => url.to_owned(),
    }
}
