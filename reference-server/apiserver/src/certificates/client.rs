//! Client certificates: the TLS listener receives them, and authentication verifies them.
//!
//! As in kube-apiserver, the handshake accepts each certificate whose key the client has. A client
//! with a certificate of another authority can still authenticate with a token.

use std::fmt;
use std::sync::{Arc, OnceLock};

use rustls::client::danger::HandshakeSignatureValid;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, UnixTime};

/// The authorities that sign the certificates of clients.
#[derive(Clone)]
pub struct ClientCa {
    verifier: Arc<dyn ClientCertVerifier>,
    pem: Arc<str>,
}

/// The reason why certificates cannot be the authorities of clients.
#[derive(Debug, thiserror::Error)]
pub enum ClientCaError {
    /// The text is not PEM.
    #[error("the client CA is not PEM: {0}")]
    Pem(#[from] rustls_pki_types::pem::Error),
    /// A certificate is invalid.
    #[error("the client CA has an invalid certificate: {0}")]
    Certificate(#[from] Error),
    /// There is no certificate.
    #[error("the client CA has no usable certificate: {0}")]
    Empty(#[from] rustls::server::VerifierBuilderError),
}

impl ClientCa {
    /// Reads the certificates of the authorities from PEM.
    pub fn from_pem(pem: &str) -> Result<Self, ClientCaError> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
            roots.add(certificate?)?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
            .allow_unauthenticated()
            .build()?;
        Ok(Self { verifier, pem: pem.into() })
    }

    /// Returns the certificates of the authorities as PEM.
    pub(crate) fn pem(&self) -> &str {
        &self.pem
    }

    /// Returns the verifier of handshakes. It accepts certificates of any authority.
    pub(crate) fn handshake_verifier(&self) -> Arc<dyn ClientCertVerifier> {
        Arc::new(AnyAuthority(self.verifier.clone()))
    }

    /// Returns whether an authority signed the certificate for a client, and it is valid now.
    pub(crate) fn has_signed(&self, peer: &PeerCertificates) -> bool {
        *peer.trusted.get_or_init(|| {
            let [leaf, intermediates @ ..] = peer.chain.as_slice() else { return false };
            self.verifier.verify_client_cert(leaf, intermediates, UnixTime::now()).is_ok()
        })
    }
}

impl fmt::Debug for ClientCa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientCa").finish_non_exhaustive()
    }
}

/// The certificates that a client presented on its connection.
#[derive(Debug)]
pub struct PeerCertificates {
    chain: Vec<CertificateDer<'static>>,
    /// The result of the verification, which is the same for each request of the connection.
    trusted: OnceLock<bool>,
}

impl PeerCertificates {
    pub(crate) fn new(chain: &[CertificateDer<'_>]) -> Self {
        let chain = chain.iter().map(|one| one.clone().into_owned()).collect();
        Self { chain, trusted: OnceLock::new() }
    }

    /// Returns the certificate of the client.
    pub(crate) fn leaf(&self) -> Option<&CertificateDer<'static>> {
        self.chain.first()
    }
}

/// Verifies that a client has the key of its certificate.
#[derive(Debug)]
struct AnyAuthority(Arc<dyn ClientCertVerifier>);

impl ClientCertVerifier for AnyAuthority {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.0.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}
