//! PKCS #10 requests, the content of `spec.request` of a `CertificateSigningRequest`.

use rustls_pki_types::pem::{PemObject as _, SectionKind};
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::cri_attributes::ParsedCriAttribute;
use x509_parser::error::X509Error;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::prelude::FromDer as _;
use x509_parser::x509::AttributeTypeAndValue;

/// A request whose signature is valid.
#[derive(Clone, Debug)]
pub struct CertificateRequest {
    /// The last common name of the subject. It is empty if there is none.
    pub common_name: String,
    /// The organizations of the subject.
    pub organizations: Vec<String>,
    /// The number of host names.
    pub dns_names: usize,
    /// The number of IP addresses.
    pub ip_addresses: usize,
    /// The number of email addresses.
    pub email_addresses: usize,
    /// The number of URIs.
    pub uris: usize,
    /// The subject as DER.
    pub(super) subject: Vec<u8>,
    /// The public key as DER.
    pub(super) public_key: Vec<u8>,
    /// The value of the extension with the alternative names as DER, if there is one.
    pub(super) alternative_names: Option<Vec<u8>>,
}

/// The reason why a text is no request for a certificate.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The text has no PEM block, or its first block is something else.
    #[error("PEM block type must be CERTIFICATE REQUEST")]
    Pem,
    /// The block is no PKCS #10 request.
    #[error("the certificate request cannot be parsed: {0}")]
    Parse(#[from] X509Error),
    /// The block has more data after the request.
    #[error("the certificate request has trailing data")]
    TrailingData,
    /// The key of the request has not signed it.
    #[error("the signature of the certificate request is invalid: {0}")]
    Signature(X509Error),
}

impl CertificateRequest {
    /// Parses the first block of a PEM text, and verifies the signature.
    pub fn from_pem(pem: &[u8]) -> Result<Self, RequestError> {
        let (kind, der) =
            <(SectionKind, Vec<u8>)>::from_pem_slice(pem).map_err(|_| RequestError::Pem)?;
        if kind != SectionKind::Csr {
            return Err(RequestError::Pem);
        }
        let (rest, request) =
            X509CertificationRequest::from_der(&der).map_err(|error| match error {
                x509_parser::nom::Err::Error(error) | x509_parser::nom::Err::Failure(error) => {
                    RequestError::Parse(error)
                }
                x509_parser::nom::Err::Incomplete(_) => RequestError::Parse(X509Error::Generic),
            })?;
        if !rest.is_empty() {
            return Err(RequestError::TrailingData);
        }
        request.verify_signature().map_err(RequestError::Signature)?;
        Ok(Self::new(&request))
    }

    fn new(request: &X509CertificationRequest<'_>) -> Self {
        let info = &request.certification_request_info;
        let text = |attribute: &AttributeTypeAndValue<'_>| attribute.as_str().map(str::to_owned);
        let common_name = info.subject.iter_common_name().last();
        let mut parsed = Self {
            common_name: common_name.and_then(|name| text(name).ok()).unwrap_or_default(),
            organizations: info.subject.iter_organization().flat_map(text).collect(),
            dns_names: 0,
            ip_addresses: 0,
            email_addresses: 0,
            uris: 0,
            subject: info.subject.as_raw().to_vec(),
            public_key: info.subject_pki.raw.to_vec(),
            alternative_names: None,
        };
        for attribute in info.iter_attributes() {
            let ParsedCriAttribute::ExtensionRequest(requested) = attribute.parsed_attribute()
            else {
                continue;
            };
            for extension in &requested.extensions {
                if let ParsedExtension::SubjectAlternativeName(names) = extension.parsed_extension()
                {
                    parsed.alternative_names = Some(extension.value.to_vec());
                    names.general_names.iter().for_each(|name| parsed.count(name));
                }
            }
        }
        parsed
    }

    fn count(&mut self, name: &GeneralName<'_>) {
        match name {
            GeneralName::DNSName(_) => self.dns_names += 1,
            GeneralName::IPAddress(_) => self.ip_addresses += 1,
            GeneralName::RFC822Name(_) => self.email_addresses += 1,
            GeneralName::URI(_) => self.uris += 1,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair};

    use super::*;

    fn pem() -> String {
        let mut params = CertificateParams::new(["a.example".to_owned()]).expect("a name");
        params.distinguished_name.push(DnType::CommonName, "jane");
        params.distinguished_name.push(DnType::OrganizationName, "devs");
        let key = KeyPair::generate().expect("a key");
        params.serialize_request(&key).and_then(|it| it.pem()).expect("a request")
    }

    #[test]
    fn a_request_has_a_subject_and_names() {
        let request = CertificateRequest::from_pem(pem().as_bytes()).expect("a request");
        assert_eq!((request.common_name.as_str(), request.dns_names), ("jane", 1));
        assert!(request.organizations.contains(&"devs".to_owned()));
        assert_eq!((request.ip_addresses, request.email_addresses, request.uris), (0, 0, 0));
    }

    #[test]
    fn other_texts_are_rejected() {
        let error = |pem: &str| {
            let parsed = CertificateRequest::from_pem(pem.as_bytes());
            parsed.err().map(|error| error.to_string()).unwrap_or_default()
        };
        let only_requests = "PEM block type must be CERTIFICATE REQUEST";
        assert_eq!(error("none"), only_requests);
        let key = KeyPair::generate().expect("a key").serialize_pem();
        assert_eq!(error(&format!("{key}{}", pem())), only_requests);
        let garbage =
            "-----BEGIN CERTIFICATE REQUEST-----\nQUJD\n-----END CERTIFICATE REQUEST-----\n";
        assert!(error(garbage).contains("cannot be parsed"), "{}", error(garbage));
    }

    #[test]
    fn the_signature_must_be_valid() {
        let mut changed = pem::parse(pem()).expect("PEM").into_contents();
        if let Some(last) = changed.last_mut() {
            *last ^= 1;
        }
        let changed = pem::encode(&pem::Pem::new("CERTIFICATE REQUEST", changed));
        let parsed = CertificateRequest::from_pem(changed.as_bytes());
        assert!(matches!(parsed, Err(RequestError::Signature(_))), "{parsed:?}");
    }
}
