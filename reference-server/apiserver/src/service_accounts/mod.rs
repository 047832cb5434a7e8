//! Tokens of service accounts: signing, verification and the published keys.
//!
//! The module decides which tokens the server has issued. The caller checks whether the objects
//! that a token is bound to still exist.

mod keys;
mod token;

use kubeproof_storage::{Key, Store};
use serde_json::{Value, json};

pub use self::keys::KeyError;
use self::keys::{SigningKey, VerificationKey};
pub(crate) use self::token::{Binding, Bindings, Claims};
use crate::config::ServiceAccountOptions;

/// The issuer of a server without an option.
const ISSUER: &str = "https://kubernetes.default.svc";

/// Issues and verifies tokens.
#[derive(Debug)]
pub(crate) struct ServiceAccounts {
    /// The issuers of accepted tokens. The first one issues.
    issuers: Vec<String>,
    /// The audiences that identify this server.
    pub(crate) audiences: Vec<String>,
    signer: SigningKey,
    keys: Vec<VerificationKey>,
}

/// The reason why a token of this server is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TokenError {
    #[error("token audiences {} is invalid for the target audiences {}", list(.own), list(.wanted))]
    Audience { own: Vec<String>, wanted: Vec<String> },
    #[error("service account token has expired")]
    Expired,
    #[error("service account token is not valid yet")]
    NotYetValid,
    #[error("{resource} {name:?} not found")]
    Deleted { resource: &'static str, name: String },
    #[error("the UID of {resource} {name:?} does not match the claim of the token")]
    Replaced { resource: &'static str, name: String },
}

/// Writes strings as a list, as Go does.
fn list(strings: &[String]) -> String {
    let quoted: Vec<String> = strings.iter().map(|one| format!("{one:?}")).collect();
    format!("[{}]", quoted.join(" "))
}

impl ServiceAccounts {
    /// Reads the keys of the options, or generates one.
    pub(crate) fn new(options: &ServiceAccountOptions) -> Result<Self, KeyError> {
        let signer = match &options.signing_key_pem {
            Some(pem) => SigningKey::from_pem(pem)?,
            None => SigningKey::generate()?,
        };
        let mut keys = Vec::new();
        for pem in &options.key_pems {
            keys.extend(VerificationKey::all_from_pem(pem)?);
        }
        if keys.is_empty() {
            keys.push(signer.public.clone());
        }
        let or = |given: &[String], default: &[String]| {
            if given.is_empty() { default.to_vec() } else { given.to_vec() }
        };
        let issuers = or(&options.issuers, &[ISSUER.to_owned()]);
        let audiences = or(&options.audiences, &issuers[..1]);
        Ok(Self { issuers, audiences, signer, keys })
    }

    /// Returns the issuer of new tokens.
    pub(crate) fn issuer(&self) -> &str {
        &self.issuers[0]
    }

    /// Returns a signed token. Returns none if the key cannot sign.
    pub(crate) fn issue(&self, claims: &Claims) -> Option<String> {
        token::sign(&self.signer, claims)
    }

    /// Returns the claims of a token that this server has issued, even if it has expired.
    pub(crate) fn claims(&self, token: &str) -> Option<Claims> {
        token::verify(&self.keys, token).filter(|claims| self.issuers.contains(&claims.iss))
    }

    /// Returns the document of `/openid/v1/jwks`.
    pub(crate) fn key_set(&self) -> Value {
        json!({ "keys": self.keys.iter().map(VerificationKey::jwk).collect::<Vec<_>>() })
    }

    /// Returns the document of `/.well-known/openid-configuration`.
    pub(crate) fn configuration(&self, address: &str) -> Value {
        let mut algorithms: Vec<_> = self.keys.iter().map(VerificationKey::algorithm).collect();
        algorithms.sort_unstable();
        algorithms.dedup();
        json!({
            "issuer": self.issuer(),
            "jwks_uri": format!("https://{address}/openid/v1/jwks"),
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": algorithms,
        })
    }
}

impl Claims {
    /// Checks the times of the token, and returns the audiences that it shares with `wanted`.
    pub(crate) fn check(&self, wanted: &[String], now: i64) -> Result<Vec<String>, TokenError> {
        let shared: Vec<_> = wanted.iter().filter(|one| self.aud.contains(one)).cloned().collect();
        if shared.is_empty() {
            let (own, wanted) = (self.aud.clone(), wanted.to_vec());
            return Err(TokenError::Audience { own, wanted });
        }
        if self.exp <= now {
            return Err(TokenError::Expired);
        }
        if self.nbf > now {
            return Err(TokenError::NotYetValid);
        }
        Ok(shared)
    }

    /// Checks that the objects of the token still exist.
    pub(crate) fn check_objects(&self, store: &Store) -> Result<(), TokenError> {
        let Bindings { namespace, node, pod, secret, serviceaccount } = &self.kubernetes;
        let bound = [
            ("serviceaccounts", namespace.as_str(), Some(serviceaccount)),
            ("secrets", namespace, secret.as_ref()),
            ("pods", namespace, pod.as_ref()),
            // The node of a pod is information, not a binding.
            ("nodes", "", node.as_ref().filter(|_| pod.is_none())),
        ];
        for (resource, namespace, binding) in bound {
            let Some(Binding { name, uid }) = binding else { continue };
            match store.get(resource, &Key::new(namespace, name.as_str())) {
                Some(stored) if stored.facts.uid == *uid => {}
                Some(_) => return Err(TokenError::Replaced { resource, name: name.clone() }),
                None => return Err(TokenError::Deleted { resource, name: name.clone() }),
            }
        }
        Ok(())
    }
}

/// Returns the seconds since 1970.
pub(crate) fn now() -> i64 {
    jiff::Timestamp::now().as_second()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accounts(options: &ServiceAccountOptions) -> ServiceAccounts {
        ServiceAccounts::new(options).expect("valid keys")
    }

    fn claims(issuer: &str, audiences: &[&str]) -> Claims {
        Claims {
            aud: audiences.iter().map(|&one| one.to_owned()).collect(),
            exp: 100,
            iat: 50,
            iss: issuer.to_owned(),
            jti: String::new(),
            kubernetes: Bindings::default(),
            nbf: 50,
            sub: String::new(),
        }
    }

    #[test]
    fn tokens_of_another_server_are_not_accepted() {
        let (one, other) = (
            accounts(&ServiceAccountOptions::default()),
            accounts(&ServiceAccountOptions::default()),
        );
        let token = one.issue(&claims(ISSUER, &[])).expect("a token");
        assert!(one.claims(&token).is_some());
        assert!(other.claims(&token).is_none());
        let token = one.issue(&claims("https://other", &[])).expect("a token");
        assert!(one.claims(&token).is_none());
    }

    #[test]
    fn each_issuer_is_accepted_and_the_first_one_issues() {
        let issuers = vec!["https://a".to_owned(), "https://b".to_owned()];
        let accounts = accounts(&ServiceAccountOptions { issuers, ..Default::default() });
        assert_eq!(accounts.issuer(), "https://a");
        assert_eq!(accounts.audiences, ["https://a"]);
        let token = accounts.issue(&claims("https://b", &[])).expect("a token");
        assert!(accounts.claims(&token).is_some());
    }

    #[test]
    fn a_token_is_valid_for_its_audiences_and_its_time() {
        let claims = claims(ISSUER, &["x", "y"]);
        let wanted = |names: &[&str]| names.iter().map(|&one| one.to_owned()).collect::<Vec<_>>();
        assert_eq!(claims.check(&wanted(&["z", "y"]), 60), Ok(wanted(&["y"])));
        assert_eq!(claims.check(&wanted(&["x"]), 100), Err(TokenError::Expired));
        assert_eq!(claims.check(&wanted(&["x"]), 49), Err(TokenError::NotYetValid));
        let error = claims.check(&wanted(&["z"]), 60).expect_err("another audience");
        let text = "token audiences [\"x\" \"y\"] is invalid for the target audiences [\"z\"]";
        assert_eq!(error.to_string(), text);
    }
}
