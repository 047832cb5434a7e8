//! Each read returns what was written, also after an unrelated change.

use kubeproof_cases::case::Capability;
use serde_json::{Value, json};

use crate::exchange::WatchEvent;
use crate::explore::compare::{OF_WRITE, difference, lost, without};
use crate::explore::prober::{Halt, Prober, Reply, Watching, version};
use crate::explore::violation::{Claim, Scope};

/// The label that an unrelated change adds.
const UNRELATED: &str = "/metadata/labels/kubeproof-unrelated";

pub(super) async fn check(prober: &mut Prober<'_>, object: &Value) -> Result<(), Halt> {
    let object = prober.named(object);
    let watching = begin(prober).await?;
    let created = stored(prober, &object).await?;
    read(prober, &object, &created).await?;
    let updated = change(prober, &created).await?;
    let read_again = prober.get().await?;
    prober.require(&read_again, "a GET")?;
    same(prober, &read_again, &updated.body)?;
    let gone = prober.delete().await?;
    prober.require(&gone, "a DELETE")?;
    let absent = prober.get().await?;
    if absent.is_success() && absent.body["metadata"]["deletionTimestamp"].is_null() {
        let message = "a GET after the DELETE returns the object".to_owned();
        return Err(prober.violation(absent.step, message, Claim::Status(404)));
    }
    match watching {
        Some(watching) => events(prober, watching, [&created.body, &updated.body]).await,
        None => Ok(()),
    }
}

/// Opens a watch from the current version.
async fn begin(prober: &mut Prober<'_>) -> Result<Option<Watching>, Halt> {
    let target = format!("{}?limit=1", prober.collection);
    let list = prober.send("GET", &target, super::super::prober::JSON, None).await?;
    if list.version().is_empty() {
        return Ok(None);
    }
    prober.watch(&format!("resourceVersion={}", list.version())).await
}

/// Creates an object, and requires that the response has all that was sent.
pub(super) async fn stored(prober: &mut Prober<'_>, object: &Value) -> Result<Reply, Halt> {
    let created = prober.create(object).await?;
    if !created.is_success() && !prober.schema.is_complete {
        return Err(Halt::Discarded);
    }
    prober.require(&created, "the create of a valid object")?;
    if created.status != 201 {
        let message = format!("expected HTTP 201 for a create, got {}", created.status);
        return Err(prober.violation(created.step, message, Claim::Status(201)));
    }
    for at in ["/metadata/uid", "/metadata/resourceVersion", "/metadata/creationTimestamp"] {
        if created.body.pointer(at).and_then(Value::as_str).is_none_or(str::is_empty) {
            let message = format!("the created object has no {at}");
            return Err(prober.violation(created.step, message, Claim::Present(at)));
        }
    }
    let difference = lost(prober.schema, object, &created.body);
    prober.require_same(created.step, difference, ("the created object", Scope::Body))?;
    Ok(created)
}

/// Requires that GET and the list return the created object.
async fn read(prober: &mut Prober<'_>, sent: &Value, created: &Reply) -> Result<(), Halt> {
    let got = prober.get().await?;
    prober.require(&got, "a GET")?;
    let difference = lost(prober.schema, sent, &got.body);
    prober.require_same(got.step, difference, ("the object of a GET", Scope::Body))?;
    same(prober, &got, &created.body)?;
    let collection = prober.collection.clone();
    let list = prober.send("GET", &collection, super::super::prober::JSON, None).await?;
    prober.require(&list, "a list")?;
    let items = list.body["items"].as_array().cloned().unwrap_or_default();
    let item = items.into_iter().find(|item| item["metadata"]["name"] == prober.name.as_str());
    let Some(item) = item else {
        let message = "the list lacks the created object".to_owned();
        let claim = Claim::Names(vec![prober.name.clone()]);
        return Err(prober.violation(list.step, message, claim));
    };
    let scope = Scope::Item(prober.name.clone());
    same_item(prober, list.step, &item, (&created.body, scope))
}

/// Requires that two objects of the same version are equal. Another version is of another client.
pub(super) fn same(prober: &Prober<'_>, reply: &Reply, expected: &Value) -> Result<(), Halt> {
    if reply.version() != version(expected) && is_changed_by_others(prober, expected) {
        return Ok(());
    }
    let difference = difference(expected, &reply.body, &[]);
    prober.require_same(reply.step, difference, ("the object", Scope::Body))
}

/// Controllers write status and metadata of some built-in types.
fn is_changed_by_others(prober: &Prober<'_>, object: &Value) -> bool {
    !prober.schema.is_complete && (object["status"].is_object() || object["secrets"].is_array())
}

/// Requires that an item of a list is the object. Items may lack their type.
pub(super) fn same_item(
    prober: &Prober<'_>,
    step: usize,
    item: &Value,
    (expected, scope): (&Value, Scope),
) -> Result<(), Halt> {
    if version(item) != version(expected) && is_changed_by_others(prober, expected) {
        return Ok(());
    }
    let types = ["/apiVersion", "/kind"];
    let unnamed: Vec<&str> = types.into_iter().filter(|at| item.pointer(at).is_none()).collect();
    prober.require_same(step, difference(expected, item, &unnamed), ("the item", scope))
}

/// Adds a label, and requires that nothing else changes.
async fn change(prober: &mut Prober<'_>, created: &Reply) -> Result<Reply, Halt> {
    let label = json!({"metadata": {"labels": {"kubeproof-unrelated": "x"}}});
    let updated = if prober.has_verb("patch") && prober.offers(Capability::MergePatch) {
        prober.patch("application/merge-patch+json", &label, "").await?
    } else {
        let mut object = created.body.clone();
        object["metadata"]["labels"]["kubeproof-unrelated"] = json!("x");
        let updated = prober.put(&object, created.version(), "").await?;
        if updated.status == 409 {
            return Err(Halt::Discarded);
        }
        updated
    };
    prober.require(&updated, "an unrelated change")?;
    if updated.body.pointer(UNRELATED) != Some(&json!("x")) {
        let message = "the response to a new label lacks the label".to_owned();
        let (at, value) = (UNRELATED.to_owned(), Some(json!("x")));
        let claim = Claim::Member { scope: Scope::Body, at, value };
        return Err(prober.violation(updated.step, message, claim));
    }
    if updated.version() == created.version() {
        let message = "a change keeps the resourceVersion".to_owned();
        return Err(prober.violation(updated.step, message, Claim::Accepted));
    }
    let before = created.body["metadata"]["labels"].is_object();
    let label = if before { UNRELATED } else { "/metadata/labels" };
    let rest = without(&updated.body, &[label]);
    let ignored: Vec<&str> = if prober.schema.is_complete {
        OF_WRITE[..2].to_vec()
    } else {
        OF_WRITE.iter().copied().chain(["/status"]).collect()
    };
    let difference = difference(&created.body, &rest, &ignored);
    let what = "the object after an unrelated change";
    prober.require_same(updated.step, difference, (what, Scope::Body))?;
    Ok(updated)
}

/// Requires the events of a create, an update and a delete.
async fn events(
    prober: &mut Prober<'_>,
    mut watching: Watching,
    [created, updated]: [&Value; 2],
) -> Result<(), Halt> {
    for (kind, expected) in [("ADDED", created), ("MODIFIED", updated), ("DELETED", updated)] {
        let event = next(prober, &mut watching, expected).await?;
        let found = event.as_ref().map_or("no event", |event| event.kind.as_str());
        if found != kind {
            let message = format!("expected the event {kind} of the object, got {found}");
            return Err(prober.violation(watching.step, message, Claim::Event(kind.to_owned())));
        }
        let Some(event) = event else { continue };
        // The version of a deletion is its own.
        let ignored: &[&str] = match kind {
            "DELETED" => &["/metadata/resourceVersion", "/metadata/deletionTimestamp"],
            _ => &[],
        };
        if version(&event.object) != version(expected)
            && kind != "DELETED"
            && is_changed_by_others(prober, expected)
        {
            return Ok(());
        }
        let difference = difference(expected, &event.object, ignored)
            .filter(|found| !found.at.starts_with("/metadata/deletion") || kind != "DELETED");
        let what = format!("the object of the event {kind}");
        let scope = Scope::Event(kind.to_owned());
        prober.require_same(watching.step, difference, (&what, scope))?;
        if kind == "DELETED" && version(&event.object) == version(updated) {
            let message = "the event DELETED has the version of the last write".to_owned();
            return Err(prober.violation(watching.step, message, Claim::Event(kind.to_owned())));
        }
    }
    Ok(())
}

/// Returns the next event of the object, without bookmarks and writes of others.
async fn next(
    prober: &mut Prober<'_>,
    watching: &mut Watching,
    expected: &Value,
) -> Result<Option<WatchEvent>, Halt> {
    loop {
        let event = prober.event(watching).await?;
        let is_other = |event: &WatchEvent| {
            event.kind == "MODIFIED"
                && version(&event.object) != version(expected)
                && is_changed_by_others(prober, expected)
        };
        match event {
            Some(event) if event.kind == "BOOKMARK" || is_other(&event) => {}
            event => return Ok(event),
        }
    }
}
