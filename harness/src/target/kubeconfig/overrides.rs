//! Settings of the command line that replace those of a kubeconfig, as the flags of kubectl do.

use kube::config::AuthInfo;

use crate::target::tls::{TlsOptions, certificates};
use crate::target::{Credential, TargetError, read_file};

/// Settings that replace those of a kubeconfig.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// The credential, or [`Credential::None`] for that of the file.
    pub credential: Credential,
    /// The trusted authority and the client certificate, if they are given.
    pub tls: TlsOptions,
}

impl Overrides {
    /// Reports whether the credential of the file is not used.
    pub(super) fn replace_credential(&self) -> bool {
        !matches!(self.credential, Credential::None) || self.tls.client_certificate.is_some()
    }

    /// Replaces the settings. The file keeps the users and groups to impersonate.
    pub(super) fn apply(&self, config: &mut kube::Config) -> Result<(), TargetError> {
        if self.tls.insecure_skip_verify {
            (config.accept_invalid_certs, config.root_cert) = (true, None);
        } else if let Some(path) = &self.tls.certificate_authority {
            let chain = certificates("certificate authority", path)?;
            let chain = chain.iter().map(|certificate| certificate.to_vec()).collect();
            (config.accept_invalid_certs, config.root_cert) = (false, Some(chain));
        }
        if self.replace_credential() {
            config.auth_info = self.user(&config.auth_info)?;
        }
        Ok(())
    }

    /// Returns a user with only the given credential. A certificate of the file would take
    /// precedence over the given token.
    fn user(&self, of_file: &AuthInfo) -> Result<AuthInfo, TargetError> {
        let mut user = AuthInfo {
            impersonate: of_file.impersonate.clone(),
            impersonate_uid: of_file.impersonate_uid.clone(),
            impersonate_groups: of_file.impersonate_groups.clone(),
            impersonate_user_extra: of_file.impersonate_user_extra.clone(),
            ..AuthInfo::default()
        };
        match &self.credential {
            Credential::None | Credential::Login(_) => {}
            Credential::Token(token) => user.token = Some(token.reveal().to_owned().into()),
            Credential::TokenFile(path) => {
                user.token_file = Some(path.to_string_lossy().into_owned());
            }
        }
        if let Some((certificate, key)) = &self.tls.client_certificate {
            certificates("client certificate", certificate)?;
            read_file("client key", key)?;
            user.client_certificate = Some(certificate.to_string_lossy().into_owned());
            user.client_key = Some(key.to_string_lossy().into_owned());
        }
        Ok(user)
    }
}
