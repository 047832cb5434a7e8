//! Certificates that are made at the start and live as long as the server.

use std::net::SocketAddr;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::config::Tls;

/// The generated identity of a server.
pub(crate) struct Identity {
    /// The authority that clients have to trust, as PEM.
    pub(crate) ca_pem: String,
    /// What the listener serves with.
    pub(crate) config: Arc<ServerConfig>,
}

/// Why no certificate could be made.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The generator refused, mostly because of a name that no certificate can carry.
    #[error("no certificate can be made for these names: {0}")]
    Generate(#[from] rcgen::Error),
    /// The authority of clients is no PEM file of certificates.
    #[error("the authority of clients cannot be read: {0}; it must be certificates as PEM")]
    Clients(String),
    /// The TLS library refused the generated certificate or key.
    #[error("the generated certificate cannot be served: {0}")]
    Serve(#[from] rustls::Error),
}

/// Makes an authority and a server certificate signed by it.
pub(crate) fn generate(tls: &Tls, addr: SocketAddr) -> Result<Identity, TlsError> {
    generate_for(tls, addr, None)
}

/// The same, for clients that have to show a certificate of an authority.
pub(crate) fn generate_for(
    tls: &Tls,
    addr: SocketAddr,
    client_ca_pem: Option<&str>,
) -> Result<Identity, TlsError> {
    let mut ca = CertificateParams::new(Vec::new())?;
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    ca.distinguished_name.push(DnType::CommonName, "kubeproof reference server CA");
    let ca_key = KeyPair::generate()?;
    let ca_pem = ca.self_signed(&ca_key)?.pem();
    let issuer = Issuer::new(ca, ca_key);

    let mut names =
        vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned(), addr.ip().to_string()];
    names.extend(tls.names.iter().cloned());
    names.sort();
    names.dedup();
    let mut leaf = CertificateParams::new(names)?;
    leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    leaf.distinguished_name.push(DnType::CommonName, "kubeproof reference server");
    let leaf_key = KeyPair::generate()?;
    let leaf = leaf.signed_by(&leaf_key, &issuer)?;

    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let key = PrivateKeyDer::Pkcs8(leaf_key.serialize_der().into());
    let clients: Arc<dyn ClientCertVerifier> = match client_ca_pem {
        None => WebPkiClientVerifier::no_client_auth(),
        Some(pem) => {
            let mut roots = RootCertStore::empty();
            for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
                roots.add(certificate.map_err(|error| TlsError::Clients(error.to_string()))?)?;
            }
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
                .build()
                .map_err(|error| TlsError::Clients(error.to_string()))?
        }
    };
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(clients)
        .with_single_cert(vec![leaf.der().clone()], key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Identity { ca_pem, config: Arc::new(config) })
}
