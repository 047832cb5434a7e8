//! Reads the files with certificates, tokens and policies of a server.

use std::fs;
use std::path::Path;

use kubeproof_reference_server::{
    AuditOptions, AuditPolicy, PolicyError, ServingCertificate, TokenUser,
};

use crate::error::Error;

pub(super) fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|source| Error::Read { path: path.to_owned(), source })
}

pub(super) fn read_certificate(chain: &Path, key: &Path) -> Result<ServingCertificate, Error> {
    Ok(ServingCertificate { chain_pem: read(chain)?, key_pem: read(key)? })
}

/// Returns the options of an audit log with the policy of a file.
pub(super) fn audit_options(log: &Path, policy: &Path) -> Result<AuditOptions, Error> {
    let invalid =
        |error: PolicyError| Error::Config { path: policy.to_owned(), reason: error.to_string() };
    let parsed = AuditPolicy::parse(read(policy)?.as_bytes()).map_err(invalid)?;
    Ok(AuditOptions { path: log.to_owned(), policy: parsed })
}

/// Reads the users of a token file.
pub(super) fn token_users(path: &Path) -> Result<Vec<TokenUser>, Error> {
    TokenUser::parse_file(&read(path)?)
        .map_err(|error| Error::Config { path: path.to_owned(), reason: error.to_string() })
}
