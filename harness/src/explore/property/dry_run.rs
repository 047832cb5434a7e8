//! A dry run stores nothing, and returns what the real request returns.

use kubeproof_cases::case::Capability;
use serde_json::{Value, json};

use super::read_back::same;
use crate::explore::compare::{difference, without};
use crate::explore::patch;
use crate::explore::prober::{Halt, JSON, Prober, Reply};
use crate::explore::violation::{Claim, Scope};

const DRY_RUN: &str = "?dryRun=All";

/// Values that a server makes for each request.
const MADE: [&str; 3] =
    ["/metadata/uid", "/metadata/resourceVersion", "/metadata/creationTimestamp"];

pub(super) async fn check(prober: &mut Prober<'_>, from: &Value, to: &Value) -> Result<(), Halt> {
    let (from, to) = (prober.named(from), prober.named(to));
    let collection = prober.collection.clone();
    let dry = format!("{collection}{DRY_RUN}");
    let predicted = prober.send("POST", &dry, JSON, Some(&from)).await?;
    absent(prober).await?;
    let created = prober.create(&from).await?;
    predicts(prober, &predicted, &created, "a create")?;
    if !created.is_success() {
        return Err(Halt::Discarded);
    }
    let again = prober.send("POST", &dry, JSON, Some(&from)).await?;
    let real = prober.create(&from).await?;
    predicts(prober, &again, &real, "a create with a taken name")?;
    let predicted = prober.put(&to, created.version(), DRY_RUN).await?;
    untouched(prober, &created).await?;
    let mut last = prober.put(&to, created.version(), "").await?;
    predicts(prober, &predicted, &last, "a PUT")?;
    if !last.is_success() {
        last = created;
    }
    if prober.has_verb("patch") && prober.offers(Capability::MergePatch) {
        last = patched(prober, &last, &from).await?;
    }
    if prober.has_verb("patch") && prober.offers(Capability::ServerSideApply) {
        last = applied(prober, &last).await?;
    }
    let path = format!("{}{DRY_RUN}", prober.path());
    let deleted = prober.send("DELETE", &path, JSON, None).await?;
    prober.require(&deleted, "the dry run of a DELETE")?;
    untouched(prober, &last).await
}

/// Requires that the object is as before.
async fn untouched(prober: &mut Prober<'_>, before: &Reply) -> Result<(), Halt> {
    let got = prober.get().await?;
    prober.require(&got, "a GET after a dry run")?;
    same(prober, &got, &before.body)
}

async fn absent(prober: &mut Prober<'_>) -> Result<(), Halt> {
    let got = prober.get().await?;
    if got.status == 404 {
        return Ok(());
    }
    let words = prober.in_words(got.step);
    let message = format!("expected HTTP 404 after the dry run of a create, got {words}");
    Err(prober.violation(got.step, message, Claim::Status(404)))
}

async fn patched(prober: &mut Prober<'_>, before: &Reply, to: &Value) -> Result<Reply, Halt> {
    let members = ["apiVersion", "kind", "metadata", "status"];
    let mut change = json!({"metadata": {"annotations": {"kubeproof.dev/patched": "x"}}});
    for (name, value) in to.as_object().into_iter().flatten() {
        let old = before.body.get(name).unwrap_or(&Value::Null);
        if let Some(patch) = patch::merge(old, value).filter(|_| !members.contains(&name.as_str()))
        {
            change[name] = patch;
        }
    }
    let media = "application/merge-patch+json";
    let predicted = prober.patch(media, &change, DRY_RUN).await?;
    untouched(prober, before).await?;
    let real = prober.patch(media, &change, "").await?;
    predicts(prober, &predicted, &real, "a merge patch")?;
    Ok(if real.is_success() { real } else { before.clone() })
}

async fn applied(prober: &mut Prober<'_>, before: &Reply) -> Result<Reply, Halt> {
    let configuration = json!({
        "apiVersion": before.body["apiVersion"],
        "kind": before.body["kind"],
        "metadata": {"name": prober.name, "annotations": {"kubeproof.dev/applied": "x"}},
    });
    let media = "application/apply-patch+yaml";
    let query = "fieldManager=kubeproof-explore";
    let predicted = prober.patch(media, &configuration, &format!("{DRY_RUN}&{query}")).await?;
    untouched(prober, before).await?;
    let real = prober.patch(media, &configuration, &format!("?{query}")).await?;
    predicts(prober, &predicted, &real, "an apply")?;
    Ok(if real.is_success() { real } else { before.clone() })
}

/// Requires that both requests have the same outcome.
fn predicts(prober: &Prober<'_>, predicted: &Reply, real: &Reply, what: &str) -> Result<(), Halt> {
    if predicted.status != real.status {
        let (dry, real_words) = (prober.in_words(predicted.step), prober.in_words(real.step));
        let message = format!("the dry run of {what} returns {dry}, the request {real_words}");
        let claim = Claim::Status(real.status);
        return Err(prober.violation(predicted.step, message, claim));
    }
    if !real.is_success() {
        return Ok(());
    }
    let ignored: &[&str] = if what == "a create" { &MADE } else { &MADE[1..2] };
    let (predicted_body, real_body) = (plain(&predicted.body), plain(&real.body));
    let difference = difference(&real_body, &predicted_body, ignored);
    let what = format!("the response to the dry run of {what}");
    prober.require_same(predicted.step, difference, (&what, Scope::Body))
}

/// Removes the times of managers, and addresses that the server allocates.
fn plain(object: &Value) -> Value {
    let mut object = without(object, &["/spec/clusterIP", "/spec/clusterIPs"]);
    for entry in object["metadata"]["managedFields"].as_array_mut().into_iter().flatten() {
        entry["time"] = Value::Null;
    }
    object
}
