//! Isolates a case from the objects of others on servers that ignore label selectors.
//!
//! Cases select their objects by the label `kubeproof/case`. Cases about selectors use further
//! labels, so they still find selectors that are ignored.

use percent_encoding::percent_decode_str;
use serde_json::Value;

/// The label by which a case selects its objects.
const LABEL: &str = "kubeproof/case";

/// The objects of one case.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Isolation {
    /// The value of the label, with which the names of the case begin.
    case: String,
}

impl Isolation {
    /// Returns the isolation of a request that selects the objects of a case.
    pub(crate) fn of(target: &str) -> Option<Self> {
        let (_, query) = target.split_once('?')?;
        let selector = query.split('&').find_map(|pair| pair.strip_prefix("labelSelector="))?;
        let selector = percent_decode_str(selector).decode_utf8().ok()?;
        let own =
            selector.split(',').find_map(|term| term.strip_prefix(LABEL)?.strip_prefix('='))?;
        let is_value = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let is_plain = !own.is_empty() && own.chars().all(is_value);
        is_plain.then(|| Self { case: own.to_owned() })
    }

    /// Reports whether an object belongs to another case or user.
    pub(crate) fn is_foreign(&self, object: &Value) -> bool {
        let metadata = &object["metadata"];
        let Some(name) = metadata["name"].as_str() else { return false };
        let rest = name.strip_prefix(&self.case);
        let is_named = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'));
        !is_named && metadata["labels"][LABEL] != self.case.as_str()
    }

    /// Removes foreign objects from a list or a table.
    pub(crate) fn filter(&self, list: &mut Value) {
        if let Some(items) = list.get_mut("items").and_then(Value::as_array_mut) {
            items.retain(|item| !self.is_foreign(item));
        }
        if let Some(rows) = list.get_mut("rows").and_then(Value::as_array_mut) {
            rows.retain(|row| !self.is_foreign(&row["object"]));
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case("/a?labelSelector=kubeproof%2Fcase%3Dkp-1", Some("kp-1"))]
    #[case("/a?limit=1&labelSelector=kubeproof%2Fcase%3Dkp-1%2Capp%3Da", Some("kp-1"))]
    #[case("/a?labelSelector=app%3Da", None)]
    #[case("/a?labelSelector=kubeproof%2Fcase%3D", None)]
    #[case("/a?labelSelector=kubeproof%2Fcase%3D%3Dkp-1", None)]
    #[case("/a", None)]
    fn the_selector_names_the_case(#[case] target: &str, #[case] expected: Option<&str>) {
        let case = Isolation::of(target).map(|isolation| isolation.case);
        assert_eq!(case.as_deref(), expected);
    }

    #[test]
    fn objects_of_others_are_removed() {
        let object =
            |name: &str, labels: Value| json!({"metadata": {"name": name, "labels": labels}});
        let own = [
            object("kp-1", json!({})),
            object("kp-1-a", Value::Null),
            object("other", json!({"kubeproof/case": "kp-1"})),
            json!({"metadata": {"resourceVersion": "1"}}),
        ];
        let foreign = [object("kp-12", json!({"kubeproof/case": "kp-12"})), object("a", json!({}))];
        let all: Vec<Value> = own.iter().chain(&foreign).cloned().collect();
        let mut list = json!({"items": all});
        let isolation = Isolation::of("/a?labelSelector=kubeproof/case=kp-1").expect("a case");
        isolation.filter(&mut list);
        assert_eq!(list, json!({"items": own}));
        let rows = |objects: &[Value]| -> Vec<Value> {
            objects.iter().map(|object| json!({"object": object})).collect()
        };
        let mut table = json!({"rows": rows(&all)});
        isolation.filter(&mut table);
        assert_eq!(table, json!({"rows": rows(&own)}));
    }
}
