//! Endpoints: handles the verbs of a resource after authorization.

mod admit;
pub(crate) mod aggregation;
mod apply;
pub(crate) mod bootstrap;
pub(crate) mod bootstrap_roles;
pub(crate) mod commit;
mod convert;
mod create;
mod decode;
mod delete;
mod etcd;
mod eviction;
pub(crate) mod forward;
mod get;
pub(crate) mod health;
mod kubelets;
pub(crate) mod lifecycle;
mod list;
mod log;
mod modify;
mod patch;
pub(crate) mod paths;
mod pods;
pub(crate) mod present;
mod proxy;
pub(crate) mod restore;
mod reviews;
mod sample;
mod scale;
mod selection;
mod services;
pub(crate) mod snapshot;
pub(crate) mod streams;
mod token;
mod update;
mod watch;

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, Uri};
use hyper::body::Incoming;
use kubeproof_streaming::{Handshake, Upgrade};

use crate::admission::Record;
use crate::authentication::User;
use crate::http::body;
use crate::http::negotiate::{Representation, Target, negotiate};
use crate::http::protobuf::to_json;
use crate::http::query::FieldValidation;
use crate::http::respond::ApiResponse;
use crate::registry::ResourceType;
use crate::registry::builtin::PartHooks;
use crate::server::ApiServer;
use kubeproof_apimachinery::patch::apply::{Operation, Owner, Reach, Write};
use kubeproof_apimachinery::request::Query;
use kubeproof_apimachinery::request::ResourceInfo;
use kubeproof_apimachinery::request::yaml;
use kubeproof_apimachinery::serializer::protobuf;
use kubeproof_apimachinery::status::ApiError;
use kubeproof_storage::Key;

/// The manager of a request without a name of the manager and of the program.
const UNKNOWN_MANAGER: &str = "unknown";
/// The number of characters of the user agent in a manager name.
const MAX_MANAGER: usize = 128;

/// A request for a served resource.
pub(crate) struct Call {
    pub(crate) api: Arc<ApiServer>,
    pub(crate) ty: Arc<ResourceType>,
    pub(crate) info: ResourceInfo,
    pub(crate) query: Query,
    /// The original URL of the request.
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    /// The connection, for protocol upgrades.
    pub(crate) upgrade: Option<Upgrade>,
    pub(crate) user: Arc<User>,
    /// What admission reports: warnings and audit annotations.
    pub(crate) record: Arc<Record>,
}

impl Call {
    /// Returns the key of the object in the URL.
    pub(crate) fn key(&self) -> Key {
        let namespace = if self.ty.namespaced { self.info.namespace.as_str() } else { "" };
        let name = self.info.name.as_str();
        Key::new(namespace, name)
    }

    /// Returns the namespace of a list, or none for all namespaces.
    pub(crate) fn scope(&self) -> Option<&str> {
        let one = self.ty.namespaced && !self.info.namespace.is_empty();
        one.then_some(self.info.namespace.as_str())
    }

    /// Negotiates the form of the response. Endpoints call it before they change anything.
    pub(crate) fn accept(&self, target: Target) -> Result<Representation, ApiError> {
        match negotiate(&self.headers, target, self.api.disabled_capabilities, self.ty.custom) {
            Ok(representation) => Ok(representation),
            Err(error) => Err(ApiError::not_acceptable(error.to_string())),
        }
    }

    /// Returns the manager of this change and the fields that it may own.
    pub(crate) fn ownership(&self, operation: Operation) -> Write<'_> {
        let agent =
            self.headers.get(http::header::USER_AGENT).and_then(|agent| agent.to_str().ok());
        let agent = agent.and_then(|agent| agent.split('/').next()).unwrap_or_default();
        let agent = if agent.is_empty() { UNKNOWN_MANAGER } else { agent };
        let manager = self.query.text("fieldManager").unwrap_or(agent);
        let reach = match (self.info.subresource.as_str(), self.part()) {
            ("status", _) if self.ty.custom || self.ty.hooks.status_only => Reach::Status,
            ("status", _) => Reach::StatusAndMetadata,
            (_, Some(hooks)) => Reach::Only(hooks.fields),
            _ if !self.ty.hooks.owned.is_empty() => Reach::Only(self.ty.hooks.owned),
            _ if self.ty.has_status => Reach::NoStatus,
            _ => Reach::Whole,
        };
        let owner = Owner {
            manager: manager.chars().take(MAX_MANAGER).collect(),
            operation,
            api_version: self.ty.api_version(),
            subresource: self.info.subresource.clone(),
        };
        Write { owner, reach, schema: &self.ty.schema }
    }

    /// Returns the hooks of a subresource that writes a part of the object.
    fn part(&self) -> Option<&'static PartHooks> {
        let name = self.info.subresource.as_str();
        self.ty.subresources.iter().find(|known| known.name == name)?.part
    }

    /// Returns the response of a handshake, and serves its session in the background.
    pub(crate) fn switch(&self, handshake: Handshake) -> ApiResponse {
        self.api.switch(handshake)
    }

    pub(crate) fn not_found(&self) -> ApiError {
        ApiError::not_found(self.ty.resource(), &self.info.name)
    }

    /// Returns whether the body is protobuf. It has no unknown and no duplicate fields.
    pub(crate) fn sends_protobuf(&self) -> bool {
        body::media_type(&self.headers) == protobuf::MEDIA_TYPE
    }

    /// Returns whether the body is YAML, which the type accepts.
    pub(crate) fn sends_yaml(&self) -> bool {
        let media_type = body::media_type(&self.headers);
        media_type == "application/yaml" && self.ty.body_types.contains(&media_type.as_str())
    }

    /// Returns the field validation of the body.
    pub(crate) fn validation(&self, wanted: FieldValidation) -> FieldValidation {
        if self.sends_protobuf() { FieldValidation::Ignore } else { wanted }
    }

    /// Returns the API version and the kind of the body.
    fn body_type(&self) -> (String, &str) {
        let name = self.info.subresource.as_str();
        let sub = self.ty.subresources.iter().find(|known| known.name == name);
        match sub {
            _ if name == "scale" => ("autoscaling/v1".to_owned(), "Scale"),
            Some(sub) if sub.group.is_empty() => (sub.version.to_owned(), sub.kind),
            Some(sub) => (format!("{}/{}", sub.group, sub.version), sub.kind),
            None => (self.ty.api_version(), self.ty.kind.as_str()),
        }
    }

    /// Converts a protobuf body to JSON.
    fn protobuf(&self, bytes: &[u8]) -> Result<Bytes, ApiError> {
        let (api_version, kind) = self.body_type();
        to_json(bytes, (&api_version, kind)).map_err(|error| {
            ApiError::bad_request(format!(
                "the object provided is unrecognized (must be of type {kind}): {error}"
            ))
        })
    }

    /// Reads a JSON body, or converts a YAML or protobuf body to JSON.
    async fn json_body(&self, body: &mut Incoming) -> Result<Bytes, ApiError> {
        if self.sends_yaml() {
            return yaml::to_json(&self.body(body).await?);
        }
        if self.sends_protobuf() && self.ty.body_types.contains(&protobuf::MEDIA_TYPE) {
            return self.protobuf(&self.body(body).await?);
        }
        body::require_json(&self.headers, &self.ty.body_types)?;
        self.body(body).await
    }

    /// Reads the complete body.
    async fn body(&self, body: &mut Incoming) -> Result<Bytes, ApiError> {
        let bytes = self.api.bodies.read(body).await?;
        if let Some(trail) = self.record.trail() {
            trail.request_body(&body::media_type(&self.headers), &bytes);
        }
        Ok(bytes)
    }
}

pub(crate) use self::sample::add_sample;

/// Handles a request by its method.
pub(crate) async fn handle(
    call: Call,
    method: &Method,
    body: &mut Incoming,
) -> Result<ApiResponse, ApiError> {
    let not_allowed = || ApiError::method_not_allowed();
    if call.info.excess && call.info.subresource != "proxy" {
        return Err(ApiError::no_such_resource());
    }
    if !call.info.subresource.is_empty() {
        return subresource(call, method, body).await.unwrap_or_else(|| Err(not_allowed()));
    }
    if call.ty.namespaced
        && call.info.namespace.is_empty()
        && (!call.info.name.is_empty() || method != Method::GET)
    {
        // The collection over all namespaces is read-only.
        return Err(if call.info.name.is_empty() {
            not_allowed()
        } else {
            ApiError::no_such_resource()
        });
    }
    let watch = call.info.legacy_watch || (call.info.name.is_empty() && call.query.flag("watch"));
    let allowed = |verb| call.ty.allows(verb);
    match (method.as_str(), call.info.name.is_empty()) {
        ("GET", _) if watch && allowed("watch") => watch::handle(call),
        ("GET", true) if !watch && allowed("list") => list::handle(&call).await,
        ("GET", false) if !watch && allowed("get") => get::handle(&call).await,
        ("POST", true) if call.ty.is_core("bindings") => pods::bind_by_name(call, body).await,
        ("POST", true) if allowed("create") => create::handle(&call, body).await,
        ("PUT", false) if allowed("update") => {
            update::handle(&call, update::Part::Whole, body).await
        }
        ("PATCH", false) if allowed("patch") => {
            patch_or_apply(&call, update::Part::Whole, body).await
        }
        ("DELETE", false) if allowed("delete") => delete::handle(&call, body).await,
        ("DELETE", true) if allowed("deletecollection") => delete::collection(&call, body).await,
        _ => Err(not_allowed()),
    }
}

async fn patch_or_apply(
    call: &Call,
    part: update::Part,
    body: &mut Incoming,
) -> Result<ApiResponse, ApiError> {
    let applies = call.ty.patch_types.contains(&apply::MEDIA_TYPE);
    if applies && body::media_type(&call.headers) == apply::MEDIA_TYPE {
        apply::handle(call, part, body).await
    } else {
        patch::handle(call, part, body).await
    }
}

/// Returns none if the subresource does not support the method.
async fn subresource(
    call: Call,
    method: &Method,
    body: &mut Incoming,
) -> Option<Result<ApiResponse, ApiError>> {
    let known = call.ty.subresources.iter().any(|known| known.name == call.info.subresource);
    let own = match call.info.subresource.as_str() {
        "status" => call.ty.has_status,
        "scale" => call.ty.scale.is_some(),
        _ => false,
    };
    if !own && !known {
        return Some(Err(ApiError::no_such_resource()));
    }
    if own && *method == Method::PATCH && !call.ty.allows("patch") {
        return None;
    }
    if let Some(peer) = forward::owner(&call) {
        return Some(forward::handle(call, &peer, method, body).await);
    }
    Some(match (call.info.subresource.as_str(), method.as_str()) {
        ("status", "GET") if call.ty.has_status => get::handle(&call).await,
        ("status", "PUT") if call.ty.has_status => {
            update::handle(&call, update::Part::Status, body).await
        }
        ("status", "PATCH") if call.ty.has_status => {
            patch_or_apply(&call, update::Part::Status, body).await
        }
        ("status", _) if call.ty.has_status => return None,
        ("scale", method) if call.ty.scale.is_some() => scale::handle(&call, method, body).await?,
        ("exec" | "attach" | "portforward", "GET" | "POST") if known => {
            match admit::connect(&call).await {
                Ok(()) => streams::handle(call, method).await,
                Err(error) => Err(error),
            }
        }
        ("token", "POST") if known => token::create(&call, body).await,
        ("eviction", "POST") if known => eviction::evict(&call, body).await,
        ("log", "GET") if known => log::handle(call).await,
        ("proxy", _) if known => match admit::connect(&call).await {
            Ok(()) => proxy::handle(call, method, body).await,
            Err(error) => Err(error),
        },
        ("binding", "POST") if known => pods::bind(&call, body).await,
        // This subresource has PUT only.
        ("finalize", "GET" | "PATCH") if known => return None,
        (_, method) if known => {
            let part = update::Part::Subresource(call.part()?);
            match method {
                "GET" => get::handle(&call).await,
                "PUT" => update::handle(&call, part, body).await,
                "PATCH" => patch_or_apply(&call, part, body).await,
                _ => return None,
            }
        }
        _ => Err(ApiError::no_such_resource()),
    })
}
