//! The server under test: its address and the credentials.
//!
//! Secrets have the type [`Secret`], which formatters redact.

mod authority;
mod error;
mod kubeconfig;
mod tls;
mod token_file;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use http::HeaderValue;
use url::Url;

pub use self::error::TargetError;
pub(crate) use self::error::{GIVE_CREDENTIAL, error_chain, read_file, with_advice};
pub use self::kubeconfig::{Login, Overrides};
pub use self::tls::{PreparedTls, TlsOptions};
pub(crate) use self::token_file::TokenFile;

/// A bearer token, a password or a key. `Debug` and `Display` redact it.
#[derive(Clone, Eq, PartialEq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Creates a secret without surrounding white space, such as the newline of a token file.
    pub fn new(text: &str) -> Self {
        Self(text.trim().into())
    }

    /// Returns the secret for sending.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// Returns the value of the Authorization header, or `None` if a header cannot carry it.
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

/// How a request authenticates, in addition to a client certificate.
#[derive(Clone, Debug, Default)]
pub enum Credential {
    /// No credential, or only the client certificate.
    #[default]
    None,
    /// A bearer token.
    Token(Secret),
    /// A file with a bearer token. It is read again every minute, because projected tokens rotate.
    TokenFile(PathBuf),
    /// The login of a kubeconfig: exec plugin, OIDC, token file or basic auth.
    Login(Login),
}

impl Credential {
    /// Creates a bearer token that a header can carry.
    pub fn token(token: &str) -> Result<Self, TargetError> {
        let secret = Secret::new(token);
        if secret.reveal().is_empty() || secret.bearer().is_none() {
            return Err(TargetError::Token { place: "the token given".to_owned() });
        }
        Ok(Self::Token(secret))
    }

    /// Uses a file that contains a bearer token.
    pub fn token_file(path: &Path) -> Result<Self, TargetError> {
        let text = read_file("token file", path)?;
        match Self::token(&String::from_utf8_lossy(&text)) {
            Ok(_) => Ok(Self::TokenFile(path.to_owned())),
            Err(_) => Err(TargetError::Token { place: path.display().to_string() }),
        }
    }
}

/// The settings of a connection to a server.
#[derive(Clone, Debug)]
pub struct TargetConfig {
    /// The URL. Its path is a prefix of all requests, for workspaces and proxies.
    pub server: Url,
    /// The main credential.
    pub credential: Credential,
    /// The credential of an unprivileged user, for cases about 403.
    pub second: Option<Credential>,
    /// Trusted certificates, and the client certificate.
    pub tls: TlsConfig,
    /// The user to impersonate.
    pub impersonate: Option<String>,
    /// An HTTP or SOCKS5 proxy of a kubeconfig. The environment is ignored.
    pub proxy: Option<Url>,
}

/// The origin of TLS settings.
#[derive(Clone, Debug)]
pub enum TlsConfig {
    /// Options that are read when the client is created.
    Options(TlsOptions),
    /// Settings of the kubeconfig loader.
    Prepared(Box<PreparedTls>),
}

impl Default for TlsConfig {
    fn default() -> Self {
        Self::Options(TlsOptions::default())
    }
}

impl TargetConfig {
    /// Creates a target without a credential.
    pub fn new(server: &str) -> Result<Self, TargetError> {
        let bad = |reason: &str| TargetError::Url {
            url: without_password(server),
            reason: reason.to_owned(),
        };
        let url = Url::parse(server).map_err(|error| match error {
            url::ParseError::RelativeUrlWithoutBase => bad("it has no scheme"),
            error => bad(&error.to_string()),
        })?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(bad("the scheme is neither http nor https"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(bad("it has a user name or password; give a token instead"));
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

    /// Returns the URL for reports, without credentials and final slash.
    pub fn display_url(&self) -> String {
        self.server.as_str().trim_end_matches('/').to_owned()
    }
}

/// An invalid URL may still contain a password.
fn without_password(url: &str) -> String {
    let start = url.find("://").map_or(0, |at| at + 3);
    let authority_end = url[start..].find(['/', '?', '#']).map_or(url.len(), |at| start + at);
    match url[start..authority_end].rfind('@') {
        Some(at) => format!("{}{}", &url[..start], &url[start + at + 1..]),
        None => url.to_owned(),
    }
}
