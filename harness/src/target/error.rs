//! Errors of targets.

use std::error::Error;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The advice for a server that needs a credential.
pub(crate) const GIVE_CREDENTIAL: &str =
    "use --token, --token-file, --client-certificate or --kubeconfig";

/// Why a target cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// The URL is invalid.
    #[error(
        "{url:?} is not the URL of a server: {reason}; expected something like https://host:6443"
    )]
    Url {
        /// The given URL without its password.
        url: String,
        /// The reason.
        reason: String,
    },
    /// A file cannot be read.
    #[error("cannot read the {what} {}: {source}", path.display())]
    File {
        /// The expected content.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A certificate or key is invalid.
    #[error("the {what} cannot be used: {reason}; expected PEM")]
    Certificate {
        /// Which one.
        what: &'static str,
        /// The reason.
        reason: String,
    },
    /// A token is empty, or contains characters that a header cannot carry.
    #[error("{place} contains no bearer token: expected one line of printable characters")]
    Token {
        /// The origin of the token.
        place: String,
    },
    /// A header cannot carry the name of the user to impersonate.
    #[error("{user:?} cannot be a user name to act as: expected printable characters")]
    Impersonate {
        /// The given name.
        user: String,
    },
    /// The kubeconfig is invalid.
    #[error("the kubeconfig {file} cannot be used: {reason}")]
    Kubeconfig {
        /// The path.
        file: String,
        /// The reason.
        reason: String,
    },
    /// The proxy of the kubeconfig cannot be used.
    #[error("the proxy-url of the kubeconfig cannot be used: {0}")]
    Proxy(String),
    /// The HTTP client cannot be created.
    #[error("the HTTP client cannot be set up: {0}")]
    Client(String),
    /// The server is no Kubernetes API.
    #[error(
        "{server} does not look like a Kubernetes API: {response}; give the URL of the API, or \
         --subject for a server without discovery"
    )]
    Foreign {
        /// The URL.
        server: String,
        /// The last response.
        response: String,
    },
    /// The server returns an error to every request.
    #[error("{server} cannot be tested: all requests fail, and {response}; read its log")]
    Failing {
        /// The URL.
        server: String,
        /// The last response.
        response: String,
    },
    /// The server does not respond.
    #[error(
        "{server} cannot be reached: {reason}{}",
        advice.as_ref().map(|a| format!("; {a}")).unwrap_or_default()
    )]
    Unreachable {
        /// The URL.
        server: String,
        /// The chain of causes.
        reason: String,
        /// The next step.
        advice: Option<String>,
    },
    /// The server rejects discovery without a credential.
    #[error(
        "{server} rejects clients without a credential: {path} returned 403 Forbidden; {}",
        GIVE_CREDENTIAL
    )]
    Anonymous {
        /// The URL.
        server: String,
        /// The requested path.
        path: &'static str,
    },
    /// The server rejects the credential.
    #[error("{server} rejects the credential: {path} returned 401 Unauthorized; {advice}")]
    Unauthenticated {
        /// The URL.
        server: String,
        /// The requested path.
        path: &'static str,
        /// The next step.
        advice: &'static str,
    },
    /// The server rejects the credential of the second user.
    #[error(
        "{server} rejects the credential of --second-token: {path} returned 401 Unauthorized; is \
         the token right, and has it not expired?"
    )]
    SecondUnauthenticated {
        /// The URL.
        server: String,
        /// The requested path.
        path: &'static str,
    },
}

/// Reads a file of the user.
pub(crate) fn read_file(what: &'static str, path: &Path) -> Result<Vec<u8>, TargetError> {
    std::fs::read(path).map_err(|source| TargetError::File { what, path: path.to_owned(), source })
}

/// Joins the chain of causes. Most libraries show only the outermost error.
pub(crate) fn error_chain(error: &(dyn Error + '_)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let message = error.to_string();
        if !text.ends_with(&message) {
            let _ = write!(text, ": {message}");
        }
        cause = error.source();
    }
    text
}

/// Adds the next step to an error about a certificate that other clients accept.
pub(crate) fn with_advice(reason: String) -> String {
    // The TLS library has no type for this error.
    if reason.contains("UnsupportedCertVersion") {
        reason
            + "; the certificate has X.509 version 1: create it as version 3, for example with \
                  `openssl x509 -extfile`"
    } else {
        reason
    }
}
