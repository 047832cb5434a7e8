//! An invalid object is rejected by each verb. The causes name the field, and nothing changes.

use kubeproof_cases::case::Capability;
use serde_json::Value;

use super::read_back::{same, stored};
use crate::exchange::Exchange;
use crate::explore::compare::{OF_WRITE, without};
use crate::explore::mistakes::Mistake;
use crate::explore::patch;
use crate::explore::prober::media_type;
use crate::explore::prober::{Halt, JSON, Prober, Reply};
use crate::explore::violation::Claim;

pub(super) async fn check(
    prober: &mut Prober<'_>,
    valid: &Value,
    (invalid, mistake): (&Value, &Mistake),
) -> Result<(), Halt> {
    let valid = prober.named(valid);
    let invalid = match mistake.at.as_str() {
        "/metadata/name" => invalid.clone(),
        _ => prober.named(invalid),
    };
    let strict = if mistake.is_strict { "fieldValidation=Strict" } else { "" };
    let collection = prober.collection.clone();
    for query in ["?dryRun=All&", "?"] {
        let target = format!("{collection}{query}{strict}");
        let target = target.trim_end_matches(['?', '&']);
        let reply = prober.send("POST", target, JSON, Some(&invalid)).await?;
        let what = if query.len() > 1 { "the dry run of a create" } else { "a create" };
        rejected(prober, &reply, (mistake, what))?;
        let got = prober.get().await?;
        if got.status != 404 {
            let words = prober.in_words(got.step);
            let message = format!("expected HTTP 404 after a rejected create, got {words}");
            return Err(prober.violation(got.step, message, Claim::Status(404)));
        }
    }
    if mistake.only_create {
        return Ok(());
    }
    let created = stored(prober, &valid).await?;
    let query = if strict.is_empty() { String::new() } else { format!("?{strict}") };
    let replaced = prober.put(&invalid, created.version(), &query).await?;
    rejected(prober, &replaced, (mistake, "a PUT"))?;
    if prober.has_verb("patch") {
        patches(prober, &created, (&invalid, mistake), strict).await?;
    }
    let got = prober.get().await?;
    prober.require(&got, "a GET")?;
    same(prober, &got, &created.body)
}

/// Sends the mistake in each kind of patch.
async fn patches(
    prober: &mut Prober<'_>,
    created: &Reply,
    (invalid, mistake): (&Value, &Mistake),
    strict: &str,
) -> Result<(), Halt> {
    let before = without(&created.body, &OF_WRITE);
    let Some(after) = transplanted(&before, invalid, mistake) else { return Ok(()) };
    let merge = patch::merge(&before, &after);
    let strategic =
        patch::strategic(prober.schema, &before, &after).filter(|_| !prober.schema.is_complete);
    let json_patch = patch::json_patch(&before, &after);
    let kinds = [
        (Capability::MergePatch, "application/merge-patch+json", merge),
        (Capability::StrategicMergePatch, "application/strategic-merge-patch+json", strategic),
        (Capability::JsonPatch, "application/json-patch+json", Some(json_patch)),
        (Capability::ServerSideApply, "application/apply-patch+yaml", Some(invalid.clone())),
    ];
    for (capability, media, patch) in kinds {
        let Some(patch) = patch.filter(|_| prober.offers(capability)) else { continue };
        let mut query = format!("?{strict}");
        let is_apply = capability == Capability::ServerSideApply;
        if is_apply {
            query.push_str("&fieldManager=kubeproof-explore&force=true");
        }
        let is_of_type = ["/kind", "/apiVersion"].contains(&mistake.at.as_str());
        let is_wide = mistake.rule == "an integer above 32 bits";
        let is_strategic = capability == Capability::StrategicMergePatch;
        if (is_strategic && is_of_type) || ((is_strategic || is_apply) && is_wide) {
            // kube-apiserver ignores the type in a strategic merge patch, and cuts integers in it
            // and in applied configurations.
            continue;
        }
        let is_merged = ["without a required field", "none of its forms", "too few items"];
        if is_apply && is_merged.contains(&mistake.rule) {
            // The object keeps the members of other managers.
            continue;
        }
        let query = query.replace("?&", "?");
        let reply = prober.patch(media, &patch, query.trim_end_matches('?')).await?;
        let what = format!("a patch of type {media}");
        rejected(prober, &reply, (mistake, &what))?;
    }
    Ok(())
}

/// Returns the stored object with the mistake.
fn transplanted(stored: &Value, invalid: &Value, mistake: &Mistake) -> Option<Value> {
    let (parent, name) = mistake.at.rsplit_once('/')?;
    let name = name.replace("~1", "/").replace("~0", "~");
    let mut after = stored.clone();
    match (invalid.pointer(&mistake.at), after.pointer_mut(parent)) {
        (Some(wrong), Some(Value::Object(members))) => {
            members.insert(name, wrong.clone());
        }
        (Some(wrong), Some(Value::Array(items))) => {
            let index: usize = name.parse().ok()?;
            match items.get_mut(index) {
                Some(item) => *item = wrong.clone(),
                None => items.push(wrong.clone()),
            }
        }
        (None, Some(Value::Object(members))) => {
            members.remove(&name)?;
        }
        // The mistake is that a parent is missing, or has another form.
        _ => after.pointer_mut(parent).map(|_| ())?,
    }
    (after != *stored).then_some(after)
}

/// Requires a rejection that names the field.
pub(super) fn rejected(
    prober: &Prober<'_>,
    reply: &Reply,
    (mistake, what): (&Mistake, &str),
) -> Result<(), Halt> {
    let Mistake { rule, at, .. } = mistake;
    let field = at.trim_start_matches('/').replace('/', ".");
    let claim = Claim::Rejected { field };
    // kube-apiserver returns 500 for an applied configuration that does not have its types.
    let is_apply = |exchange: &Exchange| media_type(exchange) == "application/apply-patch+yaml";
    let is_untyped = reply.status == 500 && prober.steps.get(reply.step).is_some_and(is_apply);
    if !matches!(reply.status, 400 | 422) && !is_untyped {
        let words = prober.in_words(reply.step);
        let message =
            format!("expected {what} with {at} {rule} to be rejected with 422 or 400, got {words}");
        return Err(prober.violation(reply.step, message, claim));
    }
    let causes = reply.body["details"]["causes"].as_array().cloned().unwrap_or_default();
    let fields: Vec<&str> = causes.iter().filter_map(|cause| cause["field"].as_str()).collect();
    // Bodies that cannot be decoded have no causes. For the result of a patch, it is the patch.
    let is_patch = prober.steps.get(reply.step).is_some_and(|step| step.request.method == "PATCH");
    // An apply merges lists, so the item can get another index.
    let is_item = at.split('/').any(|name| name.parse::<usize>().is_ok());
    let is_apply = prober.steps.get(reply.step).is_some_and(is_apply);
    if is_item && is_apply {
        return Ok(());
    }
    // kube-apiserver names the field of `oneOf`, `anyOf` and `not` in the message only.
    let is_form =
        ["a forbidden form", "none of its forms", "not exactly one of its forms"].contains(rule);
    let is_named = |field: &str| {
        mistake.is_named_by(field)
            || (is_patch && field == "patch")
            || (is_form && field == "<nil>")
    };
    if reply.status == 422 && !fields.iter().any(|field| is_named(field)) {
        let found = if fields.is_empty() { "none".to_owned() } else { fields.join(", ") };
        let message = format!("expected a cause at {at} for {what} ({rule}), got {found}");
        return Err(prober.violation(reply.step, message, claim));
    }
    Ok(())
}
