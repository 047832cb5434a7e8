//! The authority of the server, which signs its serving certificate and requested certificates.
//!
//! rcgen signs the serving certificate. It cannot sign a request: its names hold one value for each
//! type of attribute, so a user would keep one of several organizations, which are the groups.
//! [`CertificateAuthority::sign`] writes the fields of RFC 5280 §4.1 itself and copies the subject.

use std::fmt;

use jiff::{SignedDuration, Timestamp, tz};
use pem::{EncodeConfig, LineEnding, Pem};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose,
    SigningKey as _,
};
use ring::rand::{SecureRandom as _, SystemRandom};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::ParsedExtension;
use x509_parser::prelude::FromDer as _;
use yasna::models::ObjectIdentifier;
use yasna::tags::{TAG_GENERALIZEDTIME, TAG_UTCTIME};
use yasna::{DERWriter, DERWriterSeq, Tag};

use super::{CertificateRequest, Usages};

const ECDSA_WITH_SHA256: &[u64] = &[1, 2, 840, 10045, 4, 3, 2];
const KEY_USAGE: &[u64] = &[2, 5, 29, 15];
const ALTERNATIVE_NAMES: &[u64] = &[2, 5, 29, 17];
const BASIC_CONSTRAINTS: &[u64] = &[2, 5, 29, 19];
const AUTHORITY_KEY_ID: &[u64] = &[2, 5, 29, 35];
const EXTENDED_KEY_USAGE: &[u64] = &[2, 5, 29, 37];
/// An empty name.
const NO_NAME: &[u8] = &[0x30, 0];
/// The first year that needs four digits.
const FOUR_DIGITS: i16 = 2050;

/// A certificate authority with its key.
pub struct CertificateAuthority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    /// The subject as DER.
    name: Vec<u8>,
    key_id: Vec<u8>,
}

/// The time in which a certificate is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// The first moment.
    pub not_before: Timestamp,
    /// The last moment.
    pub not_after: Timestamp,
}

/// The reason why a certificate was not signed.
#[derive(Debug, thiserror::Error)]
pub enum SignError {
    /// The library could not generate a key or sign.
    #[error("cannot sign a certificate: {0}")]
    Sign(#[from] rcgen::Error),
    /// The system has no random numbers.
    #[error("cannot generate a serial number")]
    Random,
}

impl CertificateAuthority {
    /// Generates an authority with a new key.
    pub fn generate() -> Result<Self, rcgen::Error> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        params.distinguished_name.push(DnType::CommonName, "kubeproof reference server CA");
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        let (_, certificate) = X509Certificate::from_der(issuer.der())
            .map_err(|_| rcgen::Error::CouldNotParseCertificate)?;
        let key_id = certificate.extensions().iter().find_map(|extension| {
            match extension.parsed_extension() {
                ParsedExtension::SubjectKeyIdentifier(id) => Some(id.0.to_vec()),
                _ => None,
            }
        });
        let name = certificate.subject().as_raw().to_vec();
        Ok(Self { name, key_id: key_id.unwrap_or_default(), issuer })
    }

    /// Returns the certificate as PEM.
    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    pub(crate) fn issuer(&self) -> &CertifiedIssuer<'static, KeyPair> {
        &self.issuer
    }

    /// Signs a certificate for the subject, the key and the names of a request. Returns it as PEM.
    pub fn sign(
        &self,
        request: &CertificateRequest,
        usages: &Usages,
        validity: Validity,
    ) -> Result<String, SignError> {
        let mut serial = [0; 16];
        SystemRandom::new().fill(&mut serial).map_err(|_| SignError::Random)?;
        serial[0] &= 0x7f;
        let content = yasna::construct_der(|writer| {
            writer.write_sequence(|writer| {
                writer.next().write_tagged(Tag::context(0), |version| version.write_u8(2));
                writer.next().write_bigint_bytes(&serial, true);
                write_algorithm(writer.next());
                writer.next().write_der(&self.name);
                writer.next().write_sequence(|writer| {
                    write_time(writer.next(), validity.not_before);
                    write_time(writer.next(), validity.not_after);
                });
                writer.next().write_der(&request.subject);
                writer.next().write_der(&request.public_key);
                writer.next().write_tagged(Tag::context(3), |writer| {
                    writer.write_sequence(|writer| self.write_extensions(writer, request, usages));
                });
            });
        });
        let signature = self.issuer.key().sign(&content)?;
        let der = yasna::construct_der(|writer| {
            writer.write_sequence(|writer| {
                writer.next().write_der(&content);
                write_algorithm(writer.next());
                writer.next().write_bitvec_bytes(&signature, signature.len() * 8);
            });
        });
        let config = EncodeConfig::new().set_line_ending(LineEnding::LF);
        Ok(pem::encode_config(&Pem::new("CERTIFICATE", der), config))
    }

    fn write_extensions(
        &self,
        writer: &mut DERWriterSeq<'_>,
        request: &CertificateRequest,
        usages: &Usages,
    ) {
        if let Some((bytes, length)) = usages.bits() {
            let used = &bytes[..length.div_ceil(8)];
            let value = yasna::construct_der(|writer| writer.write_bitvec_bytes(used, length));
            write_extension(writer.next(), KEY_USAGE, true, &value);
        }
        if !usages.extended.is_empty() {
            let value = yasna::construct_der(|writer| {
                writer.write_sequence(|writer| {
                    usages.identifiers().for_each(|id| writer.next().write_oid(&id));
                });
            });
            write_extension(writer.next(), EXTENDED_KEY_USAGE, false, &value);
        }
        write_extension(writer.next(), BASIC_CONSTRAINTS, true, NO_NAME);
        let value = yasna::construct_der(|writer| {
            writer.write_sequence(|writer| {
                let id = |writer: DERWriter<'_>| writer.write_bytes(&self.key_id);
                writer.next().write_tagged_implicit(Tag::context(0), id);
            });
        });
        write_extension(writer.next(), AUTHORITY_KEY_ID, false, &value);
        if let Some(names) = &request.alternative_names {
            let critical = request.subject == NO_NAME;
            write_extension(writer.next(), ALTERNATIVE_NAMES, critical, names);
        }
    }
}

impl fmt::Debug for CertificateAuthority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CertificateAuthority").finish_non_exhaustive()
    }
}

impl Validity {
    /// The clocks of clients may be this much behind.
    const BACKDATE: SignedDuration = SignedDuration::from_mins(5);
    /// The end of a longer lifetime is backdated, too.
    const SHORT: SignedDuration = SignedDuration::from_hours(8);

    /// Returns the time of a certificate with this lifetime that is signed now.
    pub fn of(lifetime: SignedDuration) -> Self {
        let now = Timestamp::now();
        let end = if lifetime < Self::SHORT { lifetime } else { lifetime - Self::BACKDATE };
        Self { not_before: now - Self::BACKDATE, not_after: now + end }
    }
}

fn write_algorithm(writer: DERWriter<'_>) {
    let id = ObjectIdentifier::from_slice(ECDSA_WITH_SHA256);
    writer.write_sequence(|writer| writer.next().write_oid(&id));
}

fn write_extension(writer: DERWriter<'_>, id: &[u64], critical: bool, value: &[u8]) {
    writer.write_sequence(|writer| {
        writer.next().write_oid(&ObjectIdentifier::from_slice(id));
        if critical {
            writer.next().write_bool(true);
        }
        writer.next().write_bytes(value);
    });
}

/// Certificates have two digits for the year before 2050.
fn write_time(writer: DERWriter<'_>, time: Timestamp) {
    let time = time.to_zoned(tz::TimeZone::UTC);
    let (tag, format) = if time.year() < FOUR_DIGITS {
        (TAG_UTCTIME, "%y%m%d%H%M%SZ")
    } else {
        (TAG_GENERALIZEDTIME, "%Y%m%d%H%M%SZ")
    };
    let text = time.strftime(format).to_string();
    writer.write_tagged_implicit(tag, |writer| writer.write_bytes(text.as_bytes()));
}

#[cfg(test)]
mod tests {
    use rustls_pki_types::CertificateDer;
    use rustls_pki_types::pem::PemObject as _;
    use x509_parser::x509::AttributeTypeAndValue;

    use super::*;

    /// A request of OpenSSL for `/O=devs/O=operators/CN=jane`.
    const TWO_ORGANIZATIONS: &[u8] = b"-----BEGIN CERTIFICATE REQUEST-----
MIHuMIGUAgEAMDIxDTALBgNVBAoMBGRldnMxEjAQBgNVBAoMCW9wZXJhdG9yczEN
MAsGA1UEAwwEamFuZTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABJ4IAowK/b5M
r7dnjxv6mkCQuPNYWqoi8JjheHk7DUg3HFCebK6w39wZwjeiw/EslCmTD5mw+bdG
TWmw56udoGSgADAKBggqhkjOPQQDAgNJADBGAiEAmMmLEuy52GWP6PArIrP0Eygh
gb4LD9q9a4Xcr8gWJWACIQDZg4ewoN362nonI5f6yW6TKgKRrvK5OtfvyWrSSDfy
nQ==
-----END CERTIFICATE REQUEST-----
";

    #[test]
    fn a_signed_certificate_has_what_was_requested() {
        let authority = CertificateAuthority::generate().expect("an authority");
        let mut params = CertificateParams::new(["a.example".to_owned()]).expect("a name");
        params.distinguished_name.push(DnType::CommonName, "jane");
        let key = KeyPair::generate().expect("a key");
        let pem = params.serialize_request(&key).and_then(|it| it.pem()).expect("a request");
        let request = CertificateRequest::from_pem(pem.as_bytes()).expect("a request");
        let usages = Usages::named(["digital signature", "client auth"]);
        let validity = Validity::of(SignedDuration::from_hours(24 * 365 * 40));
        let pem = authority.sign(&request, &usages, validity).expect("a certificate");

        let der = CertificateDer::from_pem_slice(pem.as_bytes()).expect("PEM");
        let (rest, certificate) = X509Certificate::from_der(&der).expect("a certificate");
        let issuer = X509Certificate::from_der(authority.issuer.der()).expect("an authority").1;
        assert!(rest.is_empty());
        assert!(certificate.verify_signature(Some(issuer.public_key())).is_ok());
        assert_eq!(certificate.issuer(), issuer.subject());
        assert_eq!(certificate.public_key().raw, request.public_key);
        let (not_before, not_after) = (validity.not_before.as_second(), validity.not_after);
        assert_eq!(certificate.validity().not_before.timestamp(), not_before);
        assert_eq!(certificate.validity().not_after.timestamp(), not_after.as_second());
        let usage = certificate.key_usage().expect("no error").expect("a usage").value;
        assert!(usage.digital_signature() && !usage.key_cert_sign());
        let usage = certificate.extended_key_usage().expect("no error").expect("a usage").value;
        assert!(usage.client_auth && !usage.server_auth);
        assert!(!certificate.is_ca());
        let names = certificate.subject_alternative_name().expect("no error").expect("names");
        assert_eq!((names.value.general_names.len(), names.critical), (1, false));
    }

    #[test]
    fn a_signed_certificate_keeps_all_organizations() {
        let authority = CertificateAuthority::generate().expect("an authority");
        let request = CertificateRequest::from_pem(TWO_ORGANIZATIONS).expect("a request");
        let validity = Validity::of(SignedDuration::from_hours(1));
        let pem = authority.sign(&request, &Usages::named(["client auth"]), validity);
        let der = CertificateDer::from_pem_slice(pem.expect("a certificate").as_bytes());
        let der = der.expect("PEM");
        let (_, certificate) = X509Certificate::from_der(&der).expect("a certificate");
        let organizations = certificate.subject().iter_organization();
        let organizations: Vec<_> = organizations.flat_map(AttributeTypeAndValue::as_str).collect();
        assert_eq!(organizations, ["devs", "operators"]);
        assert_eq!(request.organizations, organizations);
    }
}
