//! The server under test.

use std::path::{Path, PathBuf};
use std::time::Duration;

use kubeproof_harness::target::{Credential, Overrides, TargetConfig, TlsConfig, TlsOptions};

use crate::args::low;
use crate::error::Error;

/// The server under test, and the users of the run.
pub(crate) struct Target {
    address: Address,
    impersonate: Option<String>,
    second: Option<Credential>,
}

enum Address {
    Bundled,
    Url(Box<TargetConfig>),
    Kubeconfig { file: Option<PathBuf>, context: Option<String>, overrides: Box<Overrides> },
}

impl Target {
    pub(super) fn resolve(target: &low::Target) -> Result<Self, Error> {
        let address = match (&target.server, &target.kubeconfig) {
            (Some(url), _) => Address::Url(Box::new(config_of_url(url, target)?)),
            (None, Some(file)) => Address::Kubeconfig {
                file: file.clone(),
                context: target.context.clone(),
                overrides: Box::new(Overrides {
                    credential: credential(target.token.as_deref(), target.token_file.as_deref())?,
                    tls: tls_options(target),
                }),
            },
            (None, None) => Address::Bundled,
        };
        let second = target.second_token.as_deref().map(Credential::token).transpose()?;
        Ok(Self { address, impersonate: target.act_as.clone(), second })
    }

    /// Resolves the oracle, if one is given.
    pub(super) fn of_oracle(oracle: &low::Oracle) -> Result<Option<Self>, Error> {
        let Some(url) = &oracle.oracle else { return Ok(None) };
        let mut config = TargetConfig::new(url)?;
        let (token, file) = (&oracle.oracle_token, &oracle.oracle_token_file);
        config.credential = credential(token.as_deref(), file.as_deref())?;
        let certificate = oracle.oracle_client_certificate.clone();
        config.tls = TlsConfig::Options(TlsOptions {
            certificate_authority: oracle.oracle_certificate_authority.clone(),
            insecure_skip_verify: oracle.oracle_insecure_skip_tls_verify,
            client_certificate: certificate.zip(oracle.oracle_client_key.clone()),
        });
        let second = oracle.oracle_second_token.as_deref().map(Credential::token).transpose()?;
        Ok(Some(Self { address: Address::Url(Box::new(config)), impersonate: None, second }))
    }

    /// Returns the configuration of the target, or `None` for the bundled server. Reads the
    /// kubeconfig, whose credential plugin may send requests.
    pub(crate) async fn config(self) -> Result<Option<TargetConfig>, Error> {
        let mut config = match self.address {
            Address::Bundled => return Ok(None),
            Address::Url(config) => *config,
            Address::Kubeconfig { file, context, overrides } => {
                let (file, context) = (file.as_deref(), context.as_deref());
                TargetConfig::from_kubeconfig_with(file, context, &overrides).await?
            }
        };
        config.impersonate = self.impersonate;
        config.second = self.second;
        Ok(Some(config))
    }
}

fn config_of_url(url: &str, target: &low::Target) -> Result<TargetConfig, Error> {
    let mut config = TargetConfig::new(url)?;
    config.credential = credential(target.token.as_deref(), target.token_file.as_deref())?;
    config.tls = TlsConfig::Options(tls_options(target));
    Ok(config)
}

fn tls_options(target: &low::Target) -> TlsOptions {
    TlsOptions {
        certificate_authority: target.certificate_authority.clone(),
        insecure_skip_verify: target.insecure_skip_tls_verify,
        client_certificate: target.client_certificate.clone().zip(target.client_key.clone()),
    }
}

fn credential(token: Option<&str>, file: Option<&Path>) -> Result<Credential, Error> {
    Ok(match (token, file) {
        (Some(token), _) => Credential::token(token)?,
        (None, Some(file)) => Credential::token_file(file)?,
        (None, None) => Credential::None,
    })
}

/// The options of `kubeproof clean`.
pub(crate) struct Clean {
    pub(crate) target: Target,
    pub(crate) namespace: Option<String>,
    pub(crate) older_than: Duration,
    pub(crate) dry_run: bool,
}

impl Clean {
    pub(super) fn resolve(clean: low::Clean) -> Result<Self, Error> {
        Ok(Self {
            target: Target::resolve(&clean.target)?,
            namespace: clean.namespace,
            older_than: clean.older_than,
            dry_run: clean.dry_run,
        })
    }
}
