//! Reads kubeconfig files with the loader of the `kube` crate. Only this module uses that crate.
//!
//! The loader supports exec plugins, OIDC and token files, and keeps credentials private. Therefore
//! its layers wrap a service that returns the request headers.

use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{HeaderMap, Request, Response};
use http_body_util::Empty;
use kube::client::{AuthError, ConfigExt};
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use rustls_pki_types::ServerName;
use tower::util::BoxCloneService;
use tower::{BoxError, Layer, ServiceExt, service_fn};
use url::Url;

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
        let file = match path {
            Some(path) => Kubeconfig::read_from(path),
            None => Kubeconfig::read(),
        }
        .map_err(|error| unusable(&error))?;
        let proxy = proxy_of(&file, context)?;
        let options =
            KubeConfigOptions { context: context.map(str::to_owned), ..Default::default() };
        let mut config = kube::Config::from_custom_kubeconfig(file, &options)
            .await
            .map_err(|error| unusable(&error))?;
        let mut target = Self::new(&config.cluster_url.to_string())?;
        target.proxy = proxy;
        let file = take_token_file(&mut config.auth_info);
        // Exec plugins block.
        let prepared = tokio::task::spawn_blocking(move || prepare(&config, file)).await;
        let (login, tls) = prepared.map_err(|error| unusable(&error))??;
        target.credential = Credential::Login(login);
        target.tls = TlsConfig::Prepared(Box::new(tls));
        Ok(target)
    }
}

fn prepare(
    config: &kube::Config,
    file: Option<PathBuf>,
) -> Result<(Login, PreparedTls), TargetError> {
    let extra = config.extra_headers_layer().map_err(|error| unusable(&error))?;
    let auth = config.auth_layer().map_err(|error| unusable(&error))?;
    let echo = service_fn(|request: Request<Empty<Bytes>>| async move {
        let mut echo = Response::new(());
        *echo.headers_mut() = request.into_parts().0.headers;
        Ok::<_, BoxError>(echo)
    });
    let echo = extra.layer(echo);
    let authorizes = auth.is_some() || file.is_some();
    let echo = match auth {
        Some(auth) => BoxCloneService::new(auth.layer(echo)),
        None => BoxCloneService::new(echo),
    };
    let mut nobody = config.clone();
    nobody.auth_info = AuthInfo::default();
    let server_name = config.tls_server_name.clone().map(ServerName::try_from).transpose();
    let tls = PreparedTls {
        authenticated: config.rustls_client_config().map_err(|error| unusable(&error))?,
        anonymous: nobody.rustls_client_config().map_err(|error| unusable(&error))?,
        server_name: server_name.map_err(|error| unusable(&error))?,
    };
    let file = file.map(|path| Arc::new(TokenFile::new(path)));
    Ok((Login { echo: Arc::new(Mutex::new(echo)), file, authorizes }, tls))
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

/// Returns the proxy of the file. The loader would also use the environment.
fn proxy_of(file: &Kubeconfig, context: Option<&str>) -> Result<Option<Url>, TargetError> {
    let wanted = context.or(file.current_context.as_deref());
    let cluster = file
        .contexts
        .iter()
        .find(|named| Some(named.name.as_str()) == wanted)
        .and_then(|named| named.context.as_ref())
        .map(|context| context.cluster.as_str());
    let proxy = file
        .clusters
        .iter()
        .find(|named| Some(named.name.as_str()) == cluster)
        .and_then(|named| named.cluster.as_ref())
        .and_then(|cluster| cluster.proxy_url.as_deref())
        .filter(|url| !url.is_empty());
    proxy
        .map(Url::parse)
        .transpose()
        .map_err(|error| TargetError::Kubeconfig(format!("proxy-url: {error}")))
}

fn unusable(error: &(dyn Error + 'static)) -> TargetError {
    TargetError::Kubeconfig(login_error(error))
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
