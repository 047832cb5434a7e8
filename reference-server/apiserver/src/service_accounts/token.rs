//! Service account tokens: JSON Web Tokens with the claims of Kubernetes.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::keys::{SigningKey, VerificationKey};

/// The claims of a token. Times are seconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Claims {
    #[serde(default)]
    pub(crate) aud: Vec<String>,
    pub(crate) exp: i64,
    pub(crate) iat: i64,
    pub(crate) iss: String,
    #[serde(default)]
    pub(crate) jti: String,
    #[serde(rename = "kubernetes.io")]
    pub(crate) kubernetes: Bindings,
    #[serde(default)]
    pub(crate) nbf: i64,
    pub(crate) sub: String,
}

/// The objects that a token is bound to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Bindings {
    pub(crate) namespace: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<Binding>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pod: Option<Binding>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) secret: Option<Binding>,
    pub(crate) serviceaccount: Binding,
}

/// An object, identified by its name and its UID.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Binding {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) uid: String,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    #[serde(default)]
    kid: String,
}

/// Returns the signed token. Returns none if the key cannot sign.
pub(super) fn sign(key: &SigningKey, claims: &Claims) -> Option<String> {
    let header = json!({ "alg": key.public.algorithm(), "kid": key.public.id });
    let claims = serde_json::to_vec(claims).ok()?;
    let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    let message = format!("{}.{}", encode(header.to_string().as_bytes()), encode(&claims));
    let signature = key.sign(message.as_bytes()).ok()?;
    Some(format!("{message}.{}", encode(&signature)))
}

/// Returns the claims of a token that one of the keys signed.
pub(super) fn verify(keys: &[VerificationKey], token: &str) -> Option<Claims> {
    let (message, signature) = token.rsplit_once('.')?;
    let (header, claims) = message.split_once('.')?;
    let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
    let header: Header = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(header).ok()?).ok()?;
    let may_fit = |key: &&VerificationKey| {
        key.algorithm() == header.alg && (header.kid.is_empty() || key.id == header.kid)
    };
    let mut fitting = keys.iter().filter(may_fit);
    if !fitting.any(|key| key.verifies(message.as_bytes(), &signature)) {
        return None;
    }
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims() -> Claims {
        let serviceaccount = Binding { name: "a".to_owned(), uid: "1".to_owned() };
        Claims {
            aud: vec!["x".to_owned()],
            exp: 2,
            iat: 1,
            iss: "issuer".to_owned(),
            jti: "id".to_owned(),
            kubernetes: Bindings {
                namespace: "default".to_owned(),
                serviceaccount,
                ..Bindings::default()
            },
            nbf: 1,
            sub: "system:serviceaccount:default:a".to_owned(),
        }
    }

    #[test]
    fn only_the_key_of_a_token_verifies_it() {
        let [key, other] = [(); 2].map(|()| SigningKey::generate().expect("a key"));
        let token = sign(&key, &claims()).expect("a token");
        let keys = [other.public.clone(), key.public.clone()];
        assert_eq!(verify(&keys, &token), Some(claims()));
        assert_eq!(verify(&keys[..1], &token), None);
    }

    #[test]
    fn a_changed_token_is_invalid() {
        let key = SigningKey::generate().expect("a key");
        let keys = [key.public.clone()];
        let token = sign(&key, &claims()).expect("a token");
        let (head, signature) = token.rsplit_once('.').expect("a signature");
        let none = URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#);
        let body = head.split_once('.').expect("claims").1;
        let forged = [
            format!("{head}x.{signature}"),
            format!("{none}.{body}."),
            format!("{none}.{body}.{signature}"),
            format!("{head}.{}", URL_SAFE_NO_PAD.encode("short")),
            head.to_owned(),
            String::new(),
        ];
        for token in forged {
            assert_eq!(verify(&keys, &token), None, "{token}");
        }
    }
}
