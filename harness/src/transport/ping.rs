//! Whether there is a server that knows us, asked before anything else.

use std::sync::Arc;

use kubeproof_cases::case::Identity;
use serde_json::Value;
use tokio::time::Instant;

use super::{Client, Outgoing};
use crate::exchange::{Broken, BrokenKind, Outcome};
use crate::target::TargetError;

/// Public paths first: they say that there is a server. The others say whether it knows us, which some
/// servers do not find out for a public path.
const PATHS: [&str; 4] = ["/version", "/api", "/apis", "/healthz"];

/// What discovery begins with: where these are forbidden, nothing can be found out.
const DISCOVERY: [&str; 2] = ["/api", "/apis"];

/// A server that answers, and does not refuse the credential.
#[derive(Clone, Debug)]
pub struct Reached {
    /// The body of /version, if it was JSON.
    pub version: Option<Arc<Value>>,
}

impl Client {
    /// Asks for a few paths that any server has an opinion on. Whatever it answers but 401 will do, unless we have no
    /// credential and it hides discovery from those.
    pub async fn ping(&self, deadline: Instant) -> Result<Reached, TargetError> {
        let mut version = None;
        let mut answered = false;
        let mut failure = None;
        let mut forbidden = 0;
        for path in PATHS {
            match self.send(get(path), deadline).await.outcome {
                Outcome::Answered(answer) if answer.status == 401 => {
                    return Err(TargetError::Unauthenticated {
                        server: self.shared.server.clone(),
                        path,
                        advice: self.shared.identities.advice(),
                    });
                }
                Outcome::Answered(answer) => {
                    let good = (200..300).contains(&answer.status);
                    if path == "/version" && good {
                        version = answer.json;
                    }
                    answered = true;
                    if answer.status == 403 && DISCOVERY.contains(&path) {
                        forbidden += 1;
                    }
                    if path != "/version" && good {
                        break;
                    }
                }
                Outcome::Broken(broken) => {
                    let no_connection = matches!(broken.kind, BrokenKind::Connect | BrokenKind::Tls);
                    failure.get_or_insert(broken);
                    if no_connection && !answered {
                        break;
                    }
                }
            }
        }
        match failure {
            Some(broken) if !answered => Err(self.unreachable(broken)),
            _ if forbidden == DISCOVERY.len() && self.shared.identities.is_anonymous() => {
                Err(TargetError::Anonymous { server: self.shared.server.clone(), path: DISCOVERY[0] })
            }
            _ => Ok(Reached { version }),
        }
    }

    fn unreachable(&self, broken: Broken) -> TargetError {
        let advice = match broken.kind {
            BrokenKind::Connect => Some("is the address right, and does the server run?"),
            BrokenKind::Tls => {
                Some("name the certificate authority it is to be trusted by, or skip the verification")
            }
            BrokenKind::Deadline => Some("it took the connection and gave no answer"),
            BrokenKind::Protocol => Some("is it https where http was given, or no HTTP server at all?"),
            BrokenKind::Budget | BrokenKind::Interrupted => None,
        };
        TargetError::Unreachable { server: self.shared.server.clone(), reason: broken.message, advice }
    }
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
