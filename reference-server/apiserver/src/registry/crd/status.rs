//! The status of a CRD: it is served if its names are free.

use serde_json::{Value, json};

use super::text;

/// Returns the status of `definition` among the `others` of the server at the time `now`.
/// Conditions that do not change keep the time of their last transition.
pub(crate) fn status<'a>(
    definition: &Value,
    others: impl IntoIterator<Item = &'a Value>,
    now: &str,
) -> Value {
    let names = &definition["spec"]["names"];
    let group = text(&definition["spec"], "group");
    let conflict = others
        .into_iter()
        .filter(|other| other["metadata"]["name"] != definition["metadata"]["name"])
        .filter(|other| text(&other["spec"], "group") == group && is_established(other))
        .find_map(|other| conflict(names, &other["status"]["acceptedNames"]));
    let old = &definition["status"];
    let conditions = match &conflict {
        None => [
            condition(old, "NamesAccepted", "True", ("NoConflicts", "no conflicts found"), now),
            condition(
                old,
                "Established",
                "True",
                ("InitialNamesAccepted", "the initial names have been accepted"),
                now,
            ),
        ],
        Some((reason, message)) => {
            let established = if is_established(definition) {
                condition(
                    old,
                    "Established",
                    "True",
                    ("InitialNamesAccepted", "the initial names have been accepted"),
                    now,
                )
            } else {
                condition(
                    old,
                    "Established",
                    "False",
                    ("NotAccepted", "not all names are accepted"),
                    now,
                )
            };
            [condition(old, "NamesAccepted", "False", (reason, message), now), established]
        }
    };
    let accepted = if conflict.is_none() { names.clone() } else { old["acceptedNames"].clone() };
    json!({
        "acceptedNames": accepted, "conditions": conditions,
        "storedVersions": stored_versions(definition),
    })
}

/// Returns whether the resource is served.
pub(crate) fn is_established(definition: &Value) -> bool {
    let mut conditions = definition["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|condition| condition["type"] == "Established" && condition["status"] == "True")
}

/// Returns reason and message of the condition for the first name that another CRD has.
fn conflict(names: &Value, taken: &Value) -> Option<(String, String)> {
    let list = |value: &Value| -> Vec<String> {
        value
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect()
    };
    let resources: Vec<String> = ["plural", "singular"]
        .iter()
        .map(|field| text(taken, field).to_owned())
        .chain(list(&taken["shortNames"]))
        .collect();
    let kinds = [text(taken, "kind"), text(taken, "listKind")];
    let found = |reason: &str, name: &str| {
        Some((reason.to_owned(), format!("\"{name}\" is already in use")))
    };
    for (field, reason) in [("plural", "PluralConflict"), ("singular", "SingularConflict")] {
        let name = text(names, field);
        if resources.iter().any(|taken| taken == name) {
            return found(reason, name);
        }
    }
    if let Some(name) = list(&names["shortNames"]).iter().find(|name| resources.contains(name)) {
        return found("ShortNamesConflict", name);
    }
    for (field, reason) in [("kind", "KindConflict"), ("listKind", "ListKindConflict")] {
        let name = text(names, field);
        if kinds.contains(&name) {
            return found(reason, name);
        }
    }
    None
}

fn condition(
    old: &Value,
    kind: &str,
    status: &str,
    (reason, message): (&str, &str),
    now: &str,
) -> Value {
    let mut before = old["conditions"].as_array().into_iter().flatten();
    let since = before
        .find(|condition| condition["type"] == kind && condition["status"] == status)
        .map_or(now, |condition| text(condition, "lastTransitionTime"));
    json!({
        "type": kind, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": since,
    })
}

fn stored_versions(definition: &Value) -> Vec<Value> {
    let mut stored = definition["status"]["storedVersions"].as_array().cloned().unwrap_or_default();
    let mut versions = definition["spec"]["versions"].as_array().into_iter().flatten();
    if let Some(version) = versions.find(|version| version["storage"] == true)
        && !stored.contains(&version["name"])
    {
        stored.push(version["name"].clone());
    }
    stored
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::crd::tests::manifest;

    const NOW: &str = "2024-01-02T03:04:05Z";

    fn accepted() -> Value {
        let mut definition = manifest();
        crate::registry::crd::complete(&mut definition);
        definition["status"] = status(&definition, [], NOW);
        definition
    }

    #[test]
    fn free_names_are_accepted_and_the_resource_is_established() {
        let definition = accepted();
        assert!(is_established(&definition));
        assert_eq!(definition["status"]["storedVersions"], json!(["v1"]));
        assert_eq!(definition["status"]["acceptedNames"]["listKind"], "WidgetList");
        let later = status(&definition, [], "2030-01-01T00:00:00Z");
        assert_eq!(later, definition["status"], "nothing changed, so no time did");
    }

    #[test]
    fn a_kind_that_is_taken_is_not_established() {
        let first = accepted();
        let mut second = manifest();
        second["metadata"]["name"] = json!("widgetx.example.com");
        second["spec"]["names"] = json!({
            "plural": "widgetx", "singular": "widgetx", "kind": "Widget", "listKind": "WidgetXList",
        });
        second["status"] = status(&second, [&first], NOW);
        assert!(!is_established(&second));
        assert_eq!(second["status"]["conditions"][0]["reason"], "KindConflict");
        assert_eq!(second["status"]["conditions"][1]["reason"], "NotAccepted");
    }
}
