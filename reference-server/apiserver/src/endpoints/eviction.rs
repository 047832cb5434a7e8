//! Eviction: a deletion of a pod that its disruption budget must permit.

use http::StatusCode;
use hyper::body::Incoming;
use serde_json::{Map, Value, json};

use super::admit::Admission;
use super::decode::{Decoded, decode_body};
use super::{Call, create};
use crate::endpoints::commit::{Commit, commit};
use crate::endpoints::lifecycle::{self, DeleteOptions};
use crate::endpoints::present;
use crate::http::negotiate::Target;
use crate::http::query::WriteOptions;
use crate::http::respond::ApiResponse;
use crate::registry::Lookup;
use kubeproof_apimachinery::object::Object;
use kubeproof_apimachinery::request::Query;
use kubeproof_apimachinery::schema::FieldError;
use kubeproof_apimachinery::selector::LabelSelector;
use kubeproof_apimachinery::status::{ApiError, Subject};

/// The API versions of an eviction.
const VERSIONS: [&str; 2] = ["policy/v1", "policy/v1beta1"];
/// The seconds of `Retry-After` if a budget has no status yet.
const RETRY_AFTER: u32 = 10;

/// Handles POST to `pods/eviction`.
pub(super) async fn evict(call: &Call, body: &mut Incoming) -> Result<ApiResponse, ApiError> {
    let representation = call.accept(Target::Document)?;
    let options = WriteOptions::parse(&call.query, "CreateOptions")?;
    let (dry_run, validation) = (options.dry_run, call.validation(options.validation));
    let bytes = call.json_body(body).await?;
    let Decoded { object: mut eviction, warnings } =
        decode_body(&VERSIONS, "Eviction", &bytes, validation)?;
    create::place(call, &mut eviction)?;
    deletion(call, &eviction, dry_run)?;
    let admission = Admission::create(call, dry_run);
    admission.admit(&mut eviction, None).await?;
    let options = deletion(call, &eviction, dry_run)?;
    let options = DeleteOptions { dry_run: dry_run || options.dry_run, ..options };
    let key = call.key();
    let stored = call.api.store.get(&call.ty.table, &key).ok_or_else(|| call.not_found())?;
    check_budgets(call, &call.ty.load(&stored), options.dry_run).await?;
    lifecycle::delete(&call.api, &call.ty, &key, &options).await?;
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": Map::new(), "status": "Success",
        "code": 201,
    });
    Ok(present::document(representation, StatusCode::CREATED, &status).warnings(&warnings))
}

/// Returns the options of the deletion in an eviction of this pod.
fn deletion(call: &Call, eviction: &Value, dry_run: bool) -> Result<DeleteOptions, ApiError> {
    if eviction.meta("name") != call.info.name {
        return Err(ApiError::bad_request("name in URL does not match name in Eviction object"));
    }
    let options = &eviction["deleteOptions"];
    let field = "ignoreStoreReadErrorWithClusterBreakingPotential";
    if options[field] == true {
        let why = "can not be set for pod eviction, try after removing the option";
        let place = format!("deleteOptions.{field}");
        let error = FieldError::invalid(place, &json!(true), why);
        let subject = Subject { group: "policy", word: "Eviction" };
        return Err(ApiError::invalid(subject, &call.info.name, &[error]));
    }
    let asked = options["dryRun"].as_array().map(Vec::as_slice).unwrap_or_default();
    if dry_run && !(asked.is_empty() || asked == ["All"]) {
        let asked: Vec<_> = asked.iter().filter_map(Value::as_str).collect();
        return Err(ApiError::unknown(format!(
            "Non-matching dry-run options in request and content: [All] and [{}]",
            asked.join(" ")
        )));
    }
    let Value::Object(mut options) = options.clone() else { return Ok(DeleteOptions::default()) };
    // The server ignores which type the options claim to have.
    options.remove("kind");
    DeleteOptions::parse(&Query::parse(""), Value::Object(options).to_string().as_bytes())
}

/// Takes a disruption from the budget that covers the pod, if there is one.
async fn check_budgets(call: &Call, pod: &Value, dry_run: bool) -> Result<(), ApiError> {
    let phase = pod.pointer("/status/phase").and_then(Value::as_str).unwrap_or_default();
    if matches!(phase, "Pending" | "Succeeded" | "Failed") || pod.is_deleting() {
        return Ok(());
    }
    let Lookup::Found(ty) =
        call.api.registry.current().find("policy", "v1", "poddisruptionbudgets")
    else {
        return Ok(());
    };
    loop {
        let (budgets, _) = call.api.store.snapshot(&ty.table, call.scope());
        let mut budgets = budgets.iter().filter_map(|stored| {
            let budget = ty.load(stored);
            covers(&budget, pod).then_some((stored, budget))
        });
        let Some((stored, budget)) = budgets.next() else { return Ok(()) };
        if budgets.next().is_some() {
            return Err(ApiError::internal(
                "this pod has more than one PodDisruptionBudget, of which only one can be asked",
            ));
        }
        let spent = take_disruption(&budget)?;
        if dry_run {
            return Ok(());
        }
        match commit(&call.api, &ty, (stored, &budget), &spent, |_| true).await? {
            Commit::Stored(_) | Commit::Removed(_) => return Ok(()),
            Commit::Rejected(_) => {}
        }
    }
}

fn covers(budget: &Value, pod: &Value) -> bool {
    let selector = &budget["spec"]["selector"];
    let labels =
        pod.pointer("/metadata/labels").and_then(Value::as_object).cloned().unwrap_or_default();
    !selector.is_null()
        && LabelSelector::from_object(selector).is_ok_and(|selector| selector.matches(&labels))
}

/// Returns the budget with one disruption less.
fn take_disruption(budget: &Value) -> Result<Value, ApiError> {
    let number = |field: &str| budget["status"][field].as_i64().unwrap_or_default();
    let name = budget.meta("name");
    let reject = |why: String, retry_after| {
        let message = "Cannot evict pod as it would violate the pod's disruption budget.";
        Err(ApiError::disruption_budget(message, why, retry_after))
    };
    if number("observedGeneration") < budget.generation() {
        let why = format!("The disruption budget {name} is still being processed by the server.");
        return reject(why, Some(RETRY_AFTER));
    }
    if number("disruptionsAllowed") <= 0 {
        let (desired, current) = (number("desiredHealthy"), number("currentHealthy"));
        let why = format!(
            "The disruption budget {name} needs {desired} healthy pods and has {current} currently"
        );
        return reject(why, None);
    }
    let mut spent = budget.clone();
    spent["status"]["disruptionsAllowed"] = (number("disruptionsAllowed") - 1).into();
    Ok(spent)
}
