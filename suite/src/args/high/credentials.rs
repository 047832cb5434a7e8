//! Reads the files with certificates, tokens and policies of a server.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kubeproof_reference_server::{
    AuditMode, AuditOptions, AuditPolicy, PolicyError, Rotation, ServiceAccountOptions,
    ServingCertificate, TokenUser,
};

use crate::error::Error;

pub(super) fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|source| Error::Read { path: path.to_owned(), source })
}

pub(super) fn read_certificate(chain: &Path, key: &Path) -> Result<ServingCertificate, Error> {
    Ok(ServingCertificate { chain_pem: read(chain)?, key_pem: read(key)? })
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
        signing_key_pem: signing_key.map(read).transpose()?,
        key_pems: keys.iter().map(|path| read(path)).collect::<Result<_, _>>()?,
    })
}

/// Reads the users of a token file.
pub(super) fn token_users(path: &Path) -> Result<Vec<TokenUser>, Error> {
    TokenUser::parse_file(&read(path)?)
        .map_err(|error| Error::Config { path: path.to_owned(), reason: error.to_string() })
}
