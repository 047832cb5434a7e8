//! The TLS configuration: a given certificate, or one that is generated when the server starts.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;

use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair};
use rustls::ServerConfig;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, DnsName, PrivateKeyDer};

use crate::certificates::CertificateAuthority;
use crate::certificates::{ClientCa, ClientCaError};
use crate::config::{ServingCertificate, Tls};

/// The identity of a server.
pub struct Identity {
    /// The certificate that clients must trust, as PEM.
    pub ca_pem: String,
    /// The TLS configuration of the listener.
    pub config: Arc<ServerConfig>,
    /// The authorities of client certificates.
    pub client_ca: Option<ClientCa>,
}

/// The reason why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The generator rejected the input, usually a name that certificates cannot contain.
    #[error("no certificate can be made for these names: {0}")]
    Generate(#[from] rcgen::Error),
    /// The certificate or the key is not PEM.
    #[error("cannot read the {what} of the server: {source}; expected PEM")]
    Pem {
        /// The certificate or the private key.
        what: &'static str,
        /// The error of the parser.
        source: rustls_pki_types::pem::Error,
    },
    /// The authorities of client certificates are invalid.
    #[error(transparent)]
    ClientCa(#[from] ClientCaError),
    /// The TLS library rejected the certificate or key.
    #[error("the certificate cannot be served: {0}; check that the key belongs to it")]
    Serve(#[from] rustls::Error),
}

/// Reads the certificates, or generates a server certificate. If `signs_clients`, certificates of
/// the authority authenticate clients.
pub fn identity(
    tls: &Tls,
    addr: SocketAddr,
    authority: &CertificateAuthority,
    signs_clients: bool,
) -> Result<Identity, TlsError> {
    let (certificate, ca_pem) = match tls.certificate.clone() {
        Some(given) => {
            let ca_pem = last_certificate(&given.chain_pem).to_owned();
            (given, ca_pem)
        }
        None => (generate(authority, &tls.names, addr)?, authority.pem()),
    };
    let given = tls.client_ca_pem.as_deref().map(ClientCa::from_pem).transpose()?;
    let client_ca = if signs_clients {
        let pem = tls.client_ca_pem.as_deref().unwrap_or_default();
        Some(ClientCa::from_pem(&format!("{pem}\n{}", authority.pem()))?)
    } else {
        given
    };
    let config = Arc::new(server_config(&certificate, client_ca.as_ref())?);
    Ok(Identity { ca_pem, config, client_ca })
}

/// Generates a server certificate that the authority signs.
fn generate(
    authority: &CertificateAuthority,
    names: &[String],
    addr: SocketAddr,
) -> Result<ServingCertificate, TlsError> {
    let mut all = vec![
        "localhost".to_owned(),
        "127.0.0.1".to_owned(),
        "::1".to_owned(),
        addr.ip().to_string(),
    ];
    if addr.ip().is_unspecified() {
        all.extend(host_name());
        all.extend(own_addresses(addr).iter().map(ToString::to_string));
    }
    all.extend(names.iter().cloned());
    all.sort();
    all.dedup();
    let mut leaf = CertificateParams::new(all)?;
    leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    leaf.distinguished_name.push(DnType::CommonName, "kubeproof reference server");
    let leaf_key = KeyPair::generate()?;
    let leaf = leaf.signed_by(&leaf_key, authority.issuer())?;
    Ok(ServingCertificate { chain_pem: leaf.pem(), key_pem: leaf_key.serialize_pem() })
}

/// Returns the name of this machine, where the system publishes it without a library.
fn host_name() -> Option<String> {
    let published = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = published.or_else(|| std::env::var("COMPUTERNAME").ok())?;
    let name = name.trim();
    DnsName::try_from(name).is_ok().then(|| name.to_owned())
}

/// Returns the addresses that the system uses for connections to other machines. The function only
/// asks the system for a route, and returns an empty list without one.
fn own_addresses(listen: SocketAddr) -> Vec<IpAddr> {
    // These addresses are reserved for documentation.
    let v4 = (IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)));
    let v6 = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
    let v6 = (IpAddr::V6(Ipv6Addr::UNSPECIFIED), IpAddr::V6(v6));
    // A server on `[::]` accepts connections over both.
    let remotes = if listen.is_ipv4() { vec![v4] } else { vec![v4, v6] };
    let own = |(any, remote)| {
        let socket = UdpSocket::bind((any, 0)).ok()?;
        socket.connect((remote, 9)).ok()?;
        Some(socket.local_addr().ok()?.ip())
    };
    remotes.into_iter().filter_map(own).filter(|own| !own.is_unspecified()).collect()
}

fn server_config(
    certificate: &ServingCertificate,
    client_ca: Option<&ClientCa>,
) -> Result<ServerConfig, TlsError> {
    let chain: Result<Vec<_>, _> =
        CertificateDer::pem_slice_iter(certificate.chain_pem.as_bytes()).collect();
    let chain = chain.map_err(|source| TlsError::Pem { what: "certificate", source })?;
    let key = PrivateKeyDer::from_pem_slice(certificate.key_pem.as_bytes())
        .map_err(|source| TlsError::Pem { what: "private key", source })?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let builder = match client_ca {
        Some(client_ca) => builder.with_client_cert_verifier(client_ca.handshake_verifier()),
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// Returns the last certificate of a chain: the certificate that clients trust.
fn last_certificate(chain_pem: &str) -> &str {
    chain_pem.rfind("-----BEGIN ").map_or(chain_pem, |start| &chain_pem[start..])
}

#[cfg(test)]
mod tests {
    use x509_parser::certificate::X509Certificate;
    use x509_parser::extensions::GeneralName;
    use x509_parser::prelude::FromDer as _;

    use super::*;

    fn addr() -> SocketAddr {
        (Ipv4Addr::LOCALHOST, 0).into()
    }

    fn error(tls: &Tls) -> String {
        let authority = CertificateAuthority::generate().expect("an authority");
        identity(tls, addr(), &authority, true)
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    }

    #[test]
    fn errors_name_the_file() {
        let authority = CertificateAuthority::generate().expect("an authority");
        let good = generate(&authority, &[], addr()).expect("a certificate");
        let ca_pem = authority.pem();
        let tls = |certificate: &ServingCertificate| Tls {
            certificate: Some(certificate.clone()),
            ..Tls::default()
        };
        assert_eq!(error(&tls(&good)), "");
        let no_key = ServingCertificate { key_pem: "none".to_owned(), ..good.clone() };
        assert!(error(&tls(&no_key)).contains("cannot read the private key of the server"));
        let other = generate(&authority, &[], addr()).expect("a certificate");
        let mixed = ServingCertificate { key_pem: other.key_pem, ..good };
        assert!(error(&tls(&mixed)).contains("check that the key belongs to it"));
        let client_ca = |pem: &str| Tls { client_ca_pem: Some(pem.to_owned()), ..Tls::default() };
        assert_eq!(error(&client_ca(&ca_pem)), "");
        assert!(error(&client_ca("none")).contains("the client CA has no usable certificate"));
    }

    fn alternative_names(names: &[String], listen: SocketAddr) -> Vec<String> {
        let authority = CertificateAuthority::generate().expect("an authority");
        let generated = generate(&authority, names, listen).expect("a certificate");
        let der = CertificateDer::from_pem_slice(generated.chain_pem.as_bytes()).expect("PEM");
        let (_, certificate) = X509Certificate::from_der(&der).expect("a certificate");
        let names = certificate.subject_alternative_name().expect("no error").expect("names");
        let name = |name: &GeneralName<'_>| match name {
            GeneralName::DNSName(name) => (*name).to_owned(),
            GeneralName::IPAddress(bytes) => match <[u8; 4]>::try_from(*bytes) {
                Ok(bytes) => Ipv4Addr::from(bytes).to_string(),
                Err(_) => Ipv6Addr::from(<[u8; 16]>::try_from(*bytes).expect("16")).to_string(),
            },
            other => panic!("{other:?}"),
        };
        names.value.general_names.iter().map(name).collect()
    }

    #[test]
    fn generated_certificates_have_the_names_of_the_server() {
        let given = ["api.example".to_owned(), "10.1.2.3".to_owned()];
        let expected = ["10.1.2.3", "127.0.0.1", "::1", "api.example", "localhost"];
        assert_eq!(alternative_names(&given, addr()), expected);
    }

    #[test]
    fn a_server_on_all_interfaces_has_the_names_of_the_machine() {
        for listen in ["0.0.0.0:0", "[::]:0"] {
            let listen: SocketAddr = listen.parse().expect("an address");
            let names = alternative_names(&[], listen);
            let own = own_addresses(listen).into_iter().map(|own| own.to_string());
            for own in own.chain(host_name()) {
                assert!(names.contains(&own), "{own} is not in {names:?}");
            }
        }
    }

    #[test]
    fn clients_trust_the_last_certificate() {
        let chain = "-----BEGIN A\na\n-----END A\n-----BEGIN B\nb\n-----END B\n";
        assert_eq!(last_certificate(chain), "-----BEGIN B\nb\n-----END B\n");
    }
}
