//! Resource quotas: limits for the objects of a namespace and for what they use.
//!
//! The plugin adds the usage of a request to the status of each quota that counts it, before the
//! object is stored. Each addition replaces the version that it was computed from, so concurrent
//! requests cannot exceed a limit together. A failed request returns its usage.

mod check;
mod pending;
mod scopes;
mod usage;

use std::collections::BTreeSet;
use std::sync::Arc;

use kubeproof_apimachinery::object::Object as _;
use kubeproof_apimachinery::schema::quantity::Quantity;
use kubeproof_apimachinery::status::ApiError;
use kubeproof_storage::{Key, Stored, Write, WriteError};
use serde_json::{Value, json};

pub(crate) use self::pending::{Charges, PendingRequests, release};

use self::check::Request;
use self::usage::Evaluator;
use super::resources::{self, ResourceList};
use super::{Attributes, Decision, Operation, Plugin};
use crate::registry::strategy::Context;
use crate::registry::{ResourceType, encode};

/// The resource of quotas, which is also their table.
const QUOTAS: &str = "resourcequotas";

/// The resources that no quota counts.
const IGNORED: [(&str, &str); 4] =
    [("", "events"), ("events.k8s.io", "events"), ("", "bindings"), ("", "namespaces")];

/// Rejects requests that exceed a quota.
pub(super) struct ResourceQuota {
    pub(super) pending: Arc<PendingRequests>,
}

impl Plugin for ResourceQuota {
    fn name(&self) -> &'static str {
        "ResourceQuota"
    }

    fn handles(&self, request: &Attributes<'_>) -> bool {
        let ty = request.ty;
        let is_ignored = IGNORED.contains(&(ty.group.as_str(), ty.plural.as_str()));
        let evaluator = Evaluator::of(&ty.group, &ty.plural);
        let subresource = request.info.subresource.as_str();
        let is_resize = ty.is_core("pods") && subresource == "resize";
        let is_handled = match request.operation {
            Operation::Create => subresource.is_empty(),
            Operation::Update => {
                is_resize || (subresource.is_empty() && evaluator.handles_updates())
            }
            Operation::Delete | Operation::Connect => false,
        };
        ty.namespaced && ty.allows("get") && !is_ignored && is_handled
    }

    fn validate<'a>(&'a self, request: Attributes<'a>, object: &'a Value) -> Decision<'a> {
        Box::pin(self.charge(request, object))
    }
}

impl ResourceQuota {
    /// Adds the usage of a request to all quotas of its namespace, or to none.
    async fn charge(&self, request: Attributes<'_>, new: &Value) -> Result<(), ApiError> {
        let context = request.context;
        // The request runs again because its first write failed.
        release(context, request.record).await;
        let namespace = request.info.namespace.as_str();
        let (quotas, _) = context.store.snapshot(QUOTAS, Some(namespace));
        if quotas.is_empty() {
            return Ok(());
        }
        let Some(ty) = context.core(QUOTAS) else { return Ok(()) };
        request.record.charges().begin(&self.pending, namespace);
        let evaluator = Evaluator::of(&request.ty.group, &request.ty.plural);
        let asked = Request { evaluator, new, old: request.old };
        for quota in quotas {
            let added = charge_one(context, &ty, &quota.key, asked, request.dry_run).await;
            match added {
                Ok(added) if request.dry_run || added.is_empty() => {}
                Ok(added) => request.record.charges().add(quota.key.clone(), added),
                Err(why) => {
                    release(context, request.record).await;
                    return Err(match why {
                        ChargeError::Exceeded(why) => request.forbidden(new, &why),
                        ChargeError::Storage(error) => ApiError::internal(error.to_string()),
                    });
                }
            }
        }
        Ok(())
    }
}

/// Why a request is not charged.
enum ChargeError {
    /// It would exceed the quota.
    Exceeded(String),
    Storage(WriteError),
}

/// Adds the usage of a request to one quota. Returns what it added.
async fn charge_one(
    context: Context<'_>,
    ty: &ResourceType,
    key: &Key,
    asked: Request<'_>,
    dry_run: bool,
) -> Result<ResourceList, ChargeError> {
    loop {
        let Some(stored) = context.store.get(&ty.table, key) else {
            return Ok(ResourceList::new());
        };
        let mut quota = ty.load(&stored);
        let added = check::added(&quota, asked).map_err(ChargeError::Exceeded)?;
        if dry_run || added.is_empty() {
            return Ok(added);
        }
        let mut used = resources::parse(&quota["status"]["used"]);
        resources::add(&mut used, &added);
        quota["status"]["used"] = resources::to_value(&used);
        if replace(context, ty, &stored, &quota).await.map_err(ChargeError::Storage)? {
            return Ok(added);
        }
    }
}

/// Removes usage from a quota.
async fn return_usage(
    context: Context<'_>,
    key: &Key,
    returned: &ResourceList,
) -> Result<(), WriteError> {
    let Some(ty) = context.core(QUOTAS) else { return Ok(()) };
    loop {
        let Some(stored) = context.store.get(&ty.table, key) else { return Ok(()) };
        let mut quota = ty.load(&stored);
        let mut used = resources::parse(&quota["status"]["used"]);
        for (name, amount) in returned {
            if let Some(sum) = used.get_mut(name) {
                *sum = sum.minus(*amount);
            }
        }
        quota["status"]["used"] = resources::to_value(&used);
        if replace(context, &ty, &stored, &quota).await? {
            return Ok(());
        }
    }
}

/// Replaces a version of a quota if it is the newest one.
async fn replace(
    context: Context<'_>,
    ty: &ResourceType,
    stored: &Stored,
    quota: &Value,
) -> Result<bool, WriteError> {
    let draft = encode::draft(ty, quota);
    let change = |write: &mut Write<'_>| {
        let current = write.get(&ty.table, &stored.key);
        if current.is_some_and(|current| current.revision == stored.revision) {
            write.put(&ty.table, &draft);
        }
    };
    let ((), written) = context.store.write(change).await?;
    Ok(written.is_some())
}

/// Computes the status of a quota from the objects of its namespace.
fn status(context: Context<'_>, quota: &Value) -> Value {
    let hard = resources::parse(&quota["spec"]["hard"]);
    let mut used = resources::parse(&quota["status"]["used"]);
    used.retain(|name, _| hard.contains_key(name));
    let catalogue = context.registry.current();
    let mut tables = BTreeSet::new();
    for ty in catalogue.types() {
        let is_counted = ty.namespaced && ty.allows("get") && tables.insert(&ty.table);
        let evaluator = Evaluator::of(&ty.group, &ty.plural);
        let tracked: Vec<&String> = hard.keys().filter(|name| evaluator.tracks(name)).collect();
        if !is_counted || tracked.is_empty() {
            continue;
        }
        let zero = |name: &String| (name.clone(), Quantity::whole(0));
        let mut sum: ResourceList = tracked.into_iter().map(zero).collect();
        let (objects, _) = context.store.snapshot(&ty.table, Some(quota.meta("namespace")));
        for object in objects {
            // Objects that are only counted need no parsing.
            let is_counted = matches!(evaluator, Evaluator::Count { .. });
            let object = if is_counted { Value::Null } else { ty.load(&object) };
            if scopes::matches(quota, evaluator, &object) {
                let mut usage = evaluator.usage(&object);
                usage.retain(|name, _| sum.contains_key(name));
                resources::add(&mut sum, &usage);
            }
        }
        used.extend(sum);
    }
    json!({"hard": resources::to_value(&hard), "used": resources::to_value(&used)})
}

/// Updates the status of a quota from the objects of its namespace, unless a request is about to
/// store an object there. Returns whether the status is up to date.
pub(crate) async fn recalculate(
    context: Context<'_>,
    key: &Key,
    pending: &PendingRequests,
) -> bool {
    let Some(ty) = context.core(QUOTAS) else { return true };
    let Some(stored) = context.store.get(&ty.table, key) else { return true };
    // A request that starts now replaces the version that was just read.
    if pending.has(&key.namespace) {
        return false;
    }
    let mut quota = ty.load(&stored);
    let status = status(context, &quota);
    if quota["status"] == status {
        return true;
    }
    let has_usage = quota["status"]["used"].is_object();
    if context.store.is_shared() && has_usage && !pending.has_settled(key, stored.revision) {
        return false;
    }
    quota["status"] = status;
    // A storage that failed rejects every further write, so another attempt is useless.
    replace(context, &ty, &stored, &quota).await.unwrap_or(true)
}
