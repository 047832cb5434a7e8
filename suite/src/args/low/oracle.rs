//! Arguments of `kubeproof run` about the oracle.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(next_help_heading = "Oracle")]
#[expect(clippy::struct_field_names, reason = "each field is the name of an option")]
pub(in crate::args) struct Oracle {
    /// Run the same cases against this second server, and report only where the two differ; exit
    /// with 1 if the target fails where this server does not
    #[arg(
        long,
        value_name = "URL",
        conflicts_with_all = ["dry_run", "update_known_failures", "with_node"]
    )]
    pub(in crate::args) oracle: Option<String>,

    /// Bearer token for the oracle
    #[arg(long, value_name = "TOKEN", requires = "oracle", conflicts_with = "oracle_token_file")]
    pub(in crate::args) oracle_token: Option<String>,

    /// File with the bearer token for the oracle
    #[arg(long, value_name = "FILE", requires = "oracle")]
    pub(in crate::args) oracle_token_file: Option<PathBuf>,

    /// PEM file with the trusted authorities of the oracle [default: those of the system]
    #[arg(
        long,
        value_name = "FILE",
        requires = "oracle",
        conflicts_with = "oracle_insecure_skip_tls_verify"
    )]
    pub(in crate::args) oracle_certificate_authority: Option<PathBuf>,

    /// Trust any certificate of the oracle
    #[arg(long, requires = "oracle")]
    pub(in crate::args) oracle_insecure_skip_tls_verify: bool,

    /// PEM file with the client certificate for the oracle
    #[arg(long, value_name = "FILE", requires_all = ["oracle", "oracle_client_key"])]
    pub(in crate::args) oracle_client_certificate: Option<PathBuf>,

    /// PEM file with the key of the client certificate for the oracle
    #[arg(long, value_name = "FILE", requires = "oracle_client_certificate")]
    pub(in crate::args) oracle_client_key: Option<PathBuf>,

    /// Bearer token of a user of the oracle without permissions
    #[arg(long, value_name = "TOKEN", requires = "oracle")]
    pub(in crate::args) oracle_second_token: Option<String>,
}
