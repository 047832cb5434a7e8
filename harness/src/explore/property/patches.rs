//! Each kind of patch that leads from one object to another produces it, as a PUT does.

use kubeproof_cases::case::Capability;
use serde_json::{Value, json};

use super::read_back::stored;
use crate::explore::compare::{Difference, OF_OBJECT, OF_WRITE, compact, difference, lost};
use crate::explore::patch;
use crate::explore::prober::{Halt, Prober, Reply, version};
use crate::explore::violation::{Claim, Scope};

const MERGE: &str = "application/merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// The kinds of patches that start from an existing object.
const KINDS: [(Capability, &str); 3] = [
    (Capability::MergePatch, MERGE),
    (Capability::JsonPatch, JSON_PATCH),
    (Capability::StrategicMergePatch, STRATEGIC),
];

pub(super) async fn check(prober: &mut Prober<'_>, from: &Value, to: &Value) -> Result<(), Halt> {
    let (from, to) = (prober.named(from), prober.named(to));
    let created = stored(prober, &from).await?;
    let target = replaced(prober, &to, &created.body).await?;
    as_created(prober, &to, &target).await?;
    let mut last = target.body.clone();
    for (capability, media) in KINDS {
        // Strategic merge patches exist for built-in types only.
        let fits = capability != Capability::StrategicMergePatch || !prober.schema.is_complete;
        if !prober.has_verb("patch") || !prober.offers(capability) || !fits {
            continue;
        }
        let before = replaced(prober, &from, &last).await?;
        last = before.body.clone();
        if let Some(patched) = patched(prober, &before, (&target, media)).await? {
            last = patched.body;
        }
    }
    if prober.has_verb("patch") && prober.offers(Capability::ServerSideApply) {
        let gone = prober.delete().await?;
        prober.require(&gone, "a DELETE")?;
        applied(prober, (&from, &to), &target).await?;
    }
    Ok(())
}

/// Replaces the object, and requires that the response and a GET have it.
async fn replaced(prober: &mut Prober<'_>, object: &Value, before: &Value) -> Result<Reply, Halt> {
    let replaced = prober.put(object, version(before), "").await?;
    if replaced.status == 409 || (!replaced.is_success() && !prober.schema.is_complete) {
        return Err(Halt::Discarded);
    }
    prober.require(&replaced, "a PUT of a valid object")?;
    let lost = lost(prober.schema, object, &replaced.body);
    prober.require_same(replaced.step, lost, ("the replaced object", Scope::Body))?;
    counted(prober, before, &replaced)?;
    let got = prober.get().await?;
    super::read_back::same(prober, &got, &replaced.body)?;
    Ok(replaced)
}

/// Requires another version for another object, and another generation for another spec.
fn counted(prober: &Prober<'_>, before: &Value, after: &Reply) -> Result<(), Halt> {
    let is_changed = difference(before, &after.body, &OF_WRITE).is_some();
    if is_changed && version(before) == after.version() {
        let message = "a PUT with changes keeps the resourceVersion".to_owned();
        return Err(prober.violation(after.step, message, Claim::Accepted));
    }
    let generation = |object: &Value| object["metadata"]["generation"].as_i64();
    let Some((old, new)) = generation(before).zip(generation(&after.body)) else { return Ok(()) };
    let has_new_spec = difference(before, &after.body, &["/metadata", "/status"]).is_some();
    let expected = old + 1;
    // kube-apiserver takes 1.0 instead of 1 for a change, too.
    if prober.schema.is_complete && has_new_spec && new != expected {
        let message = format!("expected the generation {expected} after a PUT, got {new}");
        let at = "/metadata/generation".to_owned();
        let claim = Claim::Member { scope: Scope::Body, at, value: Some(json!(expected)) };
        return Err(prober.violation(after.step, message, claim));
    }
    Ok(())
}

/// Requires that a PUT stores what a create would store.
async fn as_created(prober: &mut Prober<'_>, to: &Value, target: &Reply) -> Result<(), Halt> {
    let mut other = to.clone();
    other["metadata"]["name"] = json!(format!("{}-other", prober.name));
    let path = format!("{}?dryRun=All", prober.collection);
    let created = prober.send("POST", &path, super::super::prober::JSON, Some(&other)).await?;
    if !created.is_success() {
        return Ok(());
    }
    let (wanted, found) =
        (compact(prober.schema, &created.body), compact(prober.schema, &target.body));
    let ignored: Vec<&str> = OF_OBJECT
        .into_iter()
        .chain(["/metadata/labels", "/metadata/annotations", "/secrets"])
        .collect();
    let difference = difference(&wanted, &found, &ignored);
    let what = "the replaced object, unlike a created one,";
    prober.require_same(target.step, difference, (what, Scope::Body))?;
    // Admission adds labels and annotations to new objects. A PUT replaces them.
    let removed = |of: &str| {
        let found = target.body["metadata"][of].as_object().into_iter().flatten();
        let kept = found.map(|(name, value)| (name.clone(), value.clone()));
        let unwanted = |(name, _): &(String, Value)| {
            to["metadata"][of].get(name).is_none()
                && created.body["metadata"][of].get(name).is_none()
        };
        let (name, value) = kept.into_iter().find(unwanted)?;
        let at = format!("/metadata/{of}/{}", super::super::schema::escaped(&name));
        Some(Difference { at, expected: None, actual: Some(value) })
    };
    let extra = removed("labels").or_else(|| removed("annotations"));
    prober.require_same(target.step, extra, ("the replaced object", Scope::Body))
}

/// Patches the object, and requires the target.
async fn patched(
    prober: &mut Prober<'_>,
    before: &Reply,
    (target, media): (&Reply, &str),
) -> Result<Option<Reply>, Halt> {
    let plain = |object: &Value| super::super::compare::without(object, &OF_WRITE);
    let (old, new) = (plain(&before.body), plain(&target.body));
    let patch = match media {
        MERGE => patch::merge(&old, &new),
        STRATEGIC => patch::strategic(prober.schema, &old, &new),
        _ => Some(patch::json_patch(&old, &new)),
    };
    let Some(patch) = patch else { return Ok(None) };
    if media == JSON_PATCH {
        failing(prober, before, &patch).await?;
    }
    let patched = prober.patch(media, &patch, "").await?;
    if patched.status == 409 {
        return Err(Halt::Discarded);
    }
    let kind = media.trim_start_matches("application/");
    prober.require(&patched, &format!("a valid {kind}"))?;
    let (wanted, found) = match media {
        // The order of items that were merged by key is not part of the patch.
        STRATEGIC => (sorted(&new), sorted(&patched.body)),
        _ => (new.clone(), patched.body.clone()),
    };
    let mut ignored = OF_WRITE.to_vec();
    if !prober.schema.is_complete {
        ignored.push("/status");
    }
    let difference = difference(&wanted, &found, &ignored);
    let what = format!("the result of a {kind}");
    prober.require_same(patched.step, difference, (&what, Scope::Body))?;
    counted(prober, &before.body, &patched)?;
    let got = prober.get().await?;
    super::read_back::same(prober, &got, &patched.body)?;
    Ok(Some(patched))
}

/// Sends a JSON patch whose last operation fails, and requires that it changes nothing.
async fn failing(prober: &mut Prober<'_>, before: &Reply, patch: &Value) -> Result<(), Halt> {
    let mut operations = patch.as_array().cloned().unwrap_or_default();
    operations.push(json!({"op": "test", "path": "/metadata/uid", "value": "another"}));
    let failed = prober.patch(JSON_PATCH, &Value::Array(operations), "").await?;
    if failed.is_success() || failed.status >= 500 {
        let words = prober.in_words(failed.step);
        let message = format!("expected a failed test to reject the JSON patch, got {words}");
        let claim = Claim::Rejected { field: String::new() };
        return Err(prober.violation(failed.step, message, claim));
    }
    let got = prober.get().await?;
    super::read_back::same(prober, &got, &before.body)
}

/// Sorts lists of objects by their text.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(sorted).collect();
            if items.iter().all(Value::is_object) {
                items.sort_by_key(Value::to_string);
            }
            Value::Array(items)
        }
        Value::Object(members) => {
            let members = members.iter().map(|(name, member)| (name.clone(), sorted(member)));
            Value::Object(members.collect())
        }
        other => other.clone(),
    }
}

/// Applies both objects one after the other, and requires the target.
async fn applied(
    prober: &mut Prober<'_>,
    (from, to): (&Value, &Value),
    target: &Reply,
) -> Result<(), Halt> {
    // The conventions exclude null from applied configurations.
    if has_null(from) || has_null(to) {
        return Ok(());
    }
    let query = "?fieldManager=kubeproof-explore&force=true";
    let first = prober.patch(APPLY, from, query).await?;
    prober.require(&first, "an apply of a valid object")?;
    if first.status != 201 {
        let message = format!("expected HTTP 201 for an apply that creates, got {}", first.status);
        return Err(prober.violation(first.step, message, Claim::Status(201)));
    }
    let lost_first = lost(prober.schema, from, &first.body);
    prober.require_same(first.step, lost_first, ("the applied object", Scope::Body))?;
    let second = prober.patch(APPLY, to, query).await?;
    prober.require(&second, "an apply of a valid object")?;
    let (wanted, found) =
        (compact(prober.schema, &target.body), compact(prober.schema, &second.body));
    let of_metadata = ["/metadata/labels", "/metadata/annotations"];
    let ignored: Vec<&str> = OF_OBJECT.into_iter().chain(of_metadata).collect();
    let what = ("the result of an apply", Scope::Body);
    prober.require_same(second.step, difference(&wanted, &found, &ignored), what)?;
    let given_up = metadata_difference((from, to), &second.body);
    let what = ("the result of an apply", Scope::Body);
    prober.require_same(second.step, given_up, what)?;
    let got = prober.get().await?;
    super::read_back::same(prober, &got, &second.body)?;
    // kube-apiserver removes a list that loses all items, and adds it with the next apply.
    if has_empty(to) {
        return Ok(());
    }
    let again = prober.patch(APPLY, to, query).await?;
    prober.require(&again, "the same apply again")?;
    let ignored: &[&str] = if again.is_shared() { &["/metadata/resourceVersion"] } else { &[] };
    let difference = difference(&second.body, &again.body, ignored);
    prober.require_same(again.step, difference, ("the object after the same apply", Scope::Body))
}

/// Compares labels and annotations. Admission may add others.
fn metadata_difference((from, to): (&Value, &Value), found: &Value) -> Option<Difference> {
    ["labels", "annotations"].into_iter().find_map(|of| {
        let (from, to) = (&from["metadata"][of], &to["metadata"][of]);
        let found = &found["metadata"][of];
        let names = from.as_object().into_iter().chain(to.as_object()).flatten();
        let mut names = names.map(|(name, _)| name);
        names.find_map(|name| {
            let (expected, actual) = (to.get(name), found.get(name));
            let at = format!("/metadata/{of}/{}", super::super::schema::escaped(name));
            (expected != actual).then(|| Difference {
                at,
                expected: expected.cloned(),
                actual: actual.cloned(),
            })
        })
    })
}

fn has_empty(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty() || items.iter().any(has_empty),
        Value::Object(members) => members.is_empty() || members.values().any(has_empty),
        _ => false,
    }
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(members) => members.values().any(has_null),
        _ => false,
    }
}
