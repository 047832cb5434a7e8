//! `ValidatingAdmissionPolicy` and `MutatingAdmissionPolicy`: expressions that check and change
//! requests, without a server of their own.
//!
//! Policies and bindings take effect with the next request, as webhooks do.

mod binding;
mod definition;
mod mutating;
pub(crate) mod type_check;
mod validating;

use std::sync::Arc;

use kubeproof_apimachinery::schema::rules::expression::Roots;
use kubeproof_apimachinery::status::ApiError;
use serde_json::Value;

use self::binding::Binding;
use self::definition::Policy;
use super::rules::{self, Match};
use super::{Attributes, variables};
use crate::registry::follower::Follower;

pub(super) use self::mutating::MutatingPolicies;
pub(super) use self::validating::ValidatingPolicies;

/// The reviews, which the server itself may need, are exempt from policies.
const EXEMPT_GROUPS: [&str; 2] = ["authentication.k8s.io", "authorization.k8s.io"];

/// The policies and bindings of one kind.
struct Policies {
    policies: Follower<Arc<Policy>>,
    bindings: Follower<Arc<Binding>>,
}

/// A policy that applies to a request, with one of its bindings and one of its parameters.
struct Invocation {
    policy: Arc<Policy>,
    binding: Arc<Binding>,
    found: Match,
    /// The parameter, or null without one.
    param: Value,
}

/// A mistake in the configuration of a policy, which its failure policy treats as a rejection.
struct Misconfigured {
    policy: Arc<Policy>,
    binding: Option<Arc<Binding>>,
    why: String,
}

impl Policies {
    fn new(policies: &'static str, bindings: &'static str) -> Self {
        Self {
            policies: Follower::new(policies, definition::parse),
            bindings: Follower::new(bindings, binding::parse),
        }
    }

    fn handles(&self, request: &Attributes<'_>) -> bool {
        let store = request.context.store;
        !rules::is_exempt(request)
            && !EXEMPT_GROUPS.contains(&request.ty.group.as_str())
            && self.bindings.read(store, |all| !all.is_empty())
            && self.policies.read(store, |all| !all.is_empty())
    }

    /// Returns the policies for a request in the order of their names, and the mistakes in their
    /// configuration.
    fn find(
        &self,
        request: &Attributes<'_>,
        object: &Value,
    ) -> (Vec<Invocation>, Vec<Misconfigured>) {
        let store = request.context.store;
        let policies: Vec<_> = self.policies.read(store, |all| all.values().cloned().collect());
        let bindings: Vec<_> = self.bindings.read(store, |all| all.values().cloned().collect());
        let (mut invocations, mut mistakes) = (Vec::new(), Vec::new());
        for policy in policies {
            let own = bindings.iter().filter(|binding| binding.policy == policy.name);
            let own: Vec<_> = own.collect();
            if own.is_empty() {
                continue;
            }
            match policy.constraints.matches(request, object) {
                Ok(None) => {}
                Ok(Some(found)) => {
                    for binding in own {
                        match invoke(request, object, &policy, binding, &found) {
                            Ok(more) => invocations.extend(more),
                            Err(why) => mistakes.push(Misconfigured {
                                policy: Arc::clone(&policy),
                                binding: Some(Arc::clone(binding)),
                                why: format!("failed to configure binding: {why}"),
                            }),
                        }
                    }
                }
                Err(error) => mistakes.push(Misconfigured {
                    policy: Arc::clone(&policy),
                    binding: None,
                    why: format!("failed to configure policy: {}", error.message),
                }),
            }
        }
        mistakes.retain(|mistake| !mistake.policy.ignores_failures);
        (invocations, mistakes)
    }
}

/// Returns the invocations of a policy by a binding, one for each parameter.
fn invoke(
    request: &Attributes<'_>,
    object: &Value,
    policy: &Arc<Policy>,
    binding: &Arc<Binding>,
    found: &Match,
) -> Result<Vec<Invocation>, String> {
    let matches = binding.constraints.matches(request, object);
    if matches.map_err(|error| error.message)?.is_none() {
        return Ok(Vec::new());
    }
    let params = binding.params(policy.param_kind.as_ref(), request, object)?;
    let invocation = |param| Invocation {
        policy: Arc::clone(policy),
        binding: Arc::clone(binding),
        found: found.clone(),
        param,
    };
    Ok(params.into_iter().map(invocation).collect())
}

impl Invocation {
    /// Returns the values of the variables.
    fn roots(&self, request: &Attributes<'_>, shown: &Value) -> Roots {
        let old = request.old.map(|old| self.found.shown(request, old));
        let mut roots = variables::roots(request, shown, old.as_deref());
        roots.set("namespaceObject", &variables::namespace_object(request, shown));
        if self.policy.param_kind.is_some() {
            roots.set("params", &self.param);
        }
        roots
    }
}

/// Returns the error for a request that a policy rejects: 403 with another reason and code.
fn rejection(
    request: &Attributes<'_>,
    object: &Value,
    message: &str,
    (code, reason): (u16, &'static str),
) -> ApiError {
    let mut status = request.forbidden(object, message).to_status();
    status["code"] = code.into();
    status["reason"] = reason.into();
    ApiError::of_status(status)
}
