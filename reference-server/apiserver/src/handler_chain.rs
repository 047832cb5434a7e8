//! The steps of a request: authentication, authorization, the registry, and the endpoint, which
//! runs admission and storage.
//!
//! [`ApiServer::dispatch`] runs the steps in order. The listener (`http::listener`) comes before
//! it, the response (`http::respond`) after it.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri, Version, header};
use hyper::body::Incoming;
use kubeproof_apimachinery::status::ApiError;
use kubeproof_storage::WriteError;
use kubeproof_streaming::Upgrade;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::admission::{Record, resource_quota};
use crate::audit::{self, AuditError, AuditLog, Origin, Outcome, Trail};
use crate::authentication::User;
use crate::authorization;
use crate::certificates::front_proxy::FrontProxy;
use crate::certificates::{PeerCertificates, SignError};
use crate::config::{Limits, Options};
use crate::endpoints::commit::storage_error;
use crate::endpoints::restore::StorageError;
use crate::endpoints::snapshot::{self, SnapshotError};
use crate::endpoints::{self, Call, aggregation, paths};
use crate::http::body;
use crate::http::limits::ConnectionState;
use crate::http::listener::{self, RequestHandler};
use crate::http::metrics::RequestLabels;
use crate::http::negotiate::{Representation, negotiate_error};
use crate::http::request_info::RequestInfo;
use crate::http::respond::{self, ApiResponse, Payload};
use crate::http::timeout;
use crate::registry::{Lookup, Registry, ResourceType};
use crate::server::ApiServer;
use crate::service_accounts::KeyError;
use kubeproof_apimachinery::request::Query;
use kubeproof_apimachinery::request::ResourceInfo;

/// The reason why an API server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The keys of service account tokens could not be read or generated.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The certificate for extension servers could not be generated.
    #[error(transparent)]
    Certificate(#[from] SignError),
    /// The audit log could not be opened.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// The storage could not be opened.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The storage rejected the objects of a new cluster.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// What the URL of a request names.
struct Target {
    info: RequestInfo,
    query: Query,
}

impl Target {
    fn of(uri: &Uri) -> Self {
        let query = Query::parse(uri.query().unwrap_or_default());
        Self { info: RequestInfo::parse(uri.path()), query }
    }
}

impl RequestHandler for ApiServer {
    async fn handle(self: Arc<Self>, request: Request<Incoming>) -> Response<Payload> {
        self.respond(request).await
    }
}

impl ApiServer {
    /// Creates a server with its initial objects. Background work runs on `tasks` until `stop`.
    pub async fn start(
        options: &Options,
        tasks: TaskTracker,
        stop: CancellationToken,
    ) -> Result<Arc<Self>, StartError> {
        let registry = Registry::new(options.version, options.disabled_capabilities);
        let registry = Arc::new(registry);
        let restore = options.restore.as_deref();
        let store =
            endpoints::restore::open(&options.storage, restore, options.history, &registry).await?;
        let front_proxy = FrontProxy::generate().map_err(SignError::from)?;
        let audit = options.audit.as_ref().map(AuditLog::open).transpose()?;
        let parts = (front_proxy, audit);
        let server = Self::new(options, (registry, store), parts, (tasks, stop))?;
        endpoints::restore::adopt(&server);
        if let Lookup::Found(namespaces) = server.registry.current().find("", "v1", "namespaces") {
            endpoints::bootstrap::create_namespaces(&server, &namespaces).await?;
        }
        endpoints::bootstrap::create_component_statuses(&server).await?;
        if options.cluster_defaults {
            endpoints::bootstrap_roles::create(&server).await?;
            endpoints::bootstrap::create_service(&server).await?;
            endpoints::bootstrap::create_priority_classes(&server).await?;
            endpoints::bootstrap::publish_authentication(&server, options).await?;
        }
        endpoints::add_sample(&server, options.sample).await?;
        let server = Arc::new(server);
        aggregation::start(&server);
        Ok(server)
    }

    /// Writes all objects to a file. A server of any storage can restore it.
    pub fn save_snapshot(&self, path: &Path) -> Result<(), SnapshotError> {
        snapshot::save(&self.store, path)
    }

    /// Serves HTTP/1.1 or HTTP/2 on one connection until the peer closes it, without timeouts.
    ///
    /// Any byte stream is possible, for example a [`tokio::io::DuplexStream`] in memory. `peer` has
    /// the certificates of the client.
    pub async fn serve_connection<S>(
        self: Arc<Self>,
        stream: S,
        peer: Option<Arc<PeerCertificates>>,
    ) where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let state = ConnectionState::unlimited();
        if let Some(peer) = peer {
            state.set_peer(peer);
        }
        listener::connection(stream, self, state, &Limits::DEFAULT).await;
    }

    async fn respond(self: Arc<Self>, mut request: Request<Incoming>) -> Response<Payload> {
        if request.version() == Version::HTTP_11
            && request.headers().get_all(header::HOST).iter().count() != 1
        {
            let text = "400 Bad Request: one Host header is required";
            return ApiResponse::text(StatusCode::BAD_REQUEST, text).into_response();
        }
        let target = Target::of(request.uri());
        let pretty = target.query.flag("pretty");
        let audit_id = audit::identify(request.headers_mut());
        let gzip = accepts_gzip(request.headers());
        let is_head = request.method() == Method::HEAD;
        let labels = self.labels(&request, &target);
        let (since, running) = (Instant::now(), labels.as_ref().map(|it| self.metrics.start(it)));
        let of_errors = negotiate_error(request.headers(), self.disabled_capabilities);
        let server = Arc::clone(&self);
        let record = Arc::new(Record::default());
        let response = self.complete(request, target, record.clone()).await;
        let response = match record.trail() {
            Some(trail) => audited(trail, response, of_errors),
            None => response.unwrap_or_else(|error| ApiResponse::from_error(&error, of_errors)),
        };
        let response = response.warnings(&record.warnings());
        if response.status.is_success() {
            record.charges().finish();
        } else {
            resource_quota::release(server.context(), &record).await;
        }
        if let Some(labels) = labels {
            server.metrics.count(&labels, response.status.as_u16(), since);
        }
        let response = response.until(server.draining.clone(), running);
        let response = response.pretty(pretty);
        let response = if gzip { response.compressed() } else { response };
        let mut response = response.into_response();
        response.headers_mut().insert(audit::AUDIT_ID, audit_id);
        if is_head { respond::without_body(response) } else { response }
    }

    /// Returns the labels under which `/metrics` counts the request. Without labels, it is not
    /// counted.
    fn labels(&self, request: &Request<Incoming>, target: &Target) -> Option<RequestLabels> {
        let method = request.method();
        match &target.info {
            RequestInfo::Path(path) => RequestLabels::of_path(path, method),
            RequestInfo::Resource(info) => {
                let ty = self.find(info).ok()?;
                let sub = info.subresource.as_str();
                let is_served = sub.is_empty()
                    || (sub == "status" && ty.has_status)
                    || (sub == "scale" && ty.scale.is_some())
                    || ty.subresources.iter().any(|known| known.name == sub);
                let applies = *method == Method::PATCH
                    && body::media_type(request.headers()).contains("apply-patch");
                let query = &target.query;
                is_served.then(|| RequestLabels::of_resource(info, method, query, applies))
            }
        }
    }

    /// Runs the request to its end, even if the client goes away while a write waits. Otherwise the
    /// store would have a write whose consequences are missing.
    async fn complete(
        self: Arc<Self>,
        request: Request<Incoming>,
        target: Target,
        record: Arc<Record>,
    ) -> Result<ApiResponse, ApiError> {
        let reads = matches!(*request.method(), Method::GET | Method::HEAD);
        if reads || !self.store.writes_wait() {
            return self.route(request, target, &record).await;
        }
        let task = tokio::spawn(async move { self.route(request, target, &record).await });
        task.await.unwrap_or_else(|error| Err(ApiError::internal(error.to_string())))
    }

    async fn route(
        self: Arc<Self>,
        mut request: Request<Incoming>,
        target: Target,
        record: &Arc<Record>,
    ) -> Result<ApiResponse, ApiError> {
        let upgrade = Upgrade::take(&mut request);
        let (parts, mut body) = request.into_parts();
        // A client that waits for `100 Continue` sends no body yet.
        let sends = !parts.headers.contains_key(header::EXPECT);
        let response = self.dispatch(parts, target, (upgrade, record), &mut body).await;
        if response.is_err() && sends {
            body::discard(&mut body).await;
        }
        response
    }

    async fn dispatch(
        self: Arc<Self>,
        parts: Parts,
        Target { info, query }: Target,
        (upgrade, record): (Option<Upgrade>, &Arc<Record>),
        body: &mut Incoming,
    ) -> Result<ApiResponse, ApiError> {
        timeout::check(&info, &query)?;
        if needs_newest(&info) {
            self.store.catch_up().await.map_err(|error| storage_error(&error))?;
        }
        let authenticated = self.credentials().authenticate(&parts);
        if let Some(log) = &self.audit {
            let user = authenticated.as_ref().map(Arc::clone).unwrap_or_default();
            if let Some(trail) = log.begin(&origin(&user, &parts, (&info, &query)))? {
                record.set_trail(trail);
            }
        }
        let original = authenticated?;
        let user = authorization::acting(original.clone(), &parts.headers, self.rights())?;
        if let Some(trail) = record.trail()
            && !Arc::ptr_eq(&original, &user)
        {
            trail.impersonated(&user);
        }
        let allowed = authorization::authorize(&user, &parts.method, &info, &query, self.rights());
        if record.trail().is_some() {
            let (decision, reason) = match &allowed {
                Ok(()) => {
                    let rights = self.rights();
                    ("allow", authorization::reason(&user, &parts.method, &info, &query, rights))
                }
                Err(_) => ("forbid", String::new()),
            };
            record.annotate("authorization.k8s.io/decision", decision);
            record.annotate("authorization.k8s.io/reason", &reason);
        }
        allowed?;
        if let Some(remote) = aggregation::find(&self, &info) {
            let request = (&parts, upgrade);
            return Ok(aggregation::forward(&self, &remote, &user, request, body).await);
        }
        match info {
            RequestInfo::Path(path) => {
                paths::handle(&self, &parts.method, &path, &query, &parts.headers)
            }
            RequestInfo::Resource(info) => {
                let from = (upgrade, user, Arc::clone(record));
                let call = self.call(info, query, (parts.uri, parts.headers), from)?;
                if let Some(warning) = &call.ty.deprecation {
                    record.warn(warning.clone());
                }
                endpoints::handle(call, &parts.method, body).await
            }
        }
    }

    fn call(
        self: Arc<Self>,
        info: ResourceInfo,
        query: Query,
        (uri, headers): (Uri, HeaderMap),
        (upgrade, user, record): (Option<Upgrade>, Arc<User>, Arc<Record>),
    ) -> Result<Call, ApiError> {
        let ty = self.find(&info)?;
        // A cluster-scoped resource has no path inside a namespace. A namespace counts as inside
        // itself.
        if !ty.namespaced && !info.namespace.is_empty() && !info.is_namespace() {
            return Err(if ty.custom {
                ApiError::no_such_path()
            } else {
                ApiError::no_such_resource()
            });
        }
        Ok(Call { api: self, ty, info, query, uri, headers, upgrade, user, record })
    }

    fn find(&self, info: &ResourceInfo) -> Result<Arc<ResourceType>, ApiError> {
        match self.registry.current().find(&info.group, &info.version, &info.resource) {
            Lookup::Found(ty) => Ok(ty),
            Lookup::NoResource => Err(ApiError::no_such_resource()),
            Lookup::NoGroup => Err(ApiError::no_such_path()),
        }
    }
}

/// Reports whether a request must see all writes of other servers. The state of this server does
/// not need them.
fn needs_newest(info: &RequestInfo) -> bool {
    const OWN: [&str; 5] = ["healthz", "livez", "readyz", "metrics", "version"];
    match info {
        RequestInfo::Resource(_) => true,
        RequestInfo::Path(path) => {
            let first = path.trim_start_matches('/').split('/').next().unwrap_or_default();
            !OWN.contains(&first)
        }
    }
}

/// Returns what the audit log needs to know about a request.
fn origin<'a>(
    user: &'a User,
    parts: &'a Parts,
    (info, query): (&'a RequestInfo, &Query),
) -> Origin<'a> {
    let verb = match info {
        RequestInfo::Resource(resource) => resource.verb(&parts.method, query.flag("watch")),
        RequestInfo::Path(_) => path_verb(&parts.method),
    };
    let remote = parts.extensions.get::<SocketAddr>().map(SocketAddr::ip);
    Origin { user, verb, info, uri: &parts.uri, headers: &parts.headers, remote }
}

/// Returns the verb of a request for a path without resource.
fn path_verb(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "get",
        "HEAD" => "head",
        "POST" => "post",
        "PUT" => "put",
        "PATCH" => "patch",
        "DELETE" => "delete",
        _ => "options",
    }
}

/// Writes the events of a response into the audit log.
fn audited(
    trail: &Trail,
    response: Result<ApiResponse, ApiError>,
    of_errors: Representation,
) -> ApiResponse {
    let mut response = match response {
        Ok(response) => response.gathered(),
        Err(error) => {
            trail.finish(&Outcome::Rejected(&error));
            return ApiResponse::from_error(&error, of_errors);
        }
    };
    let code = response.status;
    response.payload = match response.payload {
        Payload::Stream(chunks) => Payload::Stream(trail.clone().follow(code, chunks)),
        Payload::Whole(body) => {
            trail.finish(&Outcome::Responded(code, Some(&body)));
            Payload::Whole(body)
        }
        items @ Payload::Items(_) => items,
    };
    response
}

/// Returns whether a request accepts a compressed body. A quality of zero rejects it.
fn accepts_gzip(headers: &HeaderMap) -> bool {
    headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok()).any(
        |value| {
            value.split(',').any(|coding| {
                let (name, parameters) = coding.split_once(';').unwrap_or((coding, ""));
                let rejected = parameters.trim().trim_start_matches("q=").parse() == Ok(0.0);
                name.trim().eq_ignore_ascii_case("gzip") && !rejected
            })
        },
    )
}
