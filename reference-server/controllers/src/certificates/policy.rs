//! The rules of the signers of Kubernetes for the requests that they sign.

use kubeproof_apiserver::certificates::CertificateRequest;

/// A signer of Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signer {
    /// `kubernetes.io/kube-apiserver-client`
    Client,
    /// `kubernetes.io/kube-apiserver-client-kubelet`
    KubeletClient,
    /// `kubernetes.io/kubelet-serving`
    KubeletServing,
}

/// The reason why a signer does not sign a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Violation {
    #[error("subject organization is not system:nodes")]
    Organization,
    #[error("subject common name does not begin with system:node:")]
    CommonName,
    #[error("DNS or IP subjectAltName is required")]
    NoName,
    #[error("{0} subjectAltNames are not allowed")]
    Name(&'static str),
    #[error("usages did not match [{}]", .0.join(" "))]
    Usages(&'static [&'static str]),
    #[error("invalid usage for client certificate: {0}")]
    InvalidUsage(String),
    #[error("missing required usage for client certificate: client auth")]
    NoClientAuth,
}

/// The usages of the certificates of nodes. Keys other than RSA need no key encipherment.
const CLIENT_USAGES: &[&str] = &["client auth", "digital signature", "key encipherment"];
const SERVING_USAGES: &[&str] = &["digital signature", "key encipherment", "server auth"];
const OPTIONAL: &str = "key encipherment";

impl Signer {
    /// Returns the signer of this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        match name.strip_prefix("kubernetes.io/")? {
            "kube-apiserver-client" => Some(Self::Client),
            "kube-apiserver-client-kubelet" => Some(Self::KubeletClient),
            "kubelet-serving" => Some(Self::KubeletServing),
            _ => None,
        }
    }

    /// Checks the subject, the alternative names and the usages of a request.
    pub(super) fn check(
        self,
        request: &CertificateRequest,
        usages: &[&str],
    ) -> Result<(), Violation> {
        match self {
            Self::Client => check_client(usages),
            Self::KubeletClient => {
                check_node(request)?;
                for (count, kind) in [
                    (request.dns_names, "DNS"),
                    (request.email_addresses, "Email"),
                    (request.ip_addresses, "IP"),
                    (request.uris, "URI"),
                ] {
                    if count > 0 {
                        return Err(Violation::Name(kind));
                    }
                }
                check_usages(usages, CLIENT_USAGES)
            }
            Self::KubeletServing => {
                check_node(request)?;
                if request.dns_names == 0 && request.ip_addresses == 0 {
                    return Err(Violation::NoName);
                }
                for (count, kind) in [(request.email_addresses, "Email"), (request.uris, "URI")] {
                    if count > 0 {
                        return Err(Violation::Name(kind));
                    }
                }
                check_usages(usages, SERVING_USAGES)
            }
        }
    }
}

fn check_client(usages: &[&str]) -> Result<(), Violation> {
    match usages.iter().find(|usage| !CLIENT_USAGES.contains(usage)) {
        Some(usage) => Err(Violation::InvalidUsage((*usage).to_owned())),
        None if usages.contains(&"client auth") => Ok(()),
        None => Err(Violation::NoClientAuth),
    }
}

fn check_node(request: &CertificateRequest) -> Result<(), Violation> {
    if request.organizations != ["system:nodes"] {
        return Err(Violation::Organization);
    }
    if !request.common_name.starts_with("system:node:") {
        return Err(Violation::CommonName);
    }
    Ok(())
}

fn check_usages(usages: &[&str], required: &'static [&str]) -> Result<(), Violation> {
    let known = usages.iter().all(|usage| required.contains(usage));
    let complete = required.iter().all(|usage| *usage == OPTIONAL || usages.contains(usage));
    if known && complete { Ok(()) } else { Err(Violation::Usages(required)) }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
    use rstest::rstest;

    use super::*;

    fn request(organization: &str, name: &str, host: Option<&str>) -> CertificateRequest {
        let hosts: Vec<String> = host.map(str::to_owned).into_iter().collect();
        let mut params = CertificateParams::new(hosts).expect("a name");
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, organization);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        let pem = params.serialize_request(&key).and_then(|it| it.pem()).expect("a request");
        CertificateRequest::from_pem(pem.as_bytes()).expect("a request")
    }

    const NODE: (&str, &str) = ("system:nodes", "system:node:n");

    #[rstest]
    #[case(Signer::Client, ("devs", "jane"), None, &["client auth"], None)]
    #[case(Signer::Client, ("devs", "jane"), None, CLIENT_USAGES, None)]
    #[case(Signer::Client, ("devs", "jane"), None, OPTIONAL_ONLY, Some(Violation::NoClientAuth))]
    #[case(
        Signer::Client, ("devs", "jane"), None, SERVING_USAGES,
        Some(Violation::InvalidUsage("server auth".to_owned()))
    )]
    #[case(Signer::KubeletClient, NODE, None, CLIENT_USAGES, None)]
    #[case(Signer::KubeletClient, NODE, None, &["client auth", "digital signature"], None)]
    #[case(
        Signer::KubeletClient, NODE, None, &["client auth"],
        Some(Violation::Usages(CLIENT_USAGES))
    )]
    #[case(
        Signer::KubeletClient,
        NODE,
        Some("a.example"),
        CLIENT_USAGES,
        Some(Violation::Name("DNS"))
    )]
    #[case(
        Signer::KubeletClient, ("devs", "jane"), None, CLIENT_USAGES,
        Some(Violation::Organization)
    )]
    #[case(
        Signer::KubeletClient, ("system:nodes", "jane"), None, CLIENT_USAGES,
        Some(Violation::CommonName)
    )]
    #[case(Signer::KubeletServing, NODE, Some("10.0.0.1"), SERVING_USAGES, None)]
    #[case(Signer::KubeletServing, NODE, None, SERVING_USAGES, Some(Violation::NoName))]
    #[case(
        Signer::KubeletServing,
        NODE,
        Some("a.example"),
        CLIENT_USAGES,
        Some(Violation::Usages(SERVING_USAGES))
    )]
    fn signers_check_requests(
        #[case] signer: Signer,
        #[case] (organization, name): (&str, &str),
        #[case] host: Option<&str>,
        #[case] usages: &[&str],
        #[case] expected: Option<Violation>,
    ) {
        let request = request(organization, name, host);
        assert_eq!(signer.check(&request, usages).err(), expected);
    }

    const OPTIONAL_ONLY: &[&str] = &[OPTIONAL];

    #[test]
    fn other_signers_are_left_to_others() {
        assert_eq!(Signer::named("kubernetes.io/other"), None);
        assert_eq!(Signer::named("example.com/kubelet-serving"), None);
    }
}
