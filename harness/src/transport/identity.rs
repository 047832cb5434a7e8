//! Who sends a request: the headers and the client certificate that go with it.

use std::path::PathBuf;
use std::time::Duration;

use http::header::{AUTHORIZATION, CONTENT_LENGTH, HOST, USER_AGENT};
use http::{HeaderName, HeaderValue, Method};
use kubeproof_cases::case::Identity;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::broken::by;
use super::{Outgoing, Ready};
use crate::exchange::{Broken, BrokenKind, Sent};
use crate::target::{Credential, Secret, TargetConfig, TargetError};

const IMPERSONATE: HeaderName = HeaderName::from_static("impersonate-user");
const OURSELVES: HeaderValue = HeaderValue::from_static(concat!("kubeproof/", env!("CARGO_PKG_VERSION")));

/// Rotated tokens are picked up within this time.
const REREAD: Duration = Duration::from_mins(1);

/// The credentials of a run.
#[derive(Debug)]
pub(super) struct Identities {
    admin: Source,
    second: Option<Source>,
    impersonate: Option<HeaderValue>,
}

#[derive(Debug)]
enum Source {
    Fixed(Credential),
    File { path: PathBuf, read: Mutex<Option<(Instant, Secret)>> },
}

impl Identities {
    pub(super) fn new(config: &TargetConfig) -> Result<Self, TargetError> {
        let impersonate = config.impersonate.as_deref().map(|user| {
            HeaderValue::from_bytes(user.as_bytes())
                .map_err(|_| TargetError::Impersonate { user: user.to_owned() })
        });
        Ok(Self {
            admin: Source::new(&config.credential),
            second: config.second.as_ref().map(Source::new),
            impersonate: impersonate.transpose()?,
        })
    }

    pub(super) fn has_second(&self) -> bool {
        self.second.is_some()
    }

    pub(super) fn by_token(&self) -> bool {
        match &self.admin {
            Source::Fixed(Credential::Login(login)) => login.authorizes(),
            Source::Fixed(Credential::Token(_)) | Source::File { .. } => true,
            Source::Fixed(_) => false,
        }
    }

    /// What to do when the server does not accept the run's own credential.
    pub(super) fn advice(&self) -> &'static str {
        match &self.admin {
            Source::Fixed(Credential::None) => "give a token, a client certificate or a kubeconfig",
            Source::Fixed(Credential::Login(_)) => "does the context's user still have access?",
            _ => "is the token right, and has it not expired?",
        }
    }

    /// A request with its credential, checked to be one that can be sent.
    pub(super) async fn prepare(&self, outgoing: &Outgoing, deadline: Instant) -> Result<Ready, Broken> {
        let method = Method::from_bytes(outgoing.method.as_bytes())
            .map_err(|_| unsendable(format!("{:?} is no method", outgoing.method)))?;
        let mut headers = Vec::with_capacity(outgoing.headers.len() + 3);
        for (name, value) in &outgoing.headers {
            let header = HeaderName::from_bytes(name.as_bytes())
                .ok()
                .zip(HeaderValue::from_bytes(value.as_bytes()).ok());
            headers.push(header.ok_or_else(|| unsendable(format!("{name:?}: {value:?} is no header")))?);
        }
        if !headers.iter().any(|(name, _)| name == USER_AGENT) {
            headers.push((USER_AGENT, OURSELVES));
        }
        if outgoing.identity == Identity::Admin
            && let Some(user) = &self.impersonate
        {
            headers.push((IMPERSONATE, user.clone()));
        }
        let sent = Sent {
            method: outgoing.method.clone(),
            target: outgoing.target.clone(),
            headers: recorded(&headers),
            body: outgoing.body.clone(),
            identity: outgoing.identity,
        };
        // A case that brings an Authorization header is about that header.
        if !headers.iter().any(|(name, _)| name == AUTHORIZATION) {
            let stage = "the credential was being fetched";
            let wait = self.authorize(outgoing.identity, &mut headers);
            by(deadline, BrokenKind::Connect, stage, wait).await??;
        }
        let anonymous = outgoing.identity != Identity::Admin;
        Ok(Ready { sent, method, headers, anonymous, exact: outgoing.exact })
    }

    async fn authorize(
        &self,
        identity: Identity,
        headers: &mut Vec<(HeaderName, HeaderValue)>,
    ) -> Result<(), Broken> {
        let source = match identity {
            Identity::Admin => &self.admin,
            Identity::Second => {
                self.second.as_ref().ok_or_else(|| unsendable("there is no second credential"))?
            }
            Identity::Anonymous => return Ok(()),
            Identity::Invalid => {
                headers.push((AUTHORIZATION, HeaderValue::from_static("Bearer kubeproof:no-such-token")));
                return Ok(());
            }
        };
        source.authorize(headers).await
    }
}

impl Source {
    fn new(credential: &Credential) -> Self {
        match credential {
            Credential::TokenFile(path) => Self::File { path: path.clone(), read: Mutex::new(None) },
            other => Self::Fixed(other.clone()),
        }
    }

    async fn authorize(&self, headers: &mut Vec<(HeaderName, HeaderValue)>) -> Result<(), Broken> {
        let token = match self {
            Self::Fixed(Credential::None | Credential::TokenFile(_)) => return Ok(()),
            Self::Fixed(Credential::Token(token)) => token.clone(),
            Self::Fixed(Credential::Login(login)) => {
                let login = login.headers().await.map_err(|error| {
                    unsendable(format!("the kubeconfig's login gives no credential: {error}"))
                })?;
                for (name, value) in &login {
                    if !headers.iter().any(|(present, _)| *present == IMPERSONATE && present == name) {
                        headers.push((name.clone(), value.clone()));
                    }
                }
                return Ok(());
            }
            Self::File { path, read } => token_of(path, &mut *read.lock().await).await?,
        };
        let value = token.bearer().ok_or_else(|| unsendable("the token cannot stand in a header"))?;
        headers.push((AUTHORIZATION, value));
        Ok(())
    }
}

async fn token_of(path: &PathBuf, read: &mut Option<(Instant, Secret)>) -> Result<Secret, Broken> {
    if let Some((at, token)) = read
        && at.elapsed() < REREAD
    {
        return Ok(token.clone());
    }
    match (tokio::fs::read_to_string(path).await, &read) {
        (Ok(text), _) => {
            let token = Secret::new(&text);
            *read = Some((Instant::now(), token.clone()));
            Ok(token)
        }
        // Some launchers remove the file once it has been read.
        (Err(_), Some((_, token))) => Ok(token.clone()),
        (Err(error), None) => {
            Err(unsendable(format!("the token file {} cannot be read: {error}", path.display())))
        }
    }
}

/// Everything but credentials, the host, and what follows from the body.
fn recorded(headers: &[(HeaderName, HeaderValue)]) -> Vec<(String, String)> {
    let kept = headers.iter().filter(|(name, _)| ![AUTHORIZATION, HOST, CONTENT_LENGTH].contains(name));
    kept.map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
        .collect()
}

fn unsendable(message: impl Into<String>) -> Broken {
    Broken::connect(format!("not sent: {}", message.into()))
}
