//! Dry runs that store something, or that miss what a real request checks.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::{Method, StatusCode};
use serde_json::Value;

use crate::behaviours::Fault;
use crate::behaviours::support::deletions::{edit_delete_options, is_delete};
use crate::behaviours::support::objects::{is_deleting, meta, remove, remove_meta};
use crate::behaviours::support::requests::{STRATEGIC_PATCH, is_apply, is_create, is_update};
use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, Next, around, requests, uncompressed};

const DRY_RUN: &str = "dryRun";

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::DryRunDeletionsIgnorePreconditions => requests(|request| {
            if request.method == Method::DELETE && request.is_dry_run() {
                request.edit_json(|options| drop(remove(options, "preconditions")));
            }
        }),
        Fault::DryRunMarksHeldObjects => around(|mut request, next| {
            Box::pin(async move {
                if is_delete(&request)
                    && next.server.read(&request.path).await.is_some_and(|object| is_held(&object))
                {
                    edit_delete_options(&mut request, |options| drop(options.remove(DRY_RUN)));
                }
                next.send(request).await
            })
        }),
        Fault::DryRunFinalizes => around(|request, next| Box::pin(finalize(request, next))),
        Fault::DryRunWithoutNamespace => around(|request, next| {
            Box::pin(async move {
                let response = next.send(request.clone()).await;
                let tries = is_create(&request) && request.is_dry_run();
                match request.json() {
                    Some(mut object) if tries && response.status == StatusCode::NOT_FOUND => {
                        object["metadata"]["namespace"] = request.target().namespace.into();
                        Response::json(StatusCode::CREATED, &object)
                    }
                    _ => response,
                }
            })
        }),
        Fault::DryRunWithoutGeneratedName => around(|mut request, next| {
            Box::pin(async move {
                uncompressed(&mut request);
                let mut response = next.send(request.clone()).await;
                let sent = request.json().unwrap_or_default();
                let generates = meta(&sent, "name").is_empty()
                    && is_create(&request)
                    && request.is_dry_run()
                    && response.status == StatusCode::CREATED;
                if generates {
                    response.edit_value(|object| drop(remove_meta(object, "name")));
                }
                response
            })
        }),
        _ => return counted(fault).or_else(|| stored(fault)),
    })
}

/// Dry runs that create something beside their response.
fn counted(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::DryRunPutCreates => around(|mut request, next| {
            Box::pin(async move {
                let tries = request.method == Method::PUT && request.is_dry_run();
                if tries && next.server.read(&request.path).await.is_none() {
                    request.edit_query(|query| drop(query.remove(DRY_RUN)));
                }
                next.send(request).await
            })
        }),
        Fault::DryRunsUseQuota => Box::new(UsedQuota::default()),
        _ => return None,
    })
}

/// Counts the dry runs of creates by collection.
#[derive(Default)]
struct UsedQuota {
    tries: Mutex<HashMap<String, u64>>,
}

impl Middleware for UsedQuota {
    fn handle<'a>(&'a self, request: Request, next: Next<'a>) -> BoxFuture<'a, Response> {
        async move {
            let target = request.target();
            if !is_create(&request) || target.namespace.is_empty() {
                return next.send(request).await;
            }
            let tries = self.count(&request);
            let path = format!("/api/v1/namespaces/{}/resourcequotas", target.namespace);
            let quotas = next.server.read(&path).await.unwrap_or_default();
            let counter = format!("count/{}", target.resource);
            let is_full = quotas["items"].as_array().into_iter().flatten().any(|quota| {
                let hard = quota["spec"]["hard"][&counter].as_str();
                hard.and_then(|hard| hard.parse().ok()).is_some_and(|hard: u64| tries > hard)
            });
            if is_full {
                return Response::failure(StatusCode::FORBIDDEN, "Forbidden", "exceeded quota");
            }
            next.send(request).await
        }
        .boxed()
    }
}

impl UsedQuota {
    /// Returns the number of dry runs in the collection of a create, with one for the create.
    fn count(&self, request: &Request) -> u64 {
        let mut tries = self.tries.lock().unwrap_or_else(PoisonError::into_inner);
        let tries = tries.entry(request.path.clone()).or_default();
        *tries += u64::from(request.is_dry_run());
        *tries + u64::from(!request.is_dry_run())
    }
}

/// Dry runs that are stored.
fn stored(fault: Fault) -> Option<Box<dyn Middleware>> {
    let concerns: fn(&Request) -> bool = match fault {
        Fault::DryRunOfJsonPatchesPersists => {
            |request| request.media_type() == "application/json-patch+json"
        }
        Fault::DryRunOfStrategicPatchesPersists => {
            |request| request.media_type() == STRATEGIC_PATCH
        }
        Fault::DryRunOfDefinitionsPersists => {
            |request| is_create(request) && request.target().resource == "customresourcedefinitions"
        }
        Fault::DryRunOfBindingsPersists => {
            |request| is_create(request) && request.target().group == "rbac.authorization.k8s.io"
        }
        Fault::DryRunOfNamespacesPersists => {
            |request| is_create(request) && request.target().is_core("namespaces")
        }
        Fault::DryRunOfYamlPersists => {
            |request| !is_apply(request) && request.media_type().ends_with("yaml")
        }
        Fault::ForcedDryRunAppliesPersist => {
            |request| is_apply(request) && request.query().flag("force")
        }
        Fault::DryRunBinds => {
            |request| request.method == Method::POST && request.target().subresource == "binding"
        }
        Fault::StatusDryRunPersists => |request| writes(request, "status"),
        Fault::StatusApplyDryRunPersists => {
            |request| writes(request, "status") && is_apply(request)
        }
        Fault::ScaleDryRunPersists => |request| writes(request, "scale"),
        Fault::ApprovalDryRunPersists => |request| writes(request, "approval"),
        Fault::EphemeralContainerDryRunPersists => |request| writes(request, "ephemeralcontainers"),
        Fault::ResizeDryRunPersists => |request| writes(request, "resize"),
        Fault::DryRunPatchesOfPodsPersist => |request| {
            let target = request.target();
            request.method == Method::PATCH && target.is_object() && target.is_core("pods")
        },
        Fault::DryRunPutsOfLeasesPersist => {
            |request| request.method == Method::PUT && request.target().resource == "leases"
        }
        Fault::FinalizeDryRunPersists => |request| writes(request, "finalize"),
        Fault::DryRunValuesOfUpdatesUnchecked => {
            |request| is_update(request) && has_unknown_value(request)
        }
        Fault::DryRunValuesOfDeletionsUnchecked => {
            |request| request.method == Method::DELETE && has_unknown_value(request)
        }
        _ => return deletions(fault),
    };
    Some(persisting(concerns))
}

/// Dry runs of deletions of one resource that are carried out.
fn deletions(fault: Fault) -> Option<Box<dyn Middleware>> {
    let resource = match fault {
        Fault::DryRunDeletionsOfPodsPersist => "pods",
        Fault::DryRunDeletionsOfNamespacesPersist => "namespaces",
        Fault::DryRunDeletionsOfDefinitionsPersist => "customresourcedefinitions",
        _ => return None,
    };
    Some(requests(move |request| {
        if is_delete(request) && request.target().resource == resource {
            edit_delete_options(request, |options| drop(options.remove(DRY_RUN)));
        }
    }))
}

/// Removes the dry run from some requests.
fn persisting(concerns: fn(&Request) -> bool) -> Box<dyn Middleware> {
    requests(move |request| {
        if concerns(request) {
            request.edit_query(|query| drop(query.remove(DRY_RUN)));
        }
    })
}

fn writes(request: &Request, subresource: &str) -> bool {
    is_update(request) && request.target().subresource == subresource
}

fn has_unknown_value(request: &Request) -> bool {
    request.query().all(DRY_RUN).any(|value| !matches!(value, "" | "All"))
}

/// Stores dry runs that remove the last finalizer of a terminating object.
async fn finalize(mut request: Request, next: Next<'_>) -> Response {
    if !is_update(&request) || !request.target().is_object() || !request.is_dry_run() {
        return next.send(request).await;
    }
    uncompressed(&mut request);
    let before = next.server.read(&request.path).await.unwrap_or_default();
    let response = next.send(request.clone()).await;
    let after = response.value().unwrap_or_default();
    let finishes = is_deleting(&before) && is_held(&before) && !is_held(&after);
    if response.status == StatusCode::OK && finishes {
        request.edit_query(|query| drop(query.remove(DRY_RUN)));
        next.send(request).await;
    }
    response
}

fn is_held(object: &Value) -> bool {
    object["metadata"]["finalizers"].as_array().is_some_and(|held| !held.is_empty())
}
