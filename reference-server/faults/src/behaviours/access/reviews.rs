//! Reviews with wrong results.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::behaviours::Fault;
use crate::behaviours::support::identity::{access, as_admin, user_info};
use crate::behaviours::support::objects::remove;
use crate::behaviours::support::requests::rewrite;
use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, Next, around, documents, only, requests};

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::AccessReviewAllowsAll => only(
            |request| request.target().resource.ends_with("accessreviews"),
            documents(|_, review| {
                if review["status"]["allowed"].is_boolean() {
                    review["status"] = json!({ "allowed": true });
                }
            }),
        ),
        Fault::AccessReviewAllowsPaths => only(
            |request| request.target().resource.ends_with("accessreviews"),
            documents(|_, review| {
                if review["spec"]["nonResourceAttributes"].is_object()
                    && review["status"]["allowed"].is_boolean()
                {
                    review["status"]["allowed"] = true.into();
                }
            }),
        ),
        Fault::AccessReviewIgnoresSubresources => access_reviews(|spec| {
            remove(&mut spec["resourceAttributes"], "subresource");
        }),
        Fault::AccessReviewIgnoresNames => access_reviews(|spec| {
            remove(&mut spec["resourceAttributes"], "name");
        }),
        Fault::AccessReviewIgnoresGroups => access_reviews(|spec| drop(remove(spec, "groups"))),
        Fault::AccessReviewsLoseTheirSpec => only(
            |request| request.target().resource.ends_with("accessreviews"),
            documents(|_, review| {
                if review["status"]["allowed"].is_boolean() {
                    review["spec"] = json!({});
                }
            }),
        ),
        Fault::RulesReviewWithoutNames => rules_reviews(|status| {
            for rule in status["resourceRules"].as_array_mut().into_iter().flatten() {
                remove(rule, "resourceNames");
            }
        }),
        Fault::RulesReviewWithoutPaths => rules_reviews(|status| {
            status["nonResourceRules"] = json!([]);
        }),
        Fault::SelfReviewOfAdmin => status_for(&["selfsubjectreviews"], Status::Admin),
        Fault::RulesReviewOfAdmin => status_for(&["selfsubjectrulesreviews"], Status::Admin),
        Fault::AccessReviewOfTheAsker => {
            status_for(&["subjectaccessreviews", "localsubjectaccessreviews"], Status::Access)
        }
        Fault::TokenReviewKnowsEverybody => status_for(&["tokenreviews"], Status::Token),
        Fault::LocalReviewOfAnyNamespace => {
            around(|request, next| Box::pin(local_review_of_any_namespace(request, next)))
        }
        Fault::RulesReviewNeedsNoNamespace => {
            around(|request, next| Box::pin(rules_review_needs_no_namespace(request, next)))
        }
        _ => return None,
    })
}

/// Edits the spec of each access review.
fn access_reviews(edit: impl Fn(&mut Value) + Send + Sync + 'static) -> Box<dyn Middleware> {
    requests(move |request| {
        if request.method == Method::POST && request.target().resource.ends_with("accessreviews") {
            rewrite(request, |review| edit(&mut review["spec"]));
        }
    })
}

/// Edits the status of each review of rules.
fn rules_reviews(edit: impl Fn(&mut Value) + Send + Sync + 'static) -> Box<dyn Middleware> {
    only(
        |request| request.target().resource == "selfsubjectrulesreviews",
        documents(move |_, review| {
            if review["status"]["resourceRules"].is_array() {
                edit(&mut review["status"]);
            }
        }),
    )
}

/// The status that replaces that of a review.
#[derive(Clone, Copy)]
enum Status {
    /// The status of the same review by the administrator.
    Admin,
    /// The permissions of the client, instead of those of the user of the review.
    Access,
    /// The client itself, for a token that is unknown.
    Token,
}

/// Replaces the status of successful reviews of some resources.
fn status_for(resources: &'static [&'static str], wanted: Status) -> Box<dyn Middleware> {
    around(move |request, next| {
        Box::pin(async move {
            let mut response = next.send(request.clone()).await;
            let review = response.value().filter(|_| {
                response.status == StatusCode::CREATED
                    && resources.contains(&&*request.target().resource)
            });
            if let Some(review) = review
                && let Some(status) = status(&request, &review, next, wanted).await
            {
                response.edit_value(|review| review["status"] = status);
            }
            response
        })
    })
}

async fn status(
    request: &Request,
    review: &Value,
    next: Next<'_>,
    wanted: Status,
) -> Option<Value> {
    match wanted {
        Status::Admin => {
            let mut review = next.send(as_admin(request, next)).await.value()?;
            Some(review["status"].take())
        }
        Status::Access => {
            let mut spec = request.json()?["spec"].take();
            spec.as_object_mut()?.retain(|name, _| name.ends_with("Attributes"));
            Some(json!({ "allowed": access(request, next, &spec).await? }))
        }
        Status::Token if review["status"]["authenticated"] == true => None,
        Status::Token => {
            Some(json!({ "authenticated": true, "user": user_info(request, next).await? }))
        }
    }
}

/// Reviews access in another namespace as if no namespace were given in the path.
async fn local_review_of_any_namespace(request: Request, next: Next<'_>) -> Response {
    let response = next.send(request.clone()).await;
    let target = request.target();
    let rejected = response.status == StatusCode::UNPROCESSABLE_ENTITY;
    let Some(mut review) =
        request.json().filter(|_| rejected && target.resource == "localsubjectaccessreviews")
    else {
        return response;
    };
    let elsewhere = json!({
        "apiVersion": target.api_version(), "kind": "SubjectAccessReview", "spec": review["spec"],
    });
    let path = format!("/apis/{}/subjectaccessreviews", target.api_version());
    let reviewed =
        next.server.as_admin(Method::POST, &path, Some(("application/json", &elsewhere))).await;
    match reviewed.value() {
        Some(mut result) if reviewed.status == StatusCode::CREATED => {
            review["status"] = result["status"].take();
            Response::json(StatusCode::CREATED, &review)
        }
        _ => response,
    }
}

/// Reviews the rules in the namespace `default` if the review names none.
async fn rules_review_needs_no_namespace(mut request: Request, next: Next<'_>) -> Response {
    let response = next.send(request.clone()).await;
    let rules = request.target().resource == "selfsubjectrulesreviews";
    if !rules || response.status != StatusCode::BAD_REQUEST {
        return response;
    }
    let is_missing =
        |review: &Value| review["spec"]["namespace"].as_str().unwrap_or_default().is_empty();
    let Some(mut review) = request.json().filter(is_missing) else { return response };
    let spec = review["spec"].take();
    review["spec"] = json!({ "namespace": "default" });
    request.set_json(&review);
    let mut response = next.send(request).await;
    response.edit_value(|review| {
        if review["kind"] == "SelfSubjectRulesReview" {
            review["spec"] = spec;
        }
    });
    response
}
