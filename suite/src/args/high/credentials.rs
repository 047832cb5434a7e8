//! Reads the files with certificates, tokens and policies of a server.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kubeproof_reference_server::{
    AuditMode, AuditOptions, AuditPolicy, PolicyError, Rotation, ServiceAccountOptions,
    ServingCertificate, TokenUser,
};

use rustls_pki_types::pem::{PemObject as _, SectionKind};

use crate::error::Error;

/// The content of a PEM file.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pem {
    Certificate,
    PrivateKey,
    /// A public key, or something that contains one.
    VerificationKey,
}

impl Pem {
    fn name(self) -> &'static str {
        match self {
            Self::Certificate => "a certificate",
            Self::PrivateKey => "a private key",
            Self::VerificationKey => "a public or private key",
        }
    }

    fn takes(self, kind: SectionKind) -> bool {
        let is_certificate = kind == SectionKind::Certificate;
        let is_private = matches!(
            kind,
            SectionKind::PrivateKey | SectionKind::RsaPrivateKey | SectionKind::EcPrivateKey
        );
        match self {
            Self::Certificate => is_certificate,
            Self::PrivateKey => is_private,
            Self::VerificationKey => is_certificate || is_private || kind == SectionKind::PublicKey,
        }
    }
}

/// Reads a PEM file. The server does not know its name, so an error about the content comes from
/// here.
pub(super) fn read_pem(path: &Path, wanted: Pem) -> Result<String, Error> {
    let text = read(path)?;
    let invalid = |found: String| Error::Config {
        path: path.to_owned(),
        reason: format!("expected PEM with {}{found}", wanted.name()),
    };
    let sections = <(SectionKind, Vec<u8>)>::pem_slice_iter(text.as_bytes());
    let kinds: Result<Vec<_>, _> = sections.map(|one| one.map(|(kind, _)| kind)).collect();
    let kinds = kinds.map_err(|error| invalid(format!(": {error}")))?;
    if kinds.into_iter().any(|kind| wanted.takes(kind)) {
        Ok(text)
    } else {
        Err(invalid(String::new()))
    }
}

pub(super) fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|source| Error::Read { path: path.to_owned(), source })
}

pub(super) fn read_certificate(chain: &Path, key: &Path) -> Result<ServingCertificate, Error> {
    Ok(ServingCertificate {
        chain_pem: read_pem(chain, Pem::Certificate)?,
        key_pem: read_pem(key, Pem::PrivateKey)?,
    })
}

/// The numbers of the flags of kube-apiserver about old audit logs. Zero stands for the default.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RotationFlags {
    pub(super) megabytes: u64,
    pub(super) backups: usize,
    pub(super) days: u32,
}

impl From<RotationFlags> for Rotation {
    fn from(flags: RotationFlags) -> Self {
        let RotationFlags { megabytes, backups, days } = flags;
        let default = Self::default();
        let max_bytes = megabytes.saturating_mul(1024 * 1024);
        Self {
            max_bytes: if max_bytes == 0 { default.max_bytes } else { max_bytes },
            max_backups: (backups > 0).then_some(backups),
            max_age: (days > 0).then(|| Duration::from_hours(24 * u64::from(days))),
        }
    }
}

/// Returns the options of an audit log with the policy of a file.
pub(super) fn audit_options(
    log: &Path,
    policy: &Path,
    (mode, rotation): (AuditMode, RotationFlags),
) -> Result<AuditOptions, Error> {
    let invalid =
        |error: PolicyError| Error::Config { path: policy.to_owned(), reason: error.to_string() };
    let parsed = AuditPolicy::parse(read(policy)?.as_bytes()).map_err(invalid)?;
    let (path, rotation) = (log.to_owned(), rotation.into());
    Ok(AuditOptions { mode, rotation, ..AuditOptions::new(path, parsed) })
}

/// Returns the options of service account tokens with the keys of files.
pub(super) fn service_account_options(
    names: (Vec<String>, Vec<String>),
    signing_key: Option<&Path>,
    keys: &[PathBuf],
) -> Result<ServiceAccountOptions, Error> {
    let (issuers, audiences) = names;
    Ok(ServiceAccountOptions {
        issuers,
        audiences,
        signing_key_pem: signing_key.map(|path| read_pem(path, Pem::PrivateKey)).transpose()?,
        key_pems: keys
            .iter()
            .map(|path| read_pem(path, Pem::VerificationKey))
            .collect::<Result<_, _>>()?,
    })
}

/// Reads the users of a token file.
pub(super) fn token_users(path: &Path) -> Result<Vec<TokenUser>, Error> {
    TokenUser::parse_file(&read(path)?)
        .map_err(|error| Error::Config { path: path.to_owned(), reason: error.to_string() })
}

#[cfg(test)]
mod tests {
    use rcgen::generate_simple_self_signed;

    use super::*;

    #[test]
    fn an_error_names_the_file_and_what_it_must_contain() {
        let pair = generate_simple_self_signed(["a".to_owned()]).expect("a certificate");
        let directory = tempfile::tempdir().expect("a directory");
        let file = |name: &str, text: &str| {
            let path = directory.path().join(name);
            fs::write(&path, text).expect("written");
            path
        };
        let certificate = file("a.crt", &pair.cert.pem());
        let key = file("a.key", &pair.signing_key.serialize_pem());
        let text = file("text", "no PEM");
        let damaged = file("damaged", &pair.cert.pem().replace("MII", "!!!"));
        for (path, wanted) in [
            (&certificate, Pem::Certificate),
            (&key, Pem::PrivateKey),
            (&key, Pem::VerificationKey),
        ] {
            read_pem(path, wanted).expect("a valid file");
        }
        for (path, wanted, what) in [
            (&key, Pem::Certificate, "a certificate"),
            (&certificate, Pem::PrivateKey, "a private key"),
            (&text, Pem::VerificationKey, "a public or private key"),
            (&damaged, Pem::Certificate, "a certificate: "),
        ] {
            let error = read_pem(path, wanted).expect_err("an invalid file").to_string();
            let expected = format!("{}: expected PEM with {what}", path.display());
            assert!(error.starts_with(&expected), "{error}");
        }
    }
}
