//! Which servers a client trusts.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use rustls_platform_verifier::BuilderVerifierExt as _;

use crate::certificates::front_proxy::Identity;

/// Why the certificates of a configuration cannot be trusted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TrustError {
    /// The bundle contains no certificate.
    #[error("unable to parse bytes as PEM block")]
    Empty,
    /// TLS cannot use the certificates.
    #[error(transparent)]
    Tls(#[from] rustls::Error),
    /// The bundle has no valid certificate.
    #[error(transparent)]
    Verifier(#[from] rustls::client::VerifierBuilderError),
}

/// Whom a client trusts, and who it is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Security<'a> {
    /// The trusted authorities as PEM. If empty, those of the system.
    pub(crate) ca_pem: &'a [u8],
    /// The certificate of the server is not verified.
    pub(crate) insecure: bool,
    /// The certificate of the client.
    pub(crate) identity: Option<&'a Identity>,
}

/// Returns the configuration of TLS.
pub(super) fn configuration(security: Security<'_>) -> Result<ClientConfig, TrustError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()?;
    let builder = if security.ca_pem.is_empty() && !security.insecure {
        builder.with_platform_verifier()?
    } else {
        let bundle = if security.insecure {
            None
        } else {
            Some(Bundle::new(security.ca_pem, Arc::clone(&provider))?)
        };
        let verifier = Arc::new(Verifier { bundle, provider });
        builder.dangerous().with_custom_certificate_verifier(verifier)
    };
    Ok(match security.identity {
        Some(Identity { chain, key }) => {
            builder.with_client_auth_cert(chain.clone(), key.clone_key())?
        }
        None => builder.with_no_client_auth(),
    })
}

/// Verifies the certificate of a server against a bundle, or not at all. A server must own the key
/// of its certificate in both cases.
#[derive(Debug)]
struct Verifier {
    /// `None` if each certificate is accepted.
    bundle: Option<Bundle>,
    provider: Arc<CryptoProvider>,
}

/// Trusts its certificates as authorities and, as Go does, as the certificate of the server itself.
/// Many webhooks of tests have one self-signed certificate.
#[derive(Debug)]
struct Bundle {
    authorities: Arc<WebPkiServerVerifier>,
    certificates: Vec<CertificateDer<'static>>,
}

impl Bundle {
    fn new(pem: &[u8], provider: Arc<CryptoProvider>) -> Result<Self, TrustError> {
        let certificates: Vec<_> = CertificateDer::pem_slice_iter(pem).flatten().collect();
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(certificates.iter().cloned());
        if roots.is_empty() {
            return Err(TrustError::Empty);
        }
        let authorities =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build()?;
        Ok(Self { authorities, certificates })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(Bundle { authorities, certificates }) = &self.bundle else {
            return Ok(ServerCertVerified::assertion());
        };
        if certificates.iter().any(|known| known == end_entity) {
            verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
            return Ok(ServerCertVerified::assertion());
        }
        authorities.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
