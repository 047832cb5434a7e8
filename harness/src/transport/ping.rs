//! Checks that the server responds and accepts the credential.

use std::sync::Arc;

use kubeproof_cases::case::Identity;
use serde_json::Value;
use tokio::time::Instant;

use super::{Client, Outgoing};
use crate::exchange::{Broken, BrokenKind, Outcome, Received, shorten};
use crate::target::TargetError;

/// Public paths show that a server exists. The others show whether it accepts the credential.
const PATHS: [&str; 4] = ["/version", "/api", "/apis", HEALTH];

/// Servers of any kind have this path, so its response shows no API.
const HEALTH: &str = "/healthz";

/// The error of the TLS library for a response in plain text.
const NO_TLS: &str = "InvalidContentType";

const GIVE_AUTHORITY: &str =
    "pass its authority with --certificate-authority FILE, or use --insecure-skip-tls-verify";

/// Errors of the TLS library, each with a reason and the next step for the user.
const TLS_ERRORS: [(&str, &str, &str); 7] = [
    ("UnknownIssuer", UNKNOWN_AUTHORITY, GIVE_AUTHORITY),
    // Another authority has the name of the trusted one.
    ("BadSignature", UNKNOWN_AUTHORITY, GIVE_AUTHORITY),
    (
        "CaUsedAsEndEntity",
        "its certificate is that of an authority (CA:TRUE)",
        "pass it with --certificate-authority FILE, create one with basicConstraints=CA:FALSE, or \
         use --insecure-skip-tls-verify",
    ),
    (
        "certificate expired",
        "its certificate has expired",
        "renew the certificate, or use --insecure-skip-tls-verify",
    ),
    (
        "certificate not valid yet",
        "its certificate is not valid yet",
        "compare the clocks of both machines, or use --insecure-skip-tls-verify",
    ),
    (
        "certificate not valid for name",
        "its certificate has other names than the URL",
        "use one of its names in the URL, or --insecure-skip-tls-verify",
    ),
    (
        "CertificateRequired",
        "it requires a client certificate",
        "use --client-certificate and --client-key",
    ),
];

const UNKNOWN_AUTHORITY: &str = "no trusted authority signed its certificate";

/// If both are forbidden, discovery is impossible.
const DISCOVERY: [&str; 2] = ["/api", "/apis"];

/// A server that responds and accepts the credential.
#[derive(Debug)]
pub struct Reached {
    /// The body of /version, if it was JSON.
    pub version: Option<Arc<Value>>,
    /// Why this is no Kubernetes API, if all responses show it. A server without discovery can
    /// still serve resources.
    pub problem: Option<TargetError>,
    /// True if one of these responses is a redirect.
    pub is_redirected: bool,
}

impl Client {
    /// Requests a few common paths. Any response except 401 suffices, unless an anonymous client is
    /// denied discovery.
    pub async fn ping(&self, deadline: Instant) -> Result<Reached, TargetError> {
        let mut version = None;
        let mut responded = false;
        let mut failure = None;
        let mut forbidden = 0;
        let mut strange = Some(Vec::new());
        for path in PATHS {
            match self.send(get(path), deadline).await.outcome {
                Outcome::Response(response) if response.status == 401 => {
                    return Err(TargetError::Unauthenticated {
                        server: self.shared.server.clone(),
                        path,
                        advice: self.shared.identities.advice(),
                    });
                }
                Outcome::Response(response) => {
                    let good = (200..300).contains(&response.status);
                    if path != HEALTH {
                        strange = strange.and_then(|mut texts| {
                            texts.push((response.status, strange_response(path, &response)?));
                            Some(texts)
                        });
                    }
                    if path == "/version" && good {
                        version = response.json;
                    }
                    responded = true;
                    if response.status == 403 && DISCOVERY.contains(&path) {
                        forbidden += 1;
                    }
                    let is_clear = match &strange {
                        None => path != "/version" && good,
                        Some(texts) => texts.len() + 1 == PATHS.len(),
                    };
                    if is_clear {
                        break;
                    }
                }
                Outcome::Broken(broken) => {
                    let is_hopeless = is_hopeless(broken.kind);
                    failure.get_or_insert(broken);
                    if is_hopeless && !responded {
                        break;
                    }
                }
            }
        }
        match failure {
            Some(broken) if !responded => Err(self.unreachable(broken)),
            _ if forbidden == DISCOVERY.len() && self.shared.identities.is_anonymous() => {
                Err(TargetError::Anonymous {
                    server: self.shared.server.clone(),
                    path: DISCOVERY[0],
                })
            }
            _ => Ok(self.reached(version, strange.unwrap_or_default())),
        }
    }

    /// Checks that the server accepts the second credential. A run with an expired one would skip
    /// all cases that need a second user, and pass.
    pub(crate) async fn check_second(&self, deadline: Instant) -> Result<(), TargetError> {
        if !self.has_second() {
            return Ok(());
        }
        let [path, _] = DISCOVERY;
        let request = Outgoing { identity: Identity::Second, ..get(path) };
        match self.send(request, deadline).await.outcome {
            Outcome::Response(response) if response.status == 401 => {
                Err(TargetError::SecondUnauthenticated { server: self.shared.server.clone(), path })
            }
            _ => Ok(()),
        }
    }

    fn reached(&self, version: Option<Arc<Value>>, strange: Vec<(u16, String)>) -> Reached {
        let is_redirected = strange.iter().any(|(status, _)| (300..400).contains(status));
        Reached { version, problem: self.problem(strange), is_redirected }
    }

    /// Returns what the responses to all requests show. `None` without responses.
    fn problem(&self, strange: Vec<(u16, String)>) -> Option<TargetError> {
        let fails = strange.iter().all(|(status, _)| *status >= 500);
        let (server, (_, response)) = (self.shared.server.clone(), strange.into_iter().last()?);
        Some(if fails {
            TargetError::Failing { server, response }
        } else {
            TargetError::Foreign { server, response }
        })
    }

    fn unreachable(&self, broken: Broken) -> TargetError {
        let server = self.shared.server.clone();
        let advice = match broken.kind {
            BrokenKind::Connect => Some("is the address right, and does the server run?"),
            BrokenKind::Tls if broken.message.contains(NO_TLS) => {
                let reason = "the server does not speak TLS".to_owned();
                let advice = Some(format!("use {}", server.replacen("https:", "http:", 1)));
                return TargetError::Unreachable { server, reason, advice };
            }
            BrokenKind::Tls => {
                let known = TLS_ERRORS.iter().find(|(error, ..)| broken.message.contains(error));
                let known = known.map(|(_, reason, advice)| (*reason, *advice));
                let (reason, advice) = known.unwrap_or((&broken.message, GIVE_AUTHORITY));
                let (reason, advice) = (reason.to_owned(), Some(advice.to_owned()));
                return TargetError::Unreachable { server, reason, advice };
            }
            BrokenKind::Deadline => Some("it accepted the connection and sent no response"),
            BrokenKind::Protocol => {
                Some("is it https where http was given, or no HTTP server at all?")
            }
            BrokenKind::NotSent | BrokenKind::Budget => None,
        };
        let advice = advice.map(str::to_owned);
        // The first causes only name the layers of the library.
        let reason = match broken.kind {
            BrokenKind::Connect | BrokenKind::Protocol => {
                broken.message.rsplit(": ").next().unwrap_or_default().to_owned()
            }
            _ => broken.message,
        };
        TargetError::Unreachable { server, reason, advice }
    }
}

/// Reports whether more requests would fail, too. Another flood would only use up the memory.
fn is_hopeless(kind: BrokenKind) -> bool {
    match kind {
        BrokenKind::NotSent | BrokenKind::Connect | BrokenKind::Tls | BrokenKind::Budget => true,
        BrokenKind::Deadline | BrokenKind::Protocol => false,
    }
}

/// Describes a response that no Kubernetes API sends to a request for discovery.
fn strange_response(path: &str, response: &Received) -> Option<String> {
    let header = |wanted: &str| {
        let found = response.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
        found.map(|(_, value)| shorten(value))
    };
    let status = response.status;
    let text = match (status, response.json.as_deref()) {
        (404 | 500.., _) => status.to_string(),
        (300..400, _) => match header("location") {
            Some(location) => format!("{status} to {location}"),
            None => status.to_string(),
        },
        (200..300, None) => {
            let media_type = header("content-type");
            format!("{status} with {}", media_type.as_deref().unwrap_or("no media type"))
        }
        (200..300, Some(json)) if !is_of_api(path, json) => {
            format!("{status} with JSON of another kind")
        }
        _ => return None,
    };
    Some(format!("GET {path} returned {text}"))
}

/// Reports whether a document has a member that the documents of an API at this path have.
fn is_of_api(path: &str, document: &Value) -> bool {
    let members: &[&str] = match path {
        "/version" => &["gitVersion", "major"],
        "/api" => &["kind", "versions"],
        _ => &["kind", "groups"],
    };
    members.iter().any(|member| document.get(member).is_some())
}

fn get(path: &str) -> Outgoing {
    Outgoing {
        method: "GET".to_owned(),
        target: path.to_owned(),
        headers: vec![("accept".to_owned(), "application/json".to_owned())],
        body: bytes::Bytes::new(),
        identity: Identity::Admin,
        exact: false,
    }
}
