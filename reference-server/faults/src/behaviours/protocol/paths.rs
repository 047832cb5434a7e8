//! Paths, methods and queries that are served in a wrong way.

use http::header::{self, HeaderValue};
use http::{Method, StatusCode};
use kubeproof_apimachinery::request::ResourceInfo;
use serde_json::{Value, json};

use crate::behaviours::Fault;
use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, Next, around, requests};

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::ListIgnoresNamespace => requests(|request| {
            let target = request.target();
            if request.method == Method::GET && target.is_collection() {
                request.path = ResourceInfo { namespace: String::new(), ..target }.collection();
            }
        }),
        Fault::AllNamespacesIsDefault => around(|mut request, next| {
            Box::pin(async move {
                let target = request.target();
                let all = target.is_collection() && target.namespace.is_empty();
                if all && request.method == Method::GET && is_namespaced(&target, next).await {
                    request.path =
                        ResourceInfo { namespace: "default".to_owned(), ..target }.collection();
                }
                next.send(request).await
            })
        }),
        Fault::EncodedColonsNotDecoded => around(|request, next| {
            Box::pin(async move {
                if request.path.to_ascii_uppercase().contains("%3A") {
                    let message = "the server could not find the requested resource";
                    return Response::failure(StatusCode::NOT_FOUND, "NotFound", message);
                }
                next.send(request).await
            })
        }),
        Fault::NamesTrimmed => requests(|request| {
            let segments = request.path.split('/').map(trimmed);
            request.path = segments.collect::<Vec<_>>().join("/");
        }),
        Fault::MethodNotAllowedAsNotFound => around(|request, next| {
            Box::pin(async move {
                let response = next.send(request).await;
                if response.status != StatusCode::METHOD_NOT_ALLOWED {
                    return response;
                }
                let message = "the server could not find the requested resource";
                Response::failure(StatusCode::NOT_FOUND, "NotFound", message)
            })
        }),
        Fault::YamlByDefault => requests(|request| {
            if request.target().is_resource() && !request.headers.contains_key(header::ACCEPT) {
                let yaml = HeaderValue::from_static("application/yaml");
                request.headers.insert(header::ACCEPT, yaml);
            }
        }),
        Fault::ListedVerbUnserved => unserved(|request| {
            request.method == Method::PATCH && request.target().resource == "leases"
        }),
        Fault::ElementsUnserved => unserved(|request| {
            let target = request.target();
            request.method == Method::GET && target.is_core("secrets") && target.is_object()
        }),
        _ => return lengths(fault).or_else(|| methods(fault)),
    })
}

/// Faults in the length of requests.
fn lengths(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::LongQueriesRejected => around(|request, next| {
            Box::pin(async move {
                if request.raw_query.len() > 2000 {
                    return Response::text(StatusCode::URI_TOO_LONG, "414 URI Too Long");
                }
                next.send(request).await
            })
        }),
        _ => return None,
    })
}

/// Faults in the methods that a path serves.
fn methods(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::UnlistedVerbServed => around(|request, next| {
            Box::pin(async move {
                let target = request.target();
                let lists = request.method == Method::GET && target.is_collection();
                if lists && target.resource == "tokenreviews" {
                    return Response::json(
                        StatusCode::OK,
                        &json!({
                            "kind": "TokenReviewList", "apiVersion": target.api_version(),
                            "metadata": { "resourceVersion": "1" }, "items": [],
                        }),
                    );
                }
                next.send(request).await
            })
        }),
        Fault::ReviewsReturnObjects => around(|request, next| {
            Box::pin(async move {
                let response = next.send(request.clone()).await;
                let target = request.target();
                let lists = request.method == Method::GET && target.is_collection();
                if !lists || response.status != StatusCode::METHOD_NOT_ALLOWED {
                    return response;
                }
                let Some(resource) = described(&target, next).await else { return response };
                let (kind, version) = (&resource["kind"], target.api_version());
                let review = json!({ "kind": kind, "apiVersion": version, "metadata": {} });
                Response::json(StatusCode::OK, &review)
            })
        }),
        Fault::OptionsReturnsOk => around(|request, next| {
            Box::pin(async move {
                if request.method == Method::OPTIONS {
                    return Response::json(StatusCode::OK, &json!({}));
                }
                next.send(request).await
            })
        }),
        Fault::PutOfCollectionCreates => requests(|request| {
            if request.method == Method::PUT && request.target().is_collection() {
                request.method = Method::POST;
            }
        }),
        Fault::StreamsByAnyMethod => requests(|request| {
            let subresource = request.target().subresource;
            let streams = ["exec", "attach", "portforward"].contains(&subresource.as_str());
            if streams && ![Method::GET, Method::POST].contains(&request.method) {
                request.method = Method::POST;
            }
        }),
        _ => return watch_queries(fault),
    })
}

fn watch_queries(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::WatchWhateverTheValue => requests(|request| {
            if request.query().get("watch").is_some() {
                request.edit_query(|query| query.set("watch", "true"));
            }
        }),
        Fault::WatchTrueOnly => requests(|request| {
            if request.query().get("watch").is_some_and(|value| value != "true") {
                list_instead(request);
            }
        }),
        Fault::WatchReturnsList => requests(|request| {
            if request.is_watch() {
                list_instead(request);
            }
        }),
        Fault::WatchPrefixLists => requests(|request| {
            if request.target().legacy_watch {
                request.path = request.path.replacen("/watch/", "/", 1);
                request.edit_query(|query| {
                    query.remove("watch");
                });
            }
        }),
        _ => return None,
    })
}

/// Removes the parameters of a watch, so that the server returns a list.
fn list_instead(request: &mut Request) {
    request.edit_query(|query| {
        for parameter in ["watch", "sendInitialEvents", "resourceVersionMatch"] {
            query.remove(parameter);
        }
    });
}

/// Rejects requests as if their method were not served.
fn unserved(of: fn(&Request) -> bool) -> Box<dyn Middleware> {
    around(move |request, next| {
        Box::pin(async move {
            if of(&request) {
                let message = "the server does not allow this method on the requested resource";
                let status = StatusCode::METHOD_NOT_ALLOWED;
                return Response::failure(status, "MethodNotAllowed", message);
            }
            next.send(request).await
        })
    })
}

fn trimmed(segment: &str) -> &str {
    let mut rest = segment;
    while let Some(shorter) = rest.strip_prefix("%20").or_else(|| rest.strip_suffix("%20")) {
        rest = shorter;
    }
    rest
}

async fn is_namespaced(target: &ResourceInfo, next: Next<'_>) -> bool {
    described(target, next).await.is_some_and(|resource| resource["namespaced"] == true)
}

/// What discovery says about a resource.
async fn described(target: &ResourceInfo, next: Next<'_>) -> Option<Value> {
    let root = if target.group.is_empty() { "/api" } else { "/apis" };
    let document = next.server.read(&format!("{root}/{}", target.api_version())).await?;
    let resources = document["resources"].as_array()?;
    resources.iter().find(|resource| resource["name"] == target.resource.as_str()).cloned()
}
