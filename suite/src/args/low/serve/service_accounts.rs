//! The options of service account tokens.

use std::path::PathBuf;

use clap::Args;

/// The keys and names of service account tokens.
#[derive(Debug, Args)]
pub(in crate::args) struct ServiceAccounts {
    /// Sign service account tokens with this private key; servers that share etcd need the same one
    #[arg(long = "service-account-signing-key-file", value_name = "FILE")]
    pub(in crate::args) signing_key: Option<PathBuf>,

    /// Verify service account tokens with these keys besides the signing key
    #[arg(long = "service-account-key-file", value_name = "FILE")]
    pub(in crate::args) keys: Vec<PathBuf>,

    /// Accept service account tokens of these issuers; the first one issues
    #[arg(long = "service-account-issuer", value_name = "URL")]
    pub(in crate::args) issuers: Vec<String>,

    /// Audiences of service account tokens for this server; default: the first issuer
    #[arg(long = "api-audiences", value_name = "NAME", value_delimiter = ',')]
    pub(in crate::args) audiences: Vec<String>,
}
