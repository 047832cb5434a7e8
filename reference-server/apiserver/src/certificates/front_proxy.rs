//! The identity of the server towards extension servers, which trust it to name the users of
//! requests.

use std::fmt;

use rcgen::{
    CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose,
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use super::CertificateAuthority;

/// The common name of the certificate, which extension servers check.
pub(crate) const COMMON_NAME: &str = "front-proxy-client";

/// A certificate for requests to extension servers, and its own authority. The authority of other
/// clients cannot sign such a certificate.
#[derive(Debug)]
pub(crate) struct FrontProxy {
    /// The authority as PEM.
    pub(crate) ca_pem: String,
    /// The certificate and its key.
    pub(crate) identity: Identity,
}

/// A certificate with its key.
pub(crate) struct Identity {
    /// The certificates, the own one first.
    pub(crate) chain: Vec<CertificateDer<'static>>,
    /// The private key of the own certificate.
    pub(crate) key: PrivateKeyDer<'static>,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}

impl FrontProxy {
    /// Generates an authority and a certificate.
    pub(crate) fn generate() -> Result<Self, rcgen::Error> {
        let authority = CertificateAuthority::generate()?;
        let issuer: &CertifiedIssuer<'static, KeyPair> = authority.issuer();
        let mut params = CertificateParams::new(Vec::new())?;
        params.distinguished_name.push(DnType::CommonName, COMMON_NAME);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, issuer)?;
        let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        let identity = Identity { chain: vec![certificate.der().clone()], key };
        Ok(Self { ca_pem: authority.pem(), identity })
    }
}
