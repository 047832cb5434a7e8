//! Reads kubeconfig files with the loader of the `kube` crate. Only this module uses that crate.
//!
//! The loader supports exec plugins, OIDC and token files, and keeps credentials private. Therefore
//! its layers wrap a service that returns the request headers.

mod file;
mod overrides;

use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{HeaderMap, Request, Response};
use http_body_util::Empty;
use kube::client::{AuthError, ConfigExt};
use kube::config::{AuthInfo, KubeConfigOptions};
use rustls_pki_types::{CertificateDer, ServerName};
use tower::util::BoxCloneService;
use tower::{BoxError, Layer, ServiceExt, service_fn};

use self::file::KubeconfigFile;
pub use self::overrides::Overrides;
use super::{
    Credential, PreparedTls, TargetConfig, TargetError, TlsConfig, TokenFile, error_chain,
    with_advice,
};

type Echo = BoxCloneService<Request<Empty<Bytes>>, Response<()>, BoxError>;

/// The login of a kubeconfig, which refreshes itself before each request.
#[derive(Clone)]
pub struct Login {
    echo: Arc<Mutex<Echo>>,
    /// Read here, since the loader treats the final newline as part of the token.
    file: Option<Arc<TokenFile>>,
    /// True if it adds an Authorization header.
    authorizes: bool,
    /// True if the command line replaced the credential of the file.
    is_replaced: bool,
}

impl Login {
    /// Returns the current headers: Authorization and impersonation.
    pub(crate) async fn headers(&self) -> Result<HeaderMap, String> {
        let service = self.echo.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let fault = |error: BoxError| {
            format!("the login of the kubeconfig returns no credential: {}", login_error(&*error))
        };
        let mut headers = service
            .oneshot(Request::new(Empty::new()))
            .await
            .map_err(fault)?
            .into_parts()
            .0
            .headers;
        if let Some(file) = &self.file {
            headers.insert(AUTHORIZATION, file.authorization().await?);
        }
        Ok(headers)
    }

    /// Reports whether the login adds a header, in contrast to a client certificate.
    pub(crate) fn authorizes(&self) -> bool {
        self.authorizes
    }

    /// Reports whether the command line replaced the credential of the kubeconfig.
    pub(crate) fn is_replaced(&self) -> bool {
        self.is_replaced
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Login(..)")
    }
}

impl TargetConfig {
    /// Reads the target of a kubeconfig context.
    ///
    /// The default path is `KUBECONFIG` or `~/.kube/config`. The default context is the current
    /// one.
    pub async fn from_kubeconfig(
        path: Option<&Path>,
        context: Option<&str>,
    ) -> Result<Self, TargetError> {
        Self::from_kubeconfig_with(path, context, &Overrides::default()).await
    }

    /// Reads the target of a kubeconfig context, with settings that replace those of the file.
    pub async fn from_kubeconfig_with(
        path: Option<&Path>,
        context: Option<&str>,
        overrides: &Overrides,
    ) -> Result<Self, TargetError> {
        let file = KubeconfigFile::read(path)?;
        file.check_context(context)?;
        let proxy = file.proxy(context)?;
        let KubeconfigFile { name, content } = file;
        let options =
            KubeConfigOptions { context: context.map(str::to_owned), ..Default::default() };
        let mut config = kube::Config::from_custom_kubeconfig(content, &options)
            .await
            .map_err(|error| unusable(&name, &error))?;
        overrides.apply(&mut config)?;
        let mut target = Self::new(&config.cluster_url.to_string())?;
        target.proxy = proxy;
        let token_file = take_token_file(&mut config.auth_info);
        let is_replaced = overrides.replace_credential();
        // Exec plugins block.
        let prepared = tokio::task::spawn_blocking(move || {
            prepare(&config, token_file, is_replaced).map_err(|error| unusable(&name, &*error))
        });
        let (login, tls) =
            prepared.await.map_err(|error| TargetError::Client(error.to_string()))??;
        target.credential = Credential::Login(login);
        target.tls = TlsConfig::Prepared(Box::new(tls));
        Ok(target)
    }
}

fn prepare(
    config: &kube::Config,
    token_file: Option<PathBuf>,
    is_replaced: bool,
) -> Result<(Login, PreparedTls), BoxError> {
    let extra = config.extra_headers_layer()?;
    let auth = config.auth_layer()?;
    let echo = service_fn(|request: Request<Empty<Bytes>>| async move {
        let mut echo = Response::new(());
        *echo.headers_mut() = request.into_parts().0.headers;
        Ok::<_, BoxError>(echo)
    });
    let echo = extra.layer(echo);
    let authorizes = auth.is_some() || token_file.is_some();
    let echo = match auth {
        Some(auth) => BoxCloneService::new(auth.layer(echo)),
        None => BoxCloneService::new(echo),
    };
    let mut nobody = config.clone();
    nobody.auth_info = AuthInfo::default();
    let server_name = config.tls_server_name.clone().map(ServerName::try_from).transpose();
    let mut tls = PreparedTls {
        authenticated: config.rustls_client_config()?,
        anonymous: nobody.rustls_client_config()?,
        server_name: server_name?,
    };
    if let Some(authorities) = config.root_cert.as_ref().filter(|_| !config.accept_invalid_certs) {
        tls.trust(authorities.iter().cloned().map(CertificateDer::from).collect())?;
    }
    let file = token_file.map(|path| Arc::new(TokenFile::new(path)));
    let echo = Arc::new(Mutex::new(echo));
    Ok((Login { echo, file, authorizes, is_replaced }, tls))
}

/// Removes and returns the token file, if the loader would use it.
fn take_token_file(user: &mut AuthInfo) -> Option<PathBuf> {
    let basic = user.username.is_some() && user.password.is_some();
    if user.auth_provider.is_some() || basic || user.token.is_some() {
        return None;
    }
    let path = user.token_file.take()?;
    user.exec = None;
    Some(path.into())
}

fn unusable(file: &str, error: &(dyn Error + 'static)) -> TargetError {
    TargetError::Kubeconfig { file: file.to_owned(), reason: login_error(error) }
}

/// Joins the chain of causes. For an exec plugin, returns its stderr only, since its output,
/// arguments and environment may contain secrets.
fn login_error(error: &(dyn Error + 'static)) -> String {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(AuthError::AuthExecRun { out, .. }) = error.downcast_ref() {
            let complaint = String::from_utf8_lossy(&out.stderr);
            return format!("its exec plugin ended with {}: {}", out.status, complaint.trim());
        }
        cause = error.source();
    }
    with_advice(error_chain(error))
}
