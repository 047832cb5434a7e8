//! Changes documents of responses to another permitted form.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use super::{Variation, Variations, tokens};

/// An unknown member of metadata.
pub(super) const NOTE: &str = "servedBy";

/// The fields of metadata with times that the server sets.
const TIMES: &[&str] = &["creationTimestamp", "deletionTimestamp"];

#[derive(Debug)]
pub(super) struct ResponseRewriter {
    variations: Variations,
    /// The offset of the clock in seconds.
    clock: i64,
    /// The UIDs in responses so far. References between objects get the other form only for these
    /// UIDs.
    known: Mutex<HashSet<String>>,
}

impl ResponseRewriter {
    pub(super) fn new(variations: Variations, clock: i64) -> Self {
        Self { variations, clock, known: Mutex::default() }
    }

    /// Changes the JSON document in the body of a response.
    pub(super) fn document(&self, document: &mut Value) {
        let Some(fields) = document.as_object_mut() else { return };
        let is_list_of_objects =
            fields.get("metadata").is_some_and(|meta| meta.get("resourceVersion").is_some());
        for list in ["items", "rows"] {
            let Some(entries) = fields.get_mut(list).and_then(Value::as_array_mut) else {
                continue;
            };
            for entry in entries.iter_mut() {
                // Each row of a table contains its object.
                let object = if list == "rows" { entry.get_mut("object") } else { Some(entry) };
                if let Some(object) = object {
                    self.object(object);
                }
            }
            if is_list_of_objects && self.variations.on(Variation::ListsReversed) {
                entries.reverse();
            }
        }
        match fields.get("kind").and_then(Value::as_str) {
            Some("Status") => self.status(fields),
            Some("APIGroupList" | "APIVersions") => {
                if self.variations.on(Variation::ApiVersionOmitted) {
                    fields.remove("apiVersion");
                }
            }
            _ => self.object(document),
        }
    }

    fn object(&self, object: &mut Value) {
        let is_list = object.get("items").is_some() || object.get("rows").is_some();
        let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
            return;
        };
        if self.variations.on(Variation::OpaqueVersions) {
            rewrite(metadata, "resourceVersion", tokens::version);
        }
        if self.variations.on(Variation::OpaqueContinue) {
            rewrite(metadata, "continue", |token| {
                (!token.is_empty()).then(|| tokens::next_page(token))
            });
        }
        if self.variations.on(Variation::OtherUids) {
            self.uids(metadata);
        }
        if self.variations.on(Variation::CountsOmitted) && is_list {
            metadata.remove("remainingItemCount");
        }
        if self.variations.on(Variation::ClockOff) {
            shift_times(metadata, self.clock);
        }
        if self.variations.on(Variation::UnknownFields) && !is_list && metadata.contains_key("uid")
        {
            metadata.insert(NOTE.to_owned(), "node-7".into());
        }
    }

    fn uids(&self, metadata: &mut Map<String, Value>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(uid) = metadata.get("uid").and_then(Value::as_str) {
            known.insert(uid.to_owned());
        }
        rewrite(metadata, "uid", tokens::uid);
        for owner in
            metadata.get_mut("ownerReferences").and_then(Value::as_array_mut).into_iter().flatten()
        {
            if let Some(owner) = owner.as_object_mut() {
                rewrite(owner, "uid", |uid| {
                    known.contains(uid).then(|| tokens::uid(uid)).flatten()
                });
            }
        }
    }

    fn status(&self, status: &mut Map<String, Value>) {
        let failed = status.get("status").and_then(Value::as_str) == Some("Failure");
        if failed && self.variations.on(Variation::OtherMessages) {
            let reason = status.get("reason").and_then(Value::as_str).unwrap_or("Unknown");
            let message = format!("this server did not carry out the request ({reason})");
            status.insert("message".to_owned(), message.into());
        }
        // Clients need the causes and the delay. Everything else repeats the request.
        let repeats = |details: &Value| {
            details.get("causes").is_none() && details.get("retryAfterSeconds").is_none()
        };
        if failed
            && self.variations.on(Variation::DetailsOmitted)
            && status.get("details").is_some_and(repeats)
        {
            status.remove("details");
        }
        if let Some(details) = status.get_mut("details").and_then(Value::as_object_mut) {
            if self.variations.on(Variation::OtherUids) {
                rewrite(details, "uid", tokens::uid);
            }
            if self.variations.on(Variation::UnknownFields) {
                details.insert("incident".to_owned(), "none".into());
            }
        }
    }

    /// Returns a Status for a DELETE that returned the last state of the object.
    pub(super) fn deleted(&self, document: &Value) -> Option<Value> {
        let metadata = document.get("metadata")?;
        let is_object =
            metadata.get("uid").is_some() && document["kind"] != "PartialObjectMetadata";
        let waits = metadata["finalizers"].as_array().is_some_and(|names| !names.is_empty())
            || metadata["deletionGracePeriodSeconds"].as_i64().is_some_and(|seconds| seconds > 0);
        (self.variations.on(Variation::StatusOnDelete) && is_object && !waits).then(|| {
            let details = json!({ "name": metadata["name"], "uid": metadata["uid"] });
            json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
                "details": details,
            })
        })
    }
}

/// Moves the times that a server sets.
pub(super) fn shift_times(metadata: &mut Map<String, Value>, seconds: i64) {
    for field in TIMES {
        rewrite(metadata, field, |time| shifted(time, seconds));
    }
    for entry in
        metadata.get_mut("managedFields").and_then(Value::as_array_mut).into_iter().flatten()
    {
        if let Some(entry) = entry.as_object_mut() {
            rewrite(entry, "time", |time| shifted(time, seconds));
        }
    }
}

fn shifted(time: &str, seconds: i64) -> Option<String> {
    let time: Timestamp = time.parse().ok()?;
    Some(time.checked_add(SignedDuration::from_secs(seconds)).ok()?.to_string())
}

fn rewrite(
    fields: &mut Map<String, Value>,
    field: &str,
    change: impl FnOnce(&str) -> Option<String>,
) {
    if let Some(value) = fields.get_mut(field)
        && let Some(changed) = value.as_str().and_then(change)
    {
        *value = changed.into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(variation: Variation, mut document: Value) -> Value {
        ResponseRewriter::new(Variations::none().with(variation), 3600).document(&mut document);
        document
    }

    #[test]
    fn every_object_of_a_list_has_the_other_form() {
        let list = json!({
            "kind": "PodList", "metadata": { "resourceVersion": "9" },
            "items": [
                { "metadata": { "name": "a", "resourceVersion": "3" } },
                { "metadata": { "name": "b", "resourceVersion": "4" } },
            ],
        });
        let other = rewritten(Variation::OpaqueVersions, list.clone());
        for pointer in ["/metadata", "/items/0/metadata", "/items/1/metadata"] {
            let before = list.pointer(pointer).unwrap()["resourceVersion"].as_str().unwrap();
            let after = other.pointer(pointer).unwrap()["resourceVersion"].as_str().unwrap();
            assert_eq!(tokens::restored(after), before);
            assert_ne!(after, before);
        }
        assert_eq!(rewritten(Variation::ListsReversed, list)["items"][0]["metadata"]["name"], "b");
    }

    #[test]
    fn a_page_may_omit_the_remaining_items() {
        let page = json!({ "metadata": { "continue": "a", "remainingItemCount": 3 }, "items": [] });
        let other = rewritten(Variation::CountsOmitted, page);
        assert_eq!(other["metadata"], json!({ "continue": "a" }));
    }

    #[test]
    fn owners_that_a_client_made_up_keep_their_uid() {
        let uid = "0b4f5d3e-0c1a-4b2c-8d3e-4f5061728394";
        let object = json!({ "metadata": { "ownerReferences": [{ "uid": uid }] } });
        assert_eq!(rewritten(Variation::OtherUids, object.clone()), object);
    }

    #[test]
    fn a_clock_that_is_off_comes_back() {
        let object = json!({ "metadata": { "creationTimestamp": "2026-01-01T23:30:00Z",
            "managedFields": [{ "time": "2026-01-01T23:30:00Z" }] } });
        let mut other = rewritten(Variation::ClockOff, object.clone());
        assert_eq!(other["metadata"]["creationTimestamp"], "2026-01-02T00:30:00Z");
        shift_times(other["metadata"].as_object_mut().unwrap(), -3600);
        assert_eq!(other, object);
    }

    #[test]
    fn details_stay_if_clients_need_them() {
        let with =
            |details: Value| json!({ "kind": "Status", "status": "Failure", "details": details });
        let causes = with(json!({ "name": "a", "causes": [] }));
        assert_eq!(rewritten(Variation::DetailsOmitted, causes.clone()), causes);
        let other = rewritten(Variation::DetailsOmitted, with(json!({ "name": "a" })));
        assert_eq!(other, json!({ "kind": "Status", "status": "Failure" }));
    }

    #[test]
    fn a_list_of_groups_may_omit_its_version() {
        let groups = json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": [] });
        let other = rewritten(Variation::ApiVersionOmitted, groups);
        assert_eq!(other, json!({ "kind": "APIGroupList", "groups": [] }));
    }

    #[test]
    fn only_a_removed_object_becomes_a_status() {
        let rewriter = ResponseRewriter::new(Variations::none().with(Variation::StatusOnDelete), 0);
        let gone = json!({ "kind": "ConfigMap", "metadata": { "name": "a", "uid": "1" } });
        assert_eq!(rewriter.deleted(&gone).unwrap()["status"], "Success");
        let waits = json!({
            "kind": "ConfigMap", "metadata": { "name": "a", "uid": "1", "finalizers": ["x/y"] },
        });
        assert_eq!(rewriter.deleted(&waits), None);
    }
}
