//! The keys of service account tokens: one key signs, and several keys can verify.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::error::Unspecified;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _,
    RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_SHA256, RsaKeyPair, RsaPublicKeyComponents,
    UnparsedPublicKey,
};
use rustls_pki_types::pem::{PemObject, SectionKind};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer as _;
use x509_parser::public_key::PublicKey;
use x509_parser::x509::SubjectPublicKeyInfo;
use yasna::models::ObjectIdentifier;
use yasna::{DERWriter, construct_der};

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
        let der =
            EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
        let der = der.map_err(|Unspecified| KeyError::Generate)?;
        let pair = Pair::from_der(SectionKind::PrivateKey, der.as_ref());
        Self::new(pair.ok_or(KeyError::Generate)?)
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
        let public = VerificationKey::from_spki(&pair.spki()).ok_or(KeyError::Unsupported)?;
        Ok(Self { pair, public })
    }

    /// Returns the signature of a message.
    pub(super) fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Unspecified> {
        let random = SystemRandom::new();
        match &self.pair {
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature)?;
                Ok(signature)
            }
            Pair::Ecdsa(pair) => Ok(pair.sign(&random, message)?.as_ref().to_vec()),
        }
    }
}

impl Pair {
    fn from_der(kind: SectionKind, der: &[u8]) -> Option<Self> {
        let ecdsa = |der: &[u8]| {
            let random = SystemRandom::new();
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der, &random).ok()
        };
        match kind {
            SectionKind::RsaPrivateKey => RsaKeyPair::from_der(der).ok().map(Self::Rsa),
            SectionKind::EcPrivateKey => ecdsa(&pkcs8_of_p256(der)).map(Self::Ecdsa),
            SectionKind::PrivateKey => {
                let rsa = RsaKeyPair::from_pkcs8(der).ok().map(Self::Rsa);
                rsa.or_else(|| ecdsa(der).map(Self::Ecdsa))
            }
            _ => None,
        }
    }

    /// Returns the public key as `SubjectPublicKeyInfo` (RFC 5280, section 4.1).
    fn spki(&self) -> Vec<u8> {
        let key = match self {
            Self::Rsa(pair) => pair.public_key().as_ref(),
            Self::Ecdsa(pair) => pair.public_key().as_ref(),
        };
        construct_der(|writer| {
            writer.write_sequence(|writer| {
                match self {
                    Self::Rsa(_) => writer.next().write_sequence(|writer| {
                        writer.next().write_oid(&oid(RSA_ENCRYPTION));
                        writer.next().write_null();
                    }),
                    Self::Ecdsa(_) => write_p256(writer.next()),
                }
                writer.next().write_bitvec_bytes(key, key.len() * 8);
            });
        })
    }
}

const RSA_ENCRYPTION: &[u64] = &[1, 2, 840, 113_549, 1, 1, 1];
const EC_PUBLIC_KEY: &[u64] = &[1, 2, 840, 10_045, 2, 1];
const PRIME256V1: &[u64] = &[1, 2, 840, 10_045, 3, 1, 7];

fn oid(parts: &[u64]) -> ObjectIdentifier {
    ObjectIdentifier::from_slice(parts)
}

fn write_p256(writer: DERWriter<'_>) {
    writer.write_sequence(|writer| {
        writer.next().write_oid(&oid(EC_PUBLIC_KEY));
        writer.next().write_oid(&oid(PRIME256V1));
    });
}

/// Wraps an EC private key (RFC 5915) as PKCS #8, the only form that the library reads. It rejects
/// keys of other curves.
fn pkcs8_of_p256(key: &[u8]) -> Vec<u8> {
    construct_der(|writer| {
        writer.write_sequence(|writer| {
            writer.next().write_u8(0);
            write_p256(writer.next());
            writer.next().write_bytes(key);
        });
    })
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
    Rsa { modulus: Vec<u8>, exponent: Vec<u8> },
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
        let result =
            match &self.material {
                Material::Rsa { modulus: n, exponent: e } => RsaPublicKeyComponents { n, e }
                    .verify(&RSA_PKCS1_2048_8192_SHA256, message, signature),
                Material::Ecdsa { point } => {
                    UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point)
                        .verify(message, signature)
                }
            };
        result.is_ok()
    }

    /// Returns the JSON Web Key.
    pub(super) fn jwk(&self) -> Value {
        let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let (kid, alg) = (&self.id, self.algorithm());
        match &self.material {
            Material::Rsa { modulus, exponent } => json!({
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
    use rstest::rstest;

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

    #[rstest]
    #[case::rsa(
        "RS256",
        [
            include_str!("test-keys/rsa-pkcs1.pem"),
            include_str!("test-keys/rsa-pkcs8.pem"),
            include_str!("test-keys/rsa-public.pem"),
            include_str!("test-keys/rsa-certificate.pem"),
        ]
    )]
    #[case::p256(
        "ES256",
        [
            include_str!("test-keys/p256-sec1.pem"),
            include_str!("test-keys/p256-pkcs8.pem"),
            include_str!("test-keys/p256-public.pem"),
            include_str!("test-keys/p256-certificate.pem"),
        ]
    )]
    fn all_forms_of_a_key_are_the_same_key(#[case] algorithm: &str, #[case] pems: [&str; 4]) {
        let [private, other_private, ..] = pems;
        let key = SigningKey::from_pem(private).expect("a private key");
        assert_eq!(key.public.algorithm(), algorithm);
        for pem in pems {
            let keys = VerificationKey::all_from_pem(pem).expect("a key");
            assert_eq!(keys, std::slice::from_ref(&key.public));
        }
        for private in [private, other_private] {
            let key = SigningKey::from_pem(private).expect("a private key");
            let signature = key.sign(b"message").expect("a signature");
            assert!(key.public.verifies(b"message", &signature));
            assert!(!key.public.verifies(b"other", &signature));
        }
    }

    #[test]
    fn other_keys_are_unsupported() {
        let p384 = include_str!("test-keys/p384-sec1.pem");
        let public = include_str!("test-keys/p384-public.pem");
        for pem in ["", "text", p384, public] {
            let error = VerificationKey::all_from_pem(pem).expect_err("no usable key");
            assert!(matches!(error, KeyError::Unsupported), "{error}");
        }
        let error = SigningKey::from_pem(public).expect_err("no private key");
        assert!(error.to_string().contains("expected RSA"), "{error}");
    }
}
