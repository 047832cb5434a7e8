//! The keys of service account tokens: one key signs, and several keys can verify.

use std::fmt;

use aws_lc_rs::encoding::{AsDer as _, PublicKeyX509Der};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _,
    RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_SHA256, RsaKeyPair, UnparsedPublicKey,
    VerificationAlgorithm,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rustls_pki_types::pem::{PemObject, SectionKind};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer as _;
use x509_parser::public_key::PublicKey;
use x509_parser::x509::SubjectPublicKeyInfo;

/// The reason why a key cannot sign or verify tokens.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The text is not PEM.
    #[error("the key of service account tokens is not PEM: {0}")]
    Pem(#[from] rustls_pki_types::pem::Error),
    /// The PEM has no key of a supported kind.
    #[error(
        "the PEM has no key that service account tokens support; expected RSA with at least 2048 \
         bits, or ECDSA with the curve P-256"
    )]
    Unsupported,
    /// The system returned no random numbers.
    #[error("cannot generate a key for service account tokens")]
    Generate,
}

/// The key that signs tokens.
pub(super) struct SigningKey {
    pair: Pair,
    pub(super) public: VerificationKey,
}

enum Pair {
    Rsa(RsaKeyPair),
    Ecdsa(EcdsaKeyPair),
}

impl SigningKey {
    /// Generates an ECDSA key, which takes much less time than an RSA key.
    pub(super) fn generate() -> Result<Self, KeyError> {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING);
        Self::new(Pair::Ecdsa(pair.map_err(|Unspecified| KeyError::Generate)?))
    }

    /// Reads the first private key of a PEM text.
    pub(super) fn from_pem(pem: &str) -> Result<Self, KeyError> {
        for section in sections(pem) {
            let (kind, der) = section?;
            if let Some(pair) = Pair::from_der(kind, &der) {
                return Self::new(pair);
            }
        }
        Err(KeyError::Unsupported)
    }

    fn new(pair: Pair) -> Result<Self, KeyError> {
        let spki = pair.public_key().map_err(|Unspecified| KeyError::Unsupported)?;
        let public = VerificationKey::from_spki(spki.as_ref()).ok_or(KeyError::Unsupported)?;
        Ok(Self { pair, public })
    }

    /// Returns the signature of a message.
    pub(super) fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Unspecified> {
        let random = SystemRandom::new();
        match &self.pair {
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature)?;
                Ok(signature)
            }
            Pair::Ecdsa(pair) => Ok(pair.sign(&random, message)?.as_ref().to_vec()),
        }
    }
}

impl Pair {
    fn from_der(kind: SectionKind, der: &[u8]) -> Option<Self> {
        let curve = &ECDSA_P256_SHA256_FIXED_SIGNING;
        match kind {
            SectionKind::RsaPrivateKey => RsaKeyPair::from_der(der).ok().map(Self::Rsa),
            SectionKind::EcPrivateKey => {
                EcdsaKeyPair::from_private_key_der(curve, der).ok().map(Self::Ecdsa)
            }
            SectionKind::PrivateKey => {
                let rsa = RsaKeyPair::from_pkcs8(der).ok().map(Self::Rsa);
                rsa.or_else(|| EcdsaKeyPair::from_pkcs8(curve, der).ok().map(Self::Ecdsa))
            }
            _ => None,
        }
    }

    fn public_key(&self) -> Result<PublicKeyX509Der<'static>, Unspecified> {
        match self {
            Self::Rsa(pair) => pair.public_key().as_der(),
            Self::Ecdsa(pair) => pair.public_key().as_der(),
        }
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey").field("public", &self.public).finish_non_exhaustive()
    }
}

/// A key that verifies tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct VerificationKey {
    /// The hash of the key, which tokens and the published key set contain.
    pub(super) id: String,
    material: Material,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Material {
    Rsa { spki: Vec<u8>, modulus: Vec<u8>, exponent: Vec<u8> },
    Ecdsa { point: Vec<u8> },
}

impl VerificationKey {
    /// Reads all keys of a PEM text: public keys, certificates and private keys.
    pub(super) fn all_from_pem(pem: &str) -> Result<Vec<Self>, KeyError> {
        let mut keys = Vec::new();
        for section in sections(pem) {
            let (kind, der) = section?;
            let key = match kind {
                SectionKind::PublicKey => Self::from_spki(&der),
                SectionKind::Certificate => X509Certificate::from_der(&der)
                    .ok()
                    .and_then(|(_, certificate)| Self::from_spki(certificate.public_key().raw)),
                _ => Pair::from_der(kind, &der)
                    .and_then(|pair| SigningKey::new(pair).ok())
                    .map(|key| key.public),
            };
            keys.extend(key);
        }
        if keys.is_empty() { Err(KeyError::Unsupported) } else { Ok(keys) }
    }

    fn from_spki(der: &[u8]) -> Option<Self> {
        let (_, spki) = SubjectPublicKeyInfo::from_der(der).ok()?;
        let id = URL_SAFE_NO_PAD.encode(Sha256::digest(der));
        let material = match spki.parsed().ok()? {
            PublicKey::RSA(key) => Material::Rsa {
                spki: der.to_vec(),
                modulus: unsigned(key.modulus).to_vec(),
                exponent: unsigned(key.exponent).to_vec(),
            },
            // An uncompressed point of P-256 has two numbers of 32 bytes after its prefix.
            PublicKey::EC(point) if point.data().len() == 65 => {
                Material::Ecdsa { point: point.data().to_vec() }
            }
            _ => return None,
        };
        Some(Self { id, material })
    }

    /// Returns the name of the signature algorithm.
    pub(super) fn algorithm(&self) -> &'static str {
        match self.material {
            Material::Rsa { .. } => "RS256",
            Material::Ecdsa { .. } => "ES256",
        }
    }

    /// Returns whether this key signed the message.
    pub(super) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        let (algorithm, key): (&'static dyn VerificationAlgorithm, _) = match &self.material {
            Material::Rsa { spki, .. } => (&RSA_PKCS1_2048_8192_SHA256, spki),
            Material::Ecdsa { point } => (&ECDSA_P256_SHA256_FIXED, point),
        };
        UnparsedPublicKey::new(algorithm, key).verify(message, signature).is_ok()
    }

    /// Returns the JSON Web Key.
    pub(super) fn jwk(&self) -> Value {
        let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let (kid, alg) = (&self.id, self.algorithm());
        match &self.material {
            Material::Rsa { modulus, exponent, .. } => json!({
                "use": "sig", "kty": "RSA", "kid": kid, "alg": alg,
                "n": encode(modulus), "e": encode(exponent),
            }),
            Material::Ecdsa { point } => json!({
                "use": "sig", "kty": "EC", "kid": kid, "crv": "P-256", "alg": alg,
                "x": encode(&point[1..33]), "y": encode(&point[33..]),
            }),
        }
    }
}

/// Removes the zero bytes that DER puts in front of large numbers.
fn unsigned(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    &number[zeros..]
}

fn sections(
    pem: &str,
) -> impl Iterator<Item = Result<(SectionKind, Vec<u8>), rustls_pki_types::pem::Error>> {
    <(SectionKind, Vec<u8>) as PemObject>::pem_slice_iter(pem.as_bytes())
}

#[cfg(test)]
mod tests {
    use rcgen::{KeyPair, PKCS_ECDSA_P384_SHA384, PKCS_RSA_SHA256};

    use super::*;

    #[test]
    fn a_generated_key_signs_and_its_published_key_verifies() {
        let key = SigningKey::generate().expect("a key");
        let signature = key.sign(b"message").expect("a signature");
        assert!(key.public.verifies(b"message", &signature));
        assert!(!key.public.verifies(b"other", &signature));
        let jwk = key.public.jwk();
        assert_eq!((&jwk["alg"], &jwk["crv"]), (&json!("ES256"), &json!("P-256")));
        let x = URL_SAFE_NO_PAD.decode(jwk["x"].as_str().expect("text")).expect("base64");
        assert_eq!(x.len(), 32);
    }

    #[test]
    fn private_keys_public_keys_and_certificates_are_the_same_key() {
        for algorithm in [&PKCS_RSA_SHA256, &rcgen::PKCS_ECDSA_P256_SHA256] {
            let pair = KeyPair::generate_for(algorithm).expect("a key");
            let key = SigningKey::from_pem(&pair.serialize_pem()).expect("a private key");
            let params = rcgen::CertificateParams::default();
            let certificate = params.self_signed(&pair).expect("a certificate").pem();
            for pem in [pair.serialize_pem(), pair.public_key_pem(), certificate] {
                let keys = VerificationKey::all_from_pem(&pem).expect("a key");
                assert_eq!(keys, std::slice::from_ref(&key.public));
            }
            let signature = key.sign(b"message").expect("a signature");
            assert!(key.public.verifies(b"message", &signature));
        }
    }

    #[test]
    fn other_keys_are_unsupported() {
        let pair = KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384).expect("a key");
        for pem in ["", "text", &pair.serialize_pem(), &pair.public_key_pem()] {
            let error = VerificationKey::all_from_pem(pem).expect_err("no usable key");
            assert!(matches!(error, KeyError::Unsupported), "{error}");
        }
        let error = SigningKey::from_pem(&pair.public_key_pem()).expect_err("no private key");
        assert!(error.to_string().contains("expected RSA"), "{error}");
    }
}
