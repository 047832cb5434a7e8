//! Admission: plugins that change and check a write between its body and the store.
//!
//! [`Chain`] has the plugins in the order of kube-apiserver. Endpoints build [`Attributes`] for a
//! request, and run the chain twice: `mutate` before defaults and validation, `validate` after
//! them.

mod certificates;
mod chain;
mod claims;
mod conditions;
mod default_class;
mod escalation;
mod limit_ranger;
pub(crate) mod namespace_lifecycle;
mod nodes;
mod pod_security;
mod policy;
pub(crate) mod priority;
mod record;
pub(crate) mod resource_quota;
mod resources;
mod rules;
mod runtime_class;
mod service_account;
mod tolerations;
mod variables;
mod volumes;
mod webhook;

use std::future;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use kubeproof_apimachinery::object::Object as _;
use kubeproof_apimachinery::request::ResourceInfo;
use kubeproof_apimachinery::status::ApiError;
use serde_json::Value;

use crate::authentication::User;
use crate::authorization::Rights;
use crate::http::metrics::AdmissionMetrics;
use crate::kubelet_client::KubeletClient;
use crate::registry::ResourceType;
use crate::registry::strategy::Context;

pub(crate) use self::chain::{Chain, Reinvocation};
pub(crate) use self::policy::type_check::type_checking;
pub(crate) use self::record::Record;

/// The operation of a request, as in the rules of webhooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
    /// A request to a subresource such as `exec` or `proxy`.
    Connect,
}

impl Operation {
    /// Returns the name in webhooks and metrics.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// The type of the object of a request: `apps/v1` and `Deployment`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) api_version: String,
    pub(crate) kind: String,
}

/// The request that admission checks.
#[derive(Clone, Copy)]
pub(crate) struct Attributes<'a> {
    pub(crate) operation: Operation,
    /// The update comes from PATCH, whose permission differs from that of PUT.
    pub(crate) is_patch: bool,
    pub(crate) ty: &'a ResourceType,
    /// The resource, subresource, namespace and name of the URL.
    pub(crate) info: &'a ResourceInfo,
    /// The type of the object, which differs from that of the resource for some subresources.
    pub(crate) kind: &'a Kind,
    /// The stored object. A create has none.
    pub(crate) old: Option<&'a Value>,
    /// The options of the request, for example `CreateOptions`. It is null for a connection.
    pub(crate) options: &'a Value,
    pub(crate) dry_run: bool,
    pub(crate) user: &'a User,
    pub(crate) rights: Rights<'a>,
    pub(crate) context: Context<'a>,
    pub(crate) kubelet: Option<&'a Arc<dyn KubeletClient>>,
    pub(crate) metrics: &'a AdmissionMetrics,
    /// Receives warnings and audit annotations.
    pub(crate) record: &'a Record,
    /// Which plugins run again after later ones changed the object.
    pub(crate) reinvocation: &'a Reinvocation,
}

impl Attributes<'_> {
    /// Returns the name of the object. A create without a generated name has an empty one.
    pub(crate) fn name<'v>(&'v self, object: &'v Value) -> &'v str {
        if self.info.name.is_empty() { object.meta("name") } else { &self.info.name }
    }

    /// Returns whether the request is for a core resource itself, not for a subresource.
    pub(crate) fn is_core(&self, plural: &str) -> bool {
        self.ty.is_core(plural) && self.info.subresource.is_empty()
    }

    /// Builds 403 `Forbidden` for the resource of the request.
    pub(crate) fn forbidden(&self, object: &Value, why: &str) -> ApiError {
        ApiError::forbidden(self.ty.resource(), self.name(object), why)
    }
}

/// The decision of a plugin.
pub(crate) type Decision<'a> = BoxFuture<'a, Result<(), ApiError>>;

/// Returns a decision that needs no waiting.
pub(crate) fn decided<'a>(result: Result<(), ApiError>) -> Decision<'a> {
    Box::pin(future::ready(result))
}

/// An admission plugin.
///
/// `object` is null for a deletion, and the options for a connection, such as `PodExecOptions`.
pub(crate) trait Plugin: Send + Sync {
    /// Returns the name of the plugin in the flags of kube-apiserver.
    fn name(&self) -> &'static str;

    /// Returns whether the plugin must see the request. It must be fast and may say yes too often.
    fn handles(&self, request: &Attributes<'_>) -> bool;

    /// Returns whether `mutate` can change objects.
    fn mutates(&self) -> bool {
        false
    }

    /// Changes the object or rejects the request, before defaults and validation.
    fn mutate<'a>(&'a self, _request: Attributes<'a>, _object: &'a mut Value) -> Decision<'a> {
        decided(Ok(()))
    }

    /// Rejects the request. The object is complete and valid.
    fn validate<'a>(&'a self, _request: Attributes<'a>, _object: &'a Value) -> Decision<'a> {
        decided(Ok(()))
    }
}
