//! A PUT of what GET returned changes nothing, nor does an empty patch.

use kubeproof_cases::case::Capability;
use serde_json::{Value, json};

use super::read_back::stored;
use crate::explore::compare::difference;
use crate::explore::prober::{Halt, Prober, Reply};
use crate::explore::violation::Scope;

pub(super) async fn check(prober: &mut Prober<'_>, object: &Value) -> Result<(), Halt> {
    let object = prober.named(object);
    stored(prober, &object).await?;
    let got = prober.get().await?;
    prober.require(&got, "a GET")?;
    let replaced = prober.put(got.whole(), got.version(), "").await?;
    unchanged(prober, &got, &replaced, "the object after a PUT of what GET returned")?;
    let empty = [
        (Capability::MergePatch, "application/merge-patch+json", json!({})),
        (Capability::JsonPatch, "application/json-patch+json", json!([])),
    ];
    for (capability, media, patch) in empty {
        if prober.has_verb("patch") && prober.offers(capability) {
            let patched = prober.patch(media, &patch, "").await?;
            unchanged(prober, &got, &patched, "the object after an empty patch")?;
        }
    }
    let read_again = prober.get().await?;
    unchanged(prober, &got, &read_again, "the object of a GET after these writes")
}

fn unchanged(prober: &Prober<'_>, before: &Reply, after: &Reply, what: &str) -> Result<(), Halt> {
    if after.status == 409 {
        return Err(Halt::Discarded);
    }
    prober.require(after, "a write that changes nothing")?;
    let ignored: &[&str] = if after.is_shared() { &["/metadata/resourceVersion"] } else { &[] };
    let difference = difference(&before.body, &after.body, ignored);
    prober.require_same(after.step, difference, (what, Scope::Body))
}
