//! The verbs: what the server does once it knows who asks for which resource.

mod apply;
mod crds;
mod create;
mod delete;
mod eviction;
mod get;
mod grants;
mod list;
mod log;
mod modify;
mod namespaces;
mod patch;
mod pods;
mod proxy;
mod scale;
mod services;
mod shipped;
pub(crate) mod streams;
mod update;
mod watch;

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, Uri};
use hyper::body::Incoming;
use serde_json::json;

use crate::api::Api;
use crate::apply::{Operation, Owner, Reach, Write};
use crate::auth::User;
use crate::body;
use crate::negotiate::{Encoding, Representation, Target, negotiate};
use crate::query::Query;
use crate::registry::ResourceType;
use crate::request_info::ResourceInfo;
use crate::respond::Answer;
use crate::status::ApiError;
use crate::store::Key;
use crate::streams::{Reply, Upgrade};
use crate::{Fault, Faults};

/// How much of a user agent names a manager.
const MAX_MANAGER: usize = 128;

/// One request for a resource that exists.
pub(crate) struct Call {
    pub(crate) api: Arc<Api>,
    pub(crate) ty: Arc<ResourceType>,
    pub(crate) info: ResourceInfo,
    pub(crate) query: Query,
    /// As it was sent.
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    /// The connection, when it is wanted for something else.
    pub(crate) upgrade: Option<Upgrade>,
    pub(crate) user: Arc<User>,
}

impl Call {
    pub(crate) fn faults(&self) -> Faults {
        self.api.faults
    }

    /// The object that the URL names.
    pub(crate) fn key(&self) -> Key {
        let namespace = if self.ty.namespaced { self.info.namespace.as_str() } else { "" };
        let name = self.info.name.as_str();
        Key::new(namespace, if self.faults().on(Fault::NamesTrimmed) { name.trim() } else { name })
    }

    /// The namespace of a list; none for all.
    pub(crate) fn scope(&self) -> Option<&str> {
        if self.ty.namespaced
            && self.info.namespace.is_empty()
            && self.faults().on(Fault::AllNamespacesIsDefault)
        {
            return Some("default");
        }
        let one = self.ty.namespaced && !self.info.namespace.is_empty();
        (one && !self.faults().on(Fault::ListIgnoresNamespace)).then_some(self.info.namespace.as_str())
    }

    /// The form of the answer; decided before anything is done.
    pub(crate) fn accept(&self, target: Target) -> Result<Representation, ApiError> {
        if self.faults().on(Fault::YamlByDefault) && !self.headers.contains_key(http::header::ACCEPT) {
            return Ok(Representation { encoding: Encoding::Yaml, ..Representation::JSON });
        }
        if self.faults().on(Fault::ProtobufWithoutEnvelope) && self.asks_for_protobuf() {
            return Ok(Representation::JSON);
        }
        match negotiate(&self.headers, target, self.api.cuts, self.faults()) {
            Ok(representation) => Ok(representation),
            Err(_) if self.faults().on(Fault::AcceptIgnored) => Ok(Representation::JSON),
            Err(error) => Err(ApiError::not_acceptable(error.to_string())),
        }
    }

    /// Whether the answer is wanted in protobuf, which this server does not write.
    pub(crate) fn asks_for_protobuf(&self) -> bool {
        let accept = self.headers.get(http::header::ACCEPT).and_then(|accept| accept.to_str().ok());
        accept.is_some_and(|accept| accept.contains("protobuf"))
    }

    /// Who makes this change, and which fields it can come to own.
    pub(crate) fn ownership(&self, operation: Operation) -> Write<'_> {
        let agent = self.headers.get(http::header::USER_AGENT).and_then(|agent| agent.to_str().ok());
        let agent = agent.and_then(|agent| agent.split('/').next()).unwrap_or_default();
        let manager = self.query.text("fieldManager").unwrap_or(agent);
        let reach = match self.info.subresource.as_str() {
            "status" => Reach::Status,
            _ if self.ty.has_status => Reach::NoStatus,
            _ => Reach::Whole,
        };
        let owner = Owner {
            manager: manager.chars().take(MAX_MANAGER).collect(),
            operation,
            api_version: self.ty.api_version(),
            subresource: self.info.subresource.clone(),
        };
        Write { owner, reach, schema: &self.ty.schema, faults: self.faults() }
    }

    /// Answers a handshake, and runs what follows it in the background.
    pub(crate) fn switch(&self, reply: Reply) -> Answer {
        if let Some(session) = reply.session {
            self.api.spawn(session);
        }
        reply.answer
    }

    pub(crate) fn not_found(&self) -> ApiError {
        ApiError::not_found(self.ty.resource(), &self.info.name)
    }

    /// Reads a JSON body, or one in YAML as the JSON that it stands for.
    async fn json_body(&self, body: &mut Incoming) -> Result<Bytes, ApiError> {
        let media_type = body::media_type(&self.headers);
        if media_type == "application/yaml" && self.ty.body_types.contains(&media_type.as_str()) {
            return body::json_of_yaml(&self.body(body).await?, self.faults());
        }
        body::require_json(&self.headers, self.faults())?;
        self.body(body).await
    }

    /// Reads the whole body, whatever it is.
    async fn body(&self, body: &mut Incoming) -> Result<Bytes, ApiError> {
        self.api.bodies.read(body, self.faults()).await
    }
}

pub(crate) use self::crds::TABLE as CRD_TABLE;
pub(crate) use self::modify::is_finished;
pub(crate) use self::namespaces::create_initial as create_initial_namespaces;
pub(crate) use self::shipped::ship as ship_resources;

/// Sets to work what a deletion waits for, where that is the server itself.
pub(crate) fn deletion_began(api: &Arc<Api>, ty: &ResourceType, key: &Key) {
    if ty.is_core("namespaces") {
        api.spawn(namespaces::terminate(api.clone(), key.name.clone()));
    } else if ty.table == CRD_TABLE {
        api.spawn(crds::remove(api.clone(), key.name.clone()));
    }
}

/// Gives back what an object held outside the store.
pub(crate) fn object_gone(api: &Api, ty: &ResourceType, object: &serde_json::Value) {
    if ty.is_core("services") {
        api.addresses().release(object);
    } else if ty.table == CRD_TABLE {
        crds::withdraw(api, object);
    }
}

/// Does what the method asks for.
pub(crate) async fn handle(call: Call, method: &Method, body: &mut Incoming) -> Result<Answer, ApiError> {
    let faults = call.faults();
    let not_allowed = || {
        if faults.on(Fault::MethodNotAllowedAsNotFound) {
            return ApiError::no_such_resource();
        }
        ApiError::method_not_allowed()
    };
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
        // The collection over all namespaces is for reading.
        return Err(if call.info.name.is_empty() { not_allowed() } else { ApiError::no_such_resource() });
    }
    let watch = (call.info.legacy_watch || (call.info.name.is_empty() && asks_to_watch(&call)))
        && !(call.info.legacy_watch && faults.on(Fault::WatchPrefixLists));
    let bent =
        |fault, verb: &str, own: &str, plural| faults.on(fault) && verb == own && call.ty.plural == plural;
    let allowed = |verb| {
        call.ty.allows(verb)
            && !bent(Fault::ListedVerbUnserved, verb, "patch", "leases")
            && !bent(Fault::ElementsUnserved, verb, "get", "secrets")
            || bent(Fault::UnlistedVerbServed, verb, "list", "tokenreviews")
    };
    match (method.as_str(), call.info.name.is_empty()) {
        ("GET", _) if watch && allowed("watch") => watch::handle(call),
        ("GET", true) if !watch && allowed("list") => list::handle(&call),
        ("GET", false) if !watch && allowed("get") => get::handle(&call),
        ("GET", true) if !allowed("get") && faults.on(Fault::QuestionsAnswerObjects) => {
            let review = json!({ "kind": call.ty.kind, "apiVersion": call.ty.api_version(), "metadata": {} });
            Ok(Answer::json(StatusCode::OK, &review))
        }
        ("OPTIONS", _) if faults.on(Fault::OptionsAnswersOk) => Ok(Answer::json(StatusCode::OK, &json!({}))),
        ("PUT", true) if allowed("create") && faults.on(Fault::PutOfCollectionCreates) => {
            create::handle(&call, body).await
        }
        ("POST", true) if allowed("create") => create::handle(&call, body).await,
        ("PUT", false) if allowed("update") => update::handle(&call, update::Part::Whole, body).await,
        ("PATCH", false) if allowed("patch") => patch_or_apply(&call, update::Part::Whole, body).await,
        ("DELETE", false) if allowed("delete") => delete::handle(&call, body).await,
        ("DELETE", true) if allowed("deletecollection") => delete::collection(&call, body).await,
        _ => Err(not_allowed()),
    }
}

fn asks_to_watch(call: &Call) -> bool {
    let named = call.query.get("watch").is_some() && call.faults().on(Fault::WatchWhateverTheValue);
    named || call.query.flag("watch")
}

async fn patch_or_apply(call: &Call, part: update::Part, body: &mut Incoming) -> Result<Answer, ApiError> {
    let applies = call.ty.patch_types.contains(&apply::MEDIA_TYPE);
    if applies && body::media_type(&call.headers) == apply::MEDIA_TYPE {
        apply::handle(call, part, body).await
    } else {
        patch::handle(call, part, body).await
    }
}

/// None when the subresource does not know the method.
async fn subresource(call: Call, method: &Method, body: &mut Incoming) -> Option<Result<Answer, ApiError>> {
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
    Some(match (call.info.subresource.as_str(), method.as_str()) {
        ("status", "GET") if call.ty.has_status => get::handle(&call),
        ("status", "PUT") if call.ty.has_status => update::handle(&call, update::Part::Status, body).await,
        ("status", "PATCH") if call.ty.has_status => patch_or_apply(&call, update::Part::Status, body).await,
        ("status", _) if call.ty.has_status => return None,
        ("scale", method) if call.ty.scale.is_some() => scale::handle(&call, method, body).await?,
        ("exec" | "attach" | "portforward", "GET" | "POST") if call.ty.is_core("pods") => {
            streams::handle(call, method)
        }
        ("exec" | "attach" | "portforward", _)
            if call.ty.is_core("pods") && call.faults().on(Fault::StreamsByAnyMethod) =>
        {
            streams::handle(call, method)
        }
        ("eviction", "POST") if call.ty.is_core("pods") => eviction::evict(&call, body).await,
        ("log", "GET") if call.ty.is_core("pods") => log::handle(call),
        ("proxy", _) if known => proxy::handle(call, method, body).await,
        ("binding", "POST") if call.ty.is_core("pods") => pods::bind(&call, body).await,
        ("finalize", "PUT") if call.ty.is_core("namespaces") => {
            update::handle(&call, update::Part::Finalize, body).await
        }
        _ if known => return None,
        _ => Err(ApiError::no_such_resource()),
    })
}
