//! TLS settings with rustls: trusted certificates and the client certificate.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::WantsClientCert;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::{
    ClientConfig, ConfigBuilder, DigitallySignedStruct, RootCertStore, SignatureScheme,
    WantsVerifier,
};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls_platform_verifier::BuilderVerifierExt;

use super::authority;
use super::error::{TargetError, read_file, with_advice};

/// TLS options of the command line.
#[derive(Clone, Debug, Default)]
pub struct TlsOptions {
    /// PEM bundle that replaces the system's certificates.
    pub certificate_authority: Option<PathBuf>,
    /// True to accept any server certificate.
    pub insecure_skip_verify: bool,
    /// PEM files with the chain and the key of the client.
    pub client_certificate: Option<(PathBuf, PathBuf)>,
}

/// TLS settings, ready to use.
#[derive(Clone, Debug)]
pub struct PreparedTls {
    /// With the client certificate, if there is one.
    pub(crate) authenticated: ClientConfig,
    /// Without the client certificate, for anonymous requests.
    pub(crate) anonymous: ClientConfig,
    /// The expected server name, if it differs from the host of the URL.
    pub(crate) server_name: Option<ServerName<'static>>,
}

impl PreparedTls {
    /// For servers without TLS. Reading the system's certificates would take milliseconds.
    pub(crate) fn trusting_nobody() -> Result<Self, TargetError> {
        let config =
            builder()?.with_root_certificates(RootCertStore::empty()).with_no_client_auth();
        Ok(Self { authenticated: config.clone(), anonymous: config, server_name: None })
    }

    pub(crate) fn from_options(options: &TlsOptions) -> Result<Self, TargetError> {
        let anonymous = trusting(options)?.with_no_client_auth();
        let authenticated = match &options.client_certificate {
            None => anonymous.clone(),
            Some((certificate, key)) => {
                let chain = certificates("client certificate", certificate)?;
                let key = PrivateKeyDer::from_pem_slice(&read_file("client key", key)?)
                    .map_err(|error| unusable("client key", &error))?;
                trusting(options)?
                    .with_client_auth_cert(chain, key)
                    .map_err(|error| unusable("client certificate and key", &error))?
            }
        };
        Ok(Self { authenticated, anonymous, server_name: None })
    }

    /// Trusts these authorities, and no others.
    pub(super) fn trust(
        &mut self,
        authorities: Vec<CertificateDer<'static>>,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let provider = Arc::clone(self.anonymous.crypto_provider());
        let verifier = authority::verifier(authorities, provider)?;
        for config in [&mut self.authenticated, &mut self.anonymous] {
            config.dangerous().set_certificate_verifier(Arc::clone(&verifier));
        }
        Ok(())
    }

    /// Returns the configuration with these ALPN protocols.
    pub(crate) fn config(&self, anonymous: bool, protocols: &[&[u8]]) -> ClientConfig {
        let mut config =
            if anonymous { self.anonymous.clone() } else { self.authenticated.clone() };
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        config
    }
}

fn builder() -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, TargetError> {
    ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| TargetError::Client(error.to_string()))
}

fn trusting(
    options: &TlsOptions,
) -> Result<ConfigBuilder<ClientConfig, WantsClientCert>, TargetError> {
    let builder = builder()?;
    if options.insecure_skip_verify {
        let provider = Arc::clone(builder.crypto_provider());
        return Ok(builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(TrustAnyone(provider))));
    }
    let Some(path) = &options.certificate_authority else {
        return builder.with_platform_verifier().map_err(|error| {
            TargetError::Client(format!(
                "the system's trusted certificates cannot be read ({error}); use \
                 --certificate-authority FILE"
            ))
        });
    };
    let authorities = certificates("certificate authority", path)?;
    let verifier = authority::verifier(authorities, Arc::clone(builder.crypto_provider()));
    let verifier = verifier.map_err(|error| unusable("certificate authority", &error))?;
    Ok(builder.dangerous().with_custom_certificate_verifier(verifier))
}

pub(super) fn certificates(
    what: &'static str,
    path: &Path,
) -> Result<Vec<CertificateDer<'static>>, TargetError> {
    let pem = read_file(what, path)?;
    let chain = CertificateDer::pem_slice_iter(&pem)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| unusable(what, &error))?;
    if chain.is_empty() {
        return Err(unusable(what, &"no certificate in it"));
    }
    Ok(chain)
}

fn unusable(what: &'static str, reason: &dyn std::fmt::Display) -> TargetError {
    TargetError::Certificate { what, reason: with_advice(reason.to_string()) }
}

/// Implements `--insecure-skip-tls-verify`. Signatures are still verified, so the peer must hold
/// the key of its certificate.
#[derive(Debug)]
struct TrustAnyone(Arc<CryptoProvider>);

impl ServerCertVerifier for TrustAnyone {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(
            message,
            cert,
            dss,
            &self.0.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(
            message,
            cert,
            dss,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair};

    use super::*;

    /// The version of a certificate in DER: the tagged integer 2 stands for version 3.
    const VERSION_3: [u8; 5] = [0xa0, 3, 2, 1, 2];

    #[test]
    fn a_client_certificate_of_version_1_has_advice() {
        let key = KeyPair::generate().expect("a key");
        let certificate =
            CertificateParams::default().self_signed(&key).expect("a certificate").der().to_vec();
        let mut old = certificate.clone();
        let at = old.windows(5).position(|bytes| bytes == VERSION_3).expect("the version");
        old[at + 4] = 0;
        let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
        let used = |certificate: Vec<u8>| {
            builder()
                .expect("a builder")
                .with_root_certificates(RootCertStore::empty())
                .with_client_auth_cert(vec![certificate.into()], key.clone_key())
                .map(drop)
                .map_err(|error| unusable("client certificate and key", &error).to_string())
        };
        assert_eq!(used(certificate), Ok(()));
        let error = used(old).expect_err("version 1");
        assert!(error.contains("has X.509 version 1: create it as version 3"), "{error}");
    }
}
