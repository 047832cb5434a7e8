//! The self-signed certificate of the kubelet endpoint, as kubelets generate it without a
//! certificate.

use std::sync::Arc;

use rcgen::CertifiedKey;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

/// Why the endpoint cannot serve TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The generator rejects the node name or the address.
    #[error("cannot create a certificate for this node: {0}; use a DNS name as node name")]
    Generate(#[from] rcgen::Error),
    /// The certificate authority of the clients is invalid.
    #[error("cannot read the certificate authority of the clients: {0}; expected PEM certificates")]
    ClientAuthority(String),
    /// The TLS library rejects the certificate.
    #[error("cannot serve the generated certificate: {0}")]
    Serve(#[from] rustls::Error),
}

/// Returns a configuration with a new certificate for `names`. With an authority in PEM, clients
/// must present a certificate of it.
pub(crate) fn server_config(
    names: Vec<String>,
    client_ca_pem: Option<&str>,
) -> Result<Arc<ServerConfig>, TlsError> {
    let CertifiedKey { cert, signing_key } = rcgen::generate_simple_self_signed(names)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let clients: Arc<dyn ClientCertVerifier> = match client_ca_pem {
        None => WebPkiClientVerifier::no_client_auth(),
        Some(pem) => {
            let invalid = |error: String| TlsError::ClientAuthority(error);
            let mut roots = RootCertStore::empty();
            for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
                roots.add(certificate.map_err(|error| invalid(error.to_string()))?)?;
            }
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
                .build()
                .map_err(|error| invalid(error.to_string()))?
        }
    };
    let key = PrivateKeyDer::Pkcs8(signing_key.serialize_der().into());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(clients)
        .with_single_cert(vec![cert.der().clone()], key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_authority_must_be_pem() {
        let names = || vec!["node-1".to_owned(), "127.0.0.1".to_owned()];
        assert!(server_config(names(), None).is_ok());
        assert!(matches!(
            server_config(names(), Some("no PEM")),
            Err(TlsError::ClientAuthority(_))
        ));
    }
}
