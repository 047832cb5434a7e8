//! Warnings about the certificate and the private key of a secret.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pem::Pem;
use rustls::crypto::ring::sign::any_supported_type;
use rustls_pki_types::PrivateKeyDer;
use serde_json::Value;
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::x509::SubjectPublicKeyInfo;

const CERTIFICATE: &str = "CERTIFICATE";
const PRIVATE_KEY: &str = "PRIVATE KEY";

/// Returns the warning about a secret whose certificate and key do not belong together.
pub(in crate::registry::builtin) fn secret(secret: &Value, _: Option<&Value>) -> Vec<String> {
    if secret["type"] != "kubernetes.io/tls" {
        return Vec::new();
    }
    let blocks = |key: &str| {
        let text = secret["data"][key].as_str().unwrap_or_default();
        let bytes = STANDARD.decode(text).unwrap_or_default();
        pem::parse_many(bytes).unwrap_or_default()
    };
    pair_mistake(&blocks("tls.crt"), &blocks("tls.key")).into_iter().collect()
}

fn pair_mistake(certificates: &[Pem], keys: &[Pem]) -> Option<String> {
    let Some(certificate) = certificates.iter().find(|block| block.tag() == CERTIFICATE) else {
        return Some(no_certificate(certificates));
    };
    let Some(key) = keys.iter().find(|block| is_key(block)) else {
        return Some(no_key(keys));
    };
    let Ok((_, certificate)) = X509Certificate::from_der(certificate.contents()) else {
        return Some("x509: malformed certificate".to_owned());
    };
    let Some(der) = private_key(key) else {
        return Some("tls: failed to parse private key".to_owned());
    };
    // Keys that this server cannot use may be right.
    let key = any_supported_type(&der).ok()?;
    let public = key.public_key()?;
    let (_, public) = SubjectPublicKeyInfo::from_der(&public).ok()?;
    let certified = certificate.public_key();
    if public.algorithm.algorithm != certified.algorithm.algorithm {
        Some("tls: private key type does not match public key type".to_owned())
    } else if public.raw != certified.raw {
        Some("tls: private key does not match public key".to_owned())
    } else {
        None
    }
}

fn no_certificate(blocks: &[Pem]) -> String {
    match blocks {
        [] => "tls: failed to find any PEM data in certificate input".to_owned(),
        [block] if block.tag().ends_with(PRIVATE_KEY) => {
            "tls: failed to find certificate PEM data in certificate input, but did find a private \
             key; PEM inputs may have been switched"
                .to_owned()
        }
        _ => format!(
            "tls: failed to find \"{CERTIFICATE}\" PEM block in certificate input after skipping \
             PEM blocks of the following types: [{}]",
            tags(blocks)
        ),
    }
}

fn no_key(blocks: &[Pem]) -> String {
    match blocks {
        [] => "tls: failed to find any PEM data in key input".to_owned(),
        [block] if block.tag() == CERTIFICATE => {
            "tls: found a certificate rather than a key in the PEM for the private key".to_owned()
        }
        _ => format!(
            "tls: failed to find PEM block with type ending in \"{PRIVATE_KEY}\" in key input \
             after skipping PEM blocks of the following types: [{}]",
            tags(blocks)
        ),
    }
}

fn tags(blocks: &[Pem]) -> String {
    blocks.iter().map(Pem::tag).collect::<Vec<_>>().join(" ")
}

fn is_key(block: &Pem) -> bool {
    block.tag() == PRIVATE_KEY || block.tag().ends_with(" PRIVATE KEY")
}

/// Returns the key in one of its formats, if it is ASN.1 at all.
fn private_key(block: &Pem) -> Option<PrivateKeyDer<'_>> {
    PrivateKeyDer::try_from(block.contents()).ok()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn blocks(tags: &[&str]) -> Vec<Pem> {
        tags.iter().map(|tag| Pem::new(*tag, b"abc".as_slice())).collect()
    }

    #[rstest]
    #[case(&[], "tls: failed to find any PEM data in certificate input")]
    #[case(
        &["PRIVATE KEY"],
        "tls: failed to find certificate PEM data in certificate input, but did find a private \
         key; PEM inputs may have been switched"
    )]
    #[case(
        &["FOO", "PRIVATE KEY"],
        "tls: failed to find \"CERTIFICATE\" PEM block in certificate input after skipping PEM \
         blocks of the following types: [FOO PRIVATE KEY]"
    )]
    fn a_certificate_is_needed(#[case] tags: &[&str], #[case] expected: &str) {
        assert_eq!(pair_mistake(&blocks(tags), &[]).as_deref(), Some(expected));
    }

    #[rstest]
    #[case(&[], "tls: failed to find any PEM data in key input")]
    #[case(
        &["CERTIFICATE"],
        "tls: found a certificate rather than a key in the PEM for the private key"
    )]
    #[case(
        &["FOO"],
        "tls: failed to find PEM block with type ending in \"PRIVATE KEY\" in key input after \
         skipping PEM blocks of the following types: [FOO]"
    )]
    #[case(&["EC PRIVATE KEY"], "x509: malformed certificate")]
    fn a_key_is_needed(#[case] tags: &[&str], #[case] expected: &str) {
        let certificate = blocks(&["CERTIFICATE"]);
        assert_eq!(pair_mistake(&certificate, &blocks(tags)).as_deref(), Some(expected));
    }

    #[test]
    fn a_key_belongs_to_its_certificate() {
        let keys = [&rcgen::PKCS_ECDSA_P256_SHA256, &rcgen::PKCS_ECDSA_P256_SHA256]
            .map(|algorithm| rcgen::KeyPair::generate_for(algorithm).unwrap());
        let other = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
        let params = rcgen::CertificateParams::new(vec!["a".to_owned()]).unwrap();
        let certificate = params.self_signed(&keys[0]).unwrap();
        let warnings = |key: &rcgen::KeyPair| {
            let encoded = |text: String| STANDARD.encode(text);
            let data = json!({
                "tls.crt": encoded(certificate.pem()), "tls.key": encoded(key.serialize_pem()),
            });
            secret(&json!({"type": "kubernetes.io/tls", "data": data}), None)
        };
        assert!(warnings(&keys[0]).is_empty());
        assert_eq!(warnings(&keys[1]), ["tls: private key does not match public key"]);
        let expected = "tls: private key type does not match public key type";
        assert_eq!(warnings(&other), [expected]);
    }
}
