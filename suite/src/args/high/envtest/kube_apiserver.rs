//! The flags of kube-apiserver.

use std::fmt::Display;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use kubeproof_reference_server::{
    AdmissionPlugins, AuditMode, AuditOptions, AuthorizationMode, Config, Controllers,
    KubernetesVersion, ServiceAccountOptions, ServingCertificate, Tls,
};

use super::flags::{Flag, Flags, help};
use crate::args::high::credentials::{
    Pem, RotationFlags, audit_options, read_certificate, read_pem, service_account_options,
    token_users,
};
use crate::args::low;
use crate::args::low::values::age;
use crate::error::Error;

/// The port of kube-apiserver without a flag.
const PORT: u16 = 6443;

/// The task of `kubeproof kube-apiserver`.
pub(crate) enum KubeApiserver {
    /// Print the help or the version.
    Print(String),
    Start(Box<ApiserverOptions>),
}

/// A server, and what the launcher prints and writes before it starts.
pub(crate) struct ApiserverOptions {
    pub(crate) config: Config,
    /// The warnings about flags without effect.
    pub(crate) warnings: Vec<String>,
    /// The directory for a generated certificate.
    pub(crate) certificate_directory: Option<PathBuf>,
}

const FLAGS: &[Flag] = &[
    flag("audit-log-maxage", "DAYS", "Time that replaced audit logs remain [default: forever]"),
    flag("audit-log-maxbackup", "N", "Replaced audit logs that remain [default: all]"),
    flag("audit-log-maxsize", "MB", "Size at which the audit log is replaced [default: 100]"),
    flag("audit-log-mode", "MODE", "batch, blocking or blocking-strict [default: blocking]"),
    flag("audit-log-path", "FILE", "File for audit events, or - for the standard output"),
    flag("audit-policy-file", "FILE", "Policy of the audit log"),
    flag("authorization-mode", "MODES", "RBAC, or AlwaysAllow [default: AlwaysAllow]"),
    flag("bind-address", "IP", "Address to listen on [default: 0.0.0.0]"),
    flag("cert-dir", "DIR", "Directory of apiserver.crt and apiserver.key"),
    flag("client-ca-file", "FILE", "Authorities of client certificates"),
    flag("controllers", "WHICH", "none, or all those of `kubeproof serve` [default: none]"),
    flag("disable-admission-plugins", "NAMES", "Admission plugins not to run"),
    flag("enable-admission-plugins", "NAMES", "Admission plugins besides the default ones"),
    flag("kubernetes-version", "VERSION", "Version of Kubernetes [default: the newest]"),
    flag("secure-port", "PORT", "Port to listen on [default: 6443]"),
    flag("api-audiences", "NAMES", "Audiences of the server [default: the first issuer]"),
    flag("service-account-issuer", "URL", "Issuers of tokens, the first one issues"),
    flag("service-account-key-file", "FILE", "Keys that verify tokens"),
    flag("service-account-signing-key-file", "FILE", "Key that signs tokens"),
    flag("shutdown-delay-duration", "TIME", "Time from a signal to the end of the listener"),
    flag("tls-cert-file", "FILE", "Certificate to serve"),
    flag("tls-private-key-file", "FILE", "Private key of the certificate"),
    flag("token-auth-file", "FILE", "Users with bearer tokens"),
    flag("advertise-address", "IP", "No effect"),
    flag("allow-privileged", "", "No effect, privileged pods are accepted"),
    flag("etcd-cafile", "FILE", "No effect, objects are in memory"),
    flag("etcd-certfile", "FILE", "No effect, objects are in memory"),
    flag("etcd-keyfile", "FILE", "No effect, objects are in memory"),
    flag("etcd-servers", "URLS", "No effect, objects are in memory"),
    flag("service-cluster-ip-range", "CIDR", "No effect"),
];

const fn flag(name: &'static str, value: &'static str, help: &'static str) -> Flag {
    Flag { name, value, help }
}

impl KubeApiserver {
    pub(in crate::args::high) fn resolve(launcher: &low::Launcher) -> Result<Self, Error> {
        let flags = Flags::parse(&launcher.flags, FLAGS);
        if flags.help {
            return Ok(Self::Print(help("kube-apiserver", FLAGS)));
        }
        if flags.version {
            return Ok(Self::Print(format!("Kubernetes v{}.0\n", version(&flags)?)));
        }
        let (certificate, certificate_directory) = certificate(&flags)?;
        let users = flags.value("token-auth-file").map(|path| token_users(Path::new(path)));
        let client_ca = flags.value("client-ca-file").map(Path::new);
        let client_ca_pem = client_ca.map(|path| read_pem(path, Pem::Certificate));
        let client_ca_pem = client_ca_pem.transpose()?;
        let config = Config {
            listen: address(&flags)?,
            version: version(&flags)?,
            tls: Some(Tls { certificate, client_ca_pem, ..Tls::default() }),
            users: users.transpose()?.unwrap_or_default(),
            authorization: authorization(&flags),
            service_accounts: service_accounts(&flags)?,
            controllers: controllers(&flags)?,
            admission_plugins: admission_plugins(&flags)?,
            audit: audit(&flags)?,
            shutdown_delay: shutdown_delay(&flags)?,
            ..Config::default()
        };
        Ok(Self::Start(Box::new(ApiserverOptions {
            config,
            warnings: flags.warnings,
            certificate_directory,
        })))
    }
}

fn address(flags: &Flags) -> Result<SocketAddr, Error> {
    let ip = match flags.value("bind-address") {
        None => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        Some(text) => text
            .parse()
            .map_err(|_| invalid_flag("bind-address", text, "expected an IP address"))?,
    };
    let port = match flags.value("secure-port") {
        None => PORT,
        Some(text) => {
            text.parse().map_err(|_| invalid_flag("secure-port", text, "expected a port"))?
        }
    };
    Ok(SocketAddr::new(ip, port))
}

fn version(flags: &Flags) -> Result<KubernetesVersion, Error> {
    let Some(text) = flags.value("kubernetes-version") else {
        return Ok(KubernetesVersion::default());
    };
    text.parse().map_err(|error| invalid_flag("kubernetes-version", text, error))
}

/// Returns the certificate of the flags or the certificate directory. If there is none, returns the
/// directory for a generated one.
fn certificate(flags: &Flags) -> Result<(Option<ServingCertificate>, Option<PathBuf>), Error> {
    let pair = flags.value("tls-cert-file").zip(flags.value("tls-private-key-file"));
    if let Some((chain, key)) = pair {
        return Ok((Some(read_certificate(Path::new(chain), Path::new(key))?), None));
    }
    let Some(directory) = flags.value("cert-dir").map(PathBuf::from) else {
        return Ok((None, None));
    };
    let (chain, key) = (directory.join("apiserver.crt"), directory.join("apiserver.key"));
    if chain.exists() && key.exists() {
        return Ok((Some(read_certificate(&chain, &key)?), None));
    }
    Ok((None, Some(directory)))
}

/// Returns the mode for a list of modes. A request is allowed if one mode of the list allows it.
fn authorization(flags: &Flags) -> AuthorizationMode {
    let mut modes = flags.values("authorization-mode").peekable();
    if modes.peek().is_none() || modes.any(|mode| mode == "AlwaysAllow") {
        AuthorizationMode::AlwaysAllow
    } else {
        AuthorizationMode::Rbac
    }
}

fn service_accounts(flags: &Flags) -> Result<ServiceAccountOptions, Error> {
    let texts = |name| flags.values(name).map(str::to_owned).collect();
    let names = (texts("service-account-issuer"), texts("api-audiences"));
    let key = flags.value("service-account-signing-key-file").map(Path::new);
    let keys: Vec<PathBuf> = flags.values("service-account-key-file").map(PathBuf::from).collect();
    service_account_options(names, key, &keys)
}

fn controllers(flags: &Flags) -> Result<Controllers, Error> {
    match flags.value("controllers") {
        None | Some("none") => Ok(Controllers::None),
        Some("all") => Ok(Controllers::All),
        Some(other) => Err(invalid_flag("controllers", other, "expected none or all")),
    }
}

fn admission_plugins(flags: &Flags) -> Result<AdmissionPlugins, Error> {
    let enable = flags.values("enable-admission-plugins");
    let disable = flags.values("disable-admission-plugins");
    Ok(AdmissionPlugins::of_kube_apiserver().change(enable, disable)?)
}

/// Returns the options of the audit log. As in kube-apiserver, a log without policy has no event.
fn audit(flags: &Flags) -> Result<Option<AuditOptions>, Error> {
    let files = flags.value("audit-log-path").zip(flags.value("audit-policy-file"));
    let options = (audit_mode(flags)?, rotation(flags)?);
    files.map(|(log, policy)| audit_options(Path::new(log), Path::new(policy), options)).transpose()
}

fn audit_mode(flags: &Flags) -> Result<AuditMode, Error> {
    match flags.value("audit-log-mode") {
        None | Some("blocking") => Ok(AuditMode::Blocking),
        Some("blocking-strict") => Ok(AuditMode::BlockingStrict),
        Some("batch") => Ok(AuditMode::Batch),
        Some(other) => Err(invalid_flag(
            "audit-log-mode",
            other,
            "expected batch, blocking or blocking-strict",
        )),
    }
}

fn rotation(flags: &Flags) -> Result<RotationFlags, Error> {
    Ok(RotationFlags {
        megabytes: number(flags, "audit-log-maxsize")?,
        backups: number(flags, "audit-log-maxbackup")?,
        days: number(flags, "audit-log-maxage")?,
    })
}

/// Returns the number of a flag, or zero without the flag.
fn number<T>(flags: &Flags, name: &'static str) -> Result<T, Error>
where
    T: FromStr + Default,
{
    let Some(text) = flags.value(name) else { return Ok(T::default()) };
    text.parse().map_err(|_| invalid_flag(name, text, "expected a number"))
}

fn shutdown_delay(flags: &Flags) -> Result<Duration, Error> {
    let Some(text) = flags.value("shutdown-delay-duration") else { return Ok(Duration::ZERO) };
    age(text).map_err(|why| invalid_flag("shutdown-delay-duration", text, why))
}

fn invalid_flag(name: &'static str, value: &str, reason: impl Display) -> Error {
    Error::Flag { name, value: value.to_owned(), reason: reason.to_string() }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn start(line: &str) -> Result<ApiserverOptions, Error> {
        let flags = line.split_whitespace().map(str::to_owned).collect();
        match KubeApiserver::resolve(&low::Launcher { flags })? {
            KubeApiserver::Start(options) => Ok(*options),
            KubeApiserver::Print(text) => panic!("{text}"),
        }
    }

    #[test]
    fn the_server_has_the_version_of_the_flag() {
        let version = |line: &str| start(line).map(|options| options.config.version);
        assert_eq!(version("").expect("valid flags"), KubernetesVersion::default());
        let old = version("--kubernetes-version=1.35").expect("valid flags");
        assert_eq!(old, KubernetesVersion::V1_35);
        let error = version("--kubernetes-version 1.20").unwrap_err().to_string();
        assert!(error.contains("1.35, 1.36"), "{error}");
    }

    #[test]
    fn the_defaults_are_those_of_kube_apiserver_without_controllers() {
        let options = start("").expect("valid flags");
        assert_eq!(options.config.listen.to_string(), "0.0.0.0:6443");
        assert_eq!(options.config.authorization, AuthorizationMode::AlwaysAllow);
        assert_eq!(options.config.controllers, Controllers::None);
        assert!(options.config.tls.is_some());
        let options = start("--authorization-mode=Node,RBAC --controllers=all --secure-port 1");
        let options = options.expect("valid flags");
        assert_eq!(options.config.listen.to_string(), "0.0.0.0:1");
        assert_eq!(options.config.authorization, AuthorizationMode::Rbac);
        assert_eq!(options.config.controllers, Controllers::All);
    }

    #[test]
    fn a_certificate_is_read_from_the_directory_or_generated_there() {
        let dir = tempfile::tempdir().expect("a directory");
        let line = format!("--cert-dir={}", dir.path().display());
        let generates = |options: &ApiserverOptions| options.certificate_directory.is_some();
        let options = start(&line).expect("valid flags");
        assert!(generates(&options), "no file");
        let pair = rcgen::generate_simple_self_signed(["a".to_owned()]).expect("a certificate");
        let key = pair.signing_key.serialize_pem();
        for (name, pem) in [("apiserver.crt", &pair.cert.pem()), ("apiserver.key", &key)] {
            fs::write(dir.path().join(name), pem).expect("written");
        }
        let options = start(&line).expect("valid flags");
        assert!(!generates(&options));
        let certificate = options.config.tls.and_then(|tls| tls.certificate);
        assert_eq!(certificate.map(|one| one.key_pem), Some(key));
    }

    #[test]
    fn errors_name_the_flag_or_the_file() {
        let error = |line: &str| start(line).err().map(|error| error.to_string());
        let port = error("--secure-port=x").unwrap_or_default();
        assert_eq!(port, "--secure-port is \"x\": expected a port");
        let file = error("--client-ca-file=/nothing/ca.crt").unwrap_or_default();
        assert!(file.starts_with("cannot read /nothing/ca.crt"), "{file}");
    }
}
