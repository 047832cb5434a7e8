//! Adds the identity to a request: headers and client certificate.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use http::header::{AUTHORIZATION, CONTENT_LENGTH, HOST, SEC_WEBSOCKET_PROTOCOL, USER_AGENT};
use http::{HeaderName, HeaderValue, Method};
use kubeproof_cases::case::Identity;
use tokio::time::Instant;

use super::failure::by;
use super::secrets::Secrets;
use super::{Outgoing, Ready};
use crate::exchange::{Broken, BrokenKind, Sent};
use crate::target::{
    Credential, GIVE_CREDENTIAL, Login, Secret, TargetConfig, TargetError, TlsConfig, TokenFile,
};

const IMPERSONATE: HeaderName = HeaderName::from_static("impersonate-user");
const OURSELVES: HeaderValue =
    HeaderValue::from_static(concat!("kubeproof/", env!("CARGO_PKG_VERSION")));

#[derive(Debug)]
pub(super) struct Identities {
    admin: Source,
    second: Option<Source>,
    impersonate: Option<HeaderValue>,
    /// Credentials that were sent.
    secrets: Secrets,
    /// True without any credential.
    anonymous: bool,
}

#[derive(Debug)]
enum Source {
    None,
    Token(Secret),
    File(TokenFile),
    Login(Login),
}

impl Identities {
    pub(super) fn new(config: &TargetConfig) -> Result<Self, TargetError> {
        let impersonate = config.impersonate.as_deref().map(|user| {
            HeaderValue::from_bytes(user.as_bytes())
                .map_err(|_| TargetError::Impersonate { user: user.to_owned() })
        });
        let certified = match &config.tls {
            TlsConfig::Options(options) => options.client_certificate.is_some(),
            // The kubeconfig may contain a certificate.
            TlsConfig::Prepared(_) => true,
        };
        Ok(Self {
            admin: Source::new(&config.credential),
            second: config.second.as_ref().map(Source::new),
            impersonate: impersonate.transpose()?,
            secrets: Secrets::default(),
            anonymous: !certified && matches!(config.credential, Credential::None),
        })
    }

    pub(super) fn has_second(&self) -> bool {
        self.second.is_some()
    }

    /// Reports whether the command line or the kubeconfig impersonates a user.
    pub(super) async fn impersonates(&self) -> bool {
        let by_login = match &self.admin {
            Source::Login(login) => {
                login.headers().await.is_ok_and(|headers| headers.contains_key(IMPERSONATE))
            }
            Source::None | Source::Token(_) | Source::File(_) => false,
        };
        by_login || self.impersonate.is_some()
    }

    pub(super) fn is_anonymous(&self) -> bool {
        self.anonymous
    }

    /// Returns the credentials so far.
    pub(super) fn secrets(&self) -> Secrets {
        // A token of the command line is secret even before it is sent.
        for source in [Some(&self.admin), self.second.as_ref()].into_iter().flatten() {
            if let Source::Token(token) = source
                && let Some(header) = token.bearer()
            {
                self.secrets.learn(&header);
            }
        }
        self.secrets.clone()
    }

    pub(super) fn by_token(&self) -> bool {
        match &self.admin {
            Source::None => false,
            Source::Token(_) | Source::File(_) => true,
            Source::Login(login) => login.authorizes(),
        }
    }

    /// Returns the next step after a rejected credential.
    pub(super) fn advice(&self) -> &'static str {
        match &self.admin {
            Source::None if !self.anonymous => {
                "is the client certificate signed by an authority that the server trusts, and has \
                 it not expired?"
            }
            Source::None => GIVE_CREDENTIAL,
            Source::Login(login) if login.is_replaced() => {
                "is the token or the client certificate right, and has it not expired?"
            }
            Source::Login(_) => "does the context's user still have access?",
            Source::Token(_) | Source::File(_) => "is the token right, and has it not expired?",
        }
    }

    /// Adds the credential to a request, and validates it.
    pub(super) async fn prepare(
        &self,
        outgoing: &Outgoing,
        deadline: Instant,
    ) -> Result<Ready, Broken> {
        let method = Method::from_bytes(outgoing.method.as_bytes())
            .map_err(|_| unsendable(format!("{:?} is no method", outgoing.method)))?;
        let mut headers = Vec::with_capacity(outgoing.headers.len() + 3);
        for (name, value) in &outgoing.headers {
            let header = HeaderName::from_bytes(name.as_bytes())
                .ok()
                .zip(HeaderValue::from_bytes(value.as_bytes()).ok());
            headers.push(
                header.ok_or_else(|| unsendable(format!("{name:?}: {value:?} is no header")))?,
            );
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
        // A case with its own Authorization header replaces the credential.
        if !headers.iter().any(|(name, _)| name == AUTHORIZATION) {
            let stage = "the credential was being fetched";
            let wait = self.authorize(outgoing.identity, &mut headers);
            by(deadline, BrokenKind::Connect, stage, wait).await??;
            if let Some((_, credential)) = headers.iter().find(|(name, _)| name == AUTHORIZATION) {
                self.secrets.learn(credential);
            }
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
                headers.push((
                    AUTHORIZATION,
                    HeaderValue::from_static("Bearer kubeproof:no-such-token"),
                ));
                return Ok(());
            }
        };
        source.authorize(headers).await.map_err(unsendable)
    }
}

impl Source {
    fn new(credential: &Credential) -> Self {
        match credential {
            Credential::None => Self::None,
            Credential::Token(token) => Self::Token(token.clone()),
            Credential::TokenFile(path) => Self::File(TokenFile::new(path.clone())),
            Credential::Login(login) => Self::Login(login.clone()),
        }
    }

    /// Adds authentication headers. Existing ones stay, since the command line overrides the
    /// kubeconfig.
    async fn authorize(&self, headers: &mut Vec<(HeaderName, HeaderValue)>) -> Result<(), String> {
        let authorization = match self {
            Self::None => return Ok(()),
            Self::Token(token) => token.bearer().ok_or("a header cannot carry the token")?,
            Self::File(file) => file.authorization().await?,
            Self::Login(login) => {
                let added = login.headers().await?;
                let named = headers.iter().any(|(name, _)| name == IMPERSONATE);
                let added = added.iter().filter(|(name, _)| !(named && **name == IMPERSONATE));
                headers.extend(added.map(|(name, value)| (name.clone(), value.clone())));
                return Ok(());
            }
        };
        headers.push((AUTHORIZATION, authorization));
        Ok(())
    }
}

/// Moves the bearer token to the subprotocols, as browsers do. Returns its encoded form.
pub(super) fn token_to_protocols(ready: &mut Ready) -> Option<String> {
    let at = ready.headers.iter().position(|(name, _)| name == AUTHORIZATION)?;
    let (_, credential) = ready.headers.remove(at);
    let token = credential.to_str().ok()?.strip_prefix("Bearer ")?.to_owned();
    let token = BASE64_URL_SAFE_NO_PAD.encode(token);
    let list = |token: &str, rest: &str| {
        let rest = if rest.is_empty() { String::new() } else { format!(", {rest}") };
        format!("base64url.bearer.authorization.k8s.io.{token}{rest}")
    };
    let rest = ready.headers.iter().position(|(name, _)| name == SEC_WEBSOCKET_PROTOCOL);
    let rest = rest.map(|at| ready.headers.remove(at).1);
    let rest = rest.as_ref().and_then(|value| value.to_str().ok()).unwrap_or_default();
    ready.headers.push((SEC_WEBSOCKET_PROTOCOL, HeaderValue::try_from(list(&token, rest)).ok()?));
    ready.sent.headers.retain(|(name, _)| *name != SEC_WEBSOCKET_PROTOCOL.as_str());
    ready.sent.headers.push((SEC_WEBSOCKET_PROTOCOL.to_string(), list("$TOKEN", rest)));
    Some(token)
}

/// Returns all headers except for credentials, Host and Content-Length.
fn recorded(headers: &[(HeaderName, HeaderValue)]) -> Vec<(String, String)> {
    let kept =
        headers.iter().filter(|(name, _)| ![AUTHORIZATION, HOST, CONTENT_LENGTH].contains(name));
    kept.map(|(name, value)| {
        (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned())
    })
    .collect()
}

fn unsendable(message: impl Into<String>) -> Broken {
    Broken::not_sent(message.into())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    /// Reports must redact every token that was sent, not only the first.
    #[tokio::test]
    async fn tokens_of_a_file_that_is_replaced_meanwhile_are_secrets() {
        let place = tempfile::NamedTempFile::new().unwrap();
        let mut config = TargetConfig::new("https://127.0.0.1:1").unwrap();
        config.credential = Credential::TokenFile(place.path().to_owned());
        let identities = Identities::new(&config).unwrap();
        let Source::File(file) = &identities.admin else { panic!("{:?}", identities.admin) };
        let secrets = identities.secrets();
        let tokens = ["sesame-of-today", "sesame-of-tomorrow"];
        for token in tokens {
            std::fs::write(place.path(), token).unwrap();
            file.age().await;
            let outgoing = Outgoing {
                method: "GET".to_owned(),
                target: "/x".to_owned(),
                headers: Vec::new(),
                body: Bytes::new(),
                identity: Identity::Admin,
                exact: false,
            };
            let deadline = Instant::now() + std::time::Duration::from_mins(1);
            let ready = identities.prepare(&outgoing, deadline).await.unwrap();
            let authorization =
                ready.headers.iter().find(|(name, _)| name == AUTHORIZATION).unwrap();
            assert_eq!(authorization.1, format!("Bearer {token}"));
            // The recorded request contains neither token.
            assert!(!format!("{:?}", ready.sent).contains("sesame"), "{:?}", ready.sent);
        }
        let forms = secrets.forms();
        assert!(tokens.iter().all(|token| forms.iter().any(|form| form == token)), "{forms:?}");
    }
}
