//! The way of a request through the server: who asks, for what, may they, and which handler answers.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri, Version, header};
use hyper::body::Incoming;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::auth::{self, Authenticator, Rights, User};
use crate::body::{self, Intake};
use crate::builtin::ClusterIps;
use crate::discover::Documents;
use crate::handlers::{self, Call};
use crate::kubelet::Kubelet;
use crate::openapi::Publisher;
use crate::paths;
use crate::query::Query;
use crate::registry::{Lookup, Registry, ResourceType};
use crate::request_info::{RequestInfo, ResourceInfo};
use crate::respond::{Answer, Payload};
use crate::runtime::Runtime;
use crate::status::ApiError;
use crate::store::Store;
use crate::streams::Upgrade;
use crate::{Config, Cuts, Fault, Faults, Variations};

/// All of the server but its listener.
pub(crate) struct Api {
    pub(crate) store: Store,
    pub(crate) registry: Registry,
    pub(crate) auth: Authenticator,
    pub(crate) faults: Faults,
    pub(crate) cuts: Cuts,
    pub(crate) variations: Variations,
    pub(crate) documents: Documents,
    pub(crate) publisher: Publisher,
    pub(crate) bodies: Intake,
    /// Host and port, as discovery tells them.
    pub(crate) address: String,
    /// What runs pods; none on a server without a node.
    pub(crate) runtime: OnceLock<Runtime>,
    /// The agent of the node, for those who ask the node itself.
    pub(crate) agent: OnceLock<Weak<Kubelet>>,
    addresses: Mutex<ClusterIps>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Api {
    /// The addresses of services.
    pub(crate) fn addresses(&self) -> MutexGuard<'_, ClusterIps> {
        // An address is taken or given back in one step, so a panic elsewhere has left nothing half done.
        self.addresses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn new(
        config: &Config,
        address: SocketAddr,
        tasks: TaskTracker,
        stop: CancellationToken,
    ) -> Self {
        let api = Self {
            store: Store::new(config.history),
            registry: Registry::new(config.cuts),
            auth: Authenticator::new(config),
            faults: config.faults,
            cuts: config.cuts,
            variations: config.variations,
            documents: Documents::default(),
            publisher: Publisher::default(),
            bodies: Intake::new(&config.limits),
            address: address.to_string(),
            runtime: OnceLock::new(),
            agent: OnceLock::new(),
            addresses: Mutex::default(),
            tasks,
            stop,
        };
        if let Lookup::Found(namespaces) = api.registry.current().find("", "v1", "namespaces") {
            handlers::create_initial_namespaces(&api, &namespaces);
        }
        handlers::ship_resources(&api, config.sample);
        api
    }

    /// Who may do what.
    pub(crate) fn rights(&self) -> Rights<'_> {
        Rights { store: &self.store, faults: self.faults }
    }

    /// Runs work in the background until it is done or the server stops.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = work => {}
            }
        });
    }

    /// Answers a request.
    pub(crate) async fn handle(self: Arc<Self>, request: Request<Incoming>) -> Response<Payload> {
        let pretty = request.uri().query().is_some_and(|query| Query::parse(query).flag("pretty"));
        let faults = self.faults;
        if request.version() == Version::HTTP_11
            && request.headers().get_all(header::HOST).iter().count() != 1
        {
            let text = "400 Bad Request: one Host header is required";
            return Answer::text(StatusCode::BAD_REQUEST, text).into_response();
        }
        let gzip = accepts_gzip(request.headers(), faults) || faults.on(Fault::GzipUnasked);
        let answer = self.route(request).await.unwrap_or_else(|error| Answer::from_error(&error, faults));
        let mut answer = answer.pretty(pretty);
        if pretty && faults.on(Fault::PrettyIsText) {
            answer.content_type = "text/plain; charset=utf-8";
        }
        let mut answer = if gzip { answer.compressed() } else { answer };
        if faults.on(Fault::GzipUndeclared) {
            answer.headers.retain(|(name, _)| name != header::CONTENT_ENCODING);
        }
        answer.into_response()
    }

    async fn route(self: Arc<Self>, mut request: Request<Incoming>) -> Result<Answer, ApiError> {
        let upgrade = Upgrade::take(&mut request, self.faults);
        let (parts, mut body) = request.into_parts();
        // Who waits to be told to go on has nothing under way.
        let sends = !parts.headers.contains_key(header::EXPECT);
        let answer = self.dispatch(parts, upgrade, &mut body).await;
        if answer.is_err() && sends {
            body::discard(&mut body).await;
        }
        answer
    }

    async fn dispatch(
        self: Arc<Self>,
        mut parts: Parts,
        upgrade: Option<Upgrade>,
        body: &mut Incoming,
    ) -> Result<Answer, ApiError> {
        if self.faults.on(Fault::MethodOverrideHonoured)
            && let Some(method) = parts.headers.get("x-http-method-override")
        {
            parts.method = Method::from_bytes(method.as_bytes()).unwrap_or(parts.method);
        }
        let query = Query::parse(parts.uri.query().unwrap_or_default());
        let info = RequestInfo::parse(parts.uri.path());
        if self.faults.on(Fault::PublicPathsNeedNoValidToken)
            && let RequestInfo::Path(path) = &info
        {
            return paths::answer(&self, &parts.method, path, &query, &parts.headers);
        }
        let user = self.auth.authenticate(&parts.headers, self.faults)?;
        let user = auth::acting(user, &parts.headers, self.rights())?;
        if self.faults.on(Fault::AuthorizationAfterLookup)
            && let RequestInfo::Resource(info) = &info
        {
            self.find(info)?;
        }
        if self.faults.on(Fault::AuthorizationAfterDecoding) && parts.method == Method::POST {
            body::require_json(&parts.headers, self.faults)?;
        }
        auth::authorize(&user, &parts.method, &info, &query, self.rights())?;
        match info {
            RequestInfo::Path(path) => paths::answer(&self, &parts.method, &path, &query, &parts.headers),
            RequestInfo::Resource(info) => {
                let call = self.call(info, query, parts.uri, parts.headers, upgrade, user)?;
                let warning = call.ty.deprecation.clone();
                let answer = handlers::handle(call, &parts.method, body).await?;
                Ok(answer.warnings(warning.as_slice()))
            }
        }
    }

    fn call(
        self: Arc<Self>,
        info: ResourceInfo,
        query: Query,
        uri: Uri,
        headers: HeaderMap,
        upgrade: Option<Upgrade>,
        user: Arc<User>,
    ) -> Result<Call, ApiError> {
        let ty = self.find(&info)?;
        // A resource of the cluster has no address inside a namespace; a namespace counts as its own.
        let own = ty.is_core("namespaces") && info.name == info.namespace;
        let anywhere = self.faults.on(Fault::ClusterResourceInNamespaces);
        if !anywhere && !ty.namespaced && !info.namespace.is_empty() && !own {
            return Err(if ty.custom { ApiError::no_such_path() } else { ApiError::no_such_resource() });
        }
        Ok(Call { api: self, ty, info, query, uri, headers, upgrade, user })
    }

    /// A built-in resource of the core group.
    pub(crate) fn find_core(&self, plural: &str) -> Result<Arc<ResourceType>, ApiError> {
        match self.registry.current().find("", "v1", plural) {
            Lookup::Found(ty) => Ok(ty),
            Lookup::NoResource | Lookup::NoGroup => Err(ApiError::no_such_resource()),
        }
    }

    fn find(&self, info: &ResourceInfo) -> Result<Arc<ResourceType>, ApiError> {
        match self.registry.current().find(&info.group, &info.version, &info.resource) {
            Lookup::Found(ty) => Ok(ty),
            Lookup::NoResource | Lookup::NoGroup if self.faults.on(Fault::UnknownAsBadRequest) => {
                Err(ApiError::bad_request("there is no such resource"))
            }
            Lookup::NoResource => Err(ApiError::no_such_resource()),
            Lookup::NoGroup => Err(ApiError::no_such_path()),
        }
    }
}

/// Whether a request takes a body that is compressed. A quality of zero is a no.
pub(crate) fn accepts_gzip(headers: &HeaderMap, faults: Faults) -> bool {
    headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok()).any(|value| {
        value.split(',').any(|coding| {
            let (name, parameters) = coding.split_once(';').unwrap_or((coding, ""));
            let refused = parameters.trim().trim_start_matches("q=").parse() == Ok(0.0);
            name.trim().eq_ignore_ascii_case("gzip") && (!refused || faults.on(Fault::GzipQualityIgnored))
        })
    })
}
