//! The webhook that converts the objects of a definition between its versions.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kubeproof_apimachinery::go_type;
use kubeproof_apimachinery::object::Object as _;
use kubeproof_apimachinery::object::validation::metadata::validate_labels;
use kubeproof_apimachinery::schema::Path;
use serde_json::{Value, json};

use super::text;

const GROUP: &str = "apiextensions.k8s.io";

/// The address of the webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    Url(String),
    Service { namespace: String, name: String, port: u16, path: String },
}

/// A conversion webhook.
#[derive(Clone, Debug)]
pub(crate) struct Webhook {
    pub(crate) address: Address,
    /// The authorities that the server trusts, as PEM. It is empty for those of the system.
    pub(crate) ca_pem: Vec<u8>,
    /// The version of `ConversionReview`: the first one that the server and the webhook know.
    review_version: &'static str,
}

impl Webhook {
    /// Returns the webhook of a valid definition, if it has one.
    pub(crate) fn of(definition: &Value) -> Option<Self> {
        let conversion = &definition["spec"]["conversion"];
        if conversion["strategy"] != "Webhook" {
            return None;
        }
        let webhook = &conversion["webhook"];
        let config = &webhook["clientConfig"];
        let service = &config["service"];
        let address = match config["url"].as_str() {
            Some(url) => Address::Url(url.to_owned()),
            None => Address::Service {
                namespace: text(service, "namespace").to_owned(),
                name: text(service, "name").to_owned(),
                port: service["port"].as_u64().and_then(|port| port.try_into().ok()).unwrap_or(443),
                path: text(service, "path").to_owned(),
            },
        };
        let versions = webhook["conversionReviewVersions"].as_array()?;
        let known = versions.iter().find_map(|version| match version.as_str() {
            Some("v1") => Some("v1"),
            Some("v1beta1") => Some("v1beta1"),
            _ => None,
        });
        let ca_pem = STANDARD.decode(text(config, "caBundle")).unwrap_or_default();
        Some(Self { address, ca_pem, review_version: known? })
    }

    /// Returns the request to convert objects.
    pub(crate) fn review(&self, uid: &str, objects: &[Value], desired: &str) -> Value {
        json!({
            "kind": "ConversionReview", "apiVersion": format!("{GROUP}/{}", self.review_version),
            "request": {"uid": uid, "desiredAPIVersion": desired, "objects": objects},
        })
    }

    /// Returns the converted objects of a response, or why it is invalid.
    pub(crate) fn converted(
        &self,
        uid: &str,
        (originals, desired): (&[Value], &str),
        mut review: Value,
    ) -> Result<Vec<Value>, ConversionError> {
        let Some(first) = originals.first() else { return Ok(Vec::new()) };
        let kind = shown_kind(first);
        let failed =
            |why: String| ConversionError(format!("conversion webhook for {kind} failed: {why}"));
        self.check_review(uid, &review).map_err(failed)?;
        let converted = match review["response"]["convertedObjects"].take() {
            Value::Array(objects) => objects,
            _ => Vec::new(),
        };
        if converted.len() != originals.len() {
            return Err(ConversionError(format!(
                "conversion webhook for {kind} returned {} objects, expected {}",
                converted.len(),
                originals.len()
            )));
        }
        let pairs = originals.iter().zip(converted).enumerate();
        pairs.map(|(index, (original, new))| accept(original, new, desired, index)).collect()
    }

    fn check_review(&self, uid: &str, review: &Value) -> Result<(), String> {
        let response = &review["response"];
        let is_v1 = self.review_version == "v1";
        if is_v1
            && (review["apiVersion"] != format!("{GROUP}/v1")
                || text(review, "kind") != "ConversionReview")
        {
            let found = shown_kind(review);
            return Err(format!(
                "expected webhook response of {GROUP}/v1, Kind=ConversionReview, got {found}"
            ));
        }
        if !response.is_object() {
            return Err("no response provided".to_owned());
        }
        if is_v1 && response["uid"] != uid {
            let found = text(response, "uid");
            return Err(format!("expected response.uid={uid:?}, got {found:?}"));
        }
        let result = &response["result"];
        match (text(result, "status"), text(result, "message")) {
            ("Success", _) => Ok(()),
            (status, "") => Err(format!("response.result.status was '{status}', not 'Success'")),
            (_, message) => Err(message.to_owned()),
        }
    }
}

/// Why an object cannot be converted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct ConversionError(pub(crate) String);

/// Returns `example.com/v1, Kind=Widget`.
pub(crate) fn shown_kind(object: &Value) -> String {
    format!("{}, Kind={}", text(object, "apiVersion"), text(object, "kind"))
}

/// Checks a converted object. Its metadata is that of the original, except for labels and
/// annotations.
fn accept(
    original: &Value,
    mut converted: Value,
    desired: &str,
    index: usize,
) -> Result<Value, ConversionError> {
    let kind = shown_kind(original);
    let invalid = |why: String| {
        ConversionError(format!("conversion webhook for {kind} returned invalid {why}"))
    };
    let found = text(&converted, "apiVersion");
    if found != desired {
        return Err(invalid(format!(
            "object at index {index}: invalid groupVersion (expected {desired}, received {found})"
        )));
    }
    let (expected, found) = (text(original, "kind"), text(&converted, "kind"));
    if found != expected {
        return Err(invalid(format!(
            "object at index {index}: invalid kind (expected {expected}, received {found})"
        )));
    }
    for (field, word) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
        let (before, after) = (original.meta(field), converted.meta(field));
        if before != after {
            return Err(invalid(format!("object: must have the same {word}: {before} != {after}")));
        }
    }
    let restored = restored_metadata(original, &converted);
    converted["metadata"] = restored.map_err(|why| invalid(format!("metadata: {why}")))?;
    Ok(converted)
}

/// Returns the original metadata with the labels and annotations of the converted object.
fn restored_metadata(original: &Value, converted: &Value) -> Result<Value, String> {
    let Some(given) = converted.get("metadata") else {
        return Err("missing metadata in converted object".to_owned());
    };
    if !given.is_object() {
        let kind = go_type(given);
        return Err(format!("invalid metadata of type {kind} in converted object"));
    }
    let mut metadata = original["metadata"].clone();
    for field in ["labels", "annotations"] {
        if let Some(fields) = metadata.as_object_mut() {
            fields.remove(field);
        }
        let value = &given[field];
        if value.is_null() {
            continue;
        }
        let Some(pairs) = value.as_object() else {
            let kind = go_type(value);
            return Err(format!("invalid metadata.{field} of type {kind} in converted object"));
        };
        if let Some((key, value)) = pairs.iter().find(|(_, value)| !value.is_string()) {
            let kind = go_type(value);
            return Err(format!(
                "metadata.{field}[{key}] must be a string, but is {kind} in converted object"
            ));
        }
        metadata[field] = value.clone();
    }
    if metadata["labels"] != original["metadata"]["labels"] {
        let root = Path::Root;
        let path = root.field("metadata");
        let errors = validate_labels(metadata.get("labels"), path.field("labels"));
        if let Some(error) = errors.first() {
            return Err(format!("{}: {}", error.field, error.message));
        }
    }
    Ok(metadata)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn webhook(versions: &Value) -> Option<Webhook> {
        let webhook = json!({
            "clientConfig": {"url": "https://a.example/convert"},
            "conversionReviewVersions": versions,
        });
        Webhook::of(&json!({"spec": {"conversion": {"strategy": "Webhook", "webhook": webhook}}}))
    }

    fn original() -> Value {
        json!({
            "apiVersion": "example.com/v1", "kind": "Widget",
            "metadata": {"name": "w", "uid": "u", "labels": {"a": "b"}, "generation": 3},
        })
    }

    /// Returns the result for a response with this object.
    fn converted(object: &Value) -> Result<Value, String> {
        let review = json!({
            "kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1",
            "response": {
                "uid": "r", "result": {"status": "Success"}, "convertedObjects": [object],
            },
        });
        of_review(review)
    }

    fn of_review(review: Value) -> Result<Value, String> {
        let webhook = webhook(&json!(["v2", "v1"])).expect("a webhook");
        let originals = [original()];
        let converted = webhook.converted("r", (&originals, "example.com/v2"), review);
        converted.map(|mut objects| objects.remove(0)).map_err(|error| error.to_string())
    }

    #[test]
    fn a_converter_changes_labels_and_annotations_but_no_other_metadata() {
        let mut new = original();
        new["apiVersion"] = json!("example.com/v2");
        new["spec"] = json!({"size": 1});
        new["metadata"] = json!({
            "name": "w", "uid": "u", "generation": 9, "annotations": {"c": "d"},
            "finalizers": ["f"],
        });
        let object = converted(&new).expect("valid");
        let expected = json!({"name": "w", "uid": "u", "generation": 3, "annotations": {"c": "d"}});
        assert_eq!((&object["metadata"], &object["spec"]["size"]), (&expected, &json!(1)));
    }

    #[rstest]
    #[case("/apiVersion", json!("example.com/v1"),
        "object at index 0: invalid groupVersion (expected example.com/v2, received \
         example.com/v1)")]
    #[case("/kind", json!("Other"),
        "object at index 0: invalid kind (expected Widget, received Other)")]
    #[case("/metadata/name", json!("x"), "object: must have the same name: w != x")]
    #[case("/metadata/uid", json!("x"), "object: must have the same UID: u != x")]
    #[case("/metadata/labels/a", json!(1),
        "metadata: metadata.labels[a] must be a string, but is int64 in converted object")]
    #[case("/metadata/labels", json!([]),
        "metadata: invalid metadata.labels of type []interface {} in converted object")]
    #[case("/metadata/labels/a", json!("no label!"), "metadata: metadata.labels: ")]
    fn a_converter_must_keep_the_identity(
        #[case] pointer: &str,
        #[case] value: Value,
        #[case] expected: &str,
    ) {
        let mut new = original();
        new["apiVersion"] = json!("example.com/v2");
        *new.pointer_mut(pointer).expect("a field") = value;
        let error = converted(&new).unwrap_err();
        let prefix = format!(
            "conversion webhook for example.com/v1, Kind=Widget returned invalid {expected}"
        );
        assert!(error.starts_with(&prefix), "{error}");
    }

    #[rstest]
    #[case(json!({"uid": "x"}), "failed: expected response.uid=\"r\", got \"x\"")]
    #[case(json!({"uid": "r", "result": {"status": "Failed", "message": "no"}}), "failed: no")]
    #[case(
        json!({"uid": "r", "result": {"status": "Failed"}}),
        "failed: response.result.status was 'Failed', not 'Success'"
    )]
    #[case(
        json!({"uid": "r", "result": {"status": "Success"}}),
        "returned 0 objects, expected 1"
    )]
    #[case(Value::Null, "failed: no response provided")]
    fn a_failed_review_is_an_error(#[case] response: Value, #[case] expected: &str) {
        let review = json!({
            "kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1",
            "response": response,
        });
        let error = of_review(review).unwrap_err();
        assert_eq!(error, format!("conversion webhook for example.com/v1, Kind=Widget {expected}"));
    }

    #[test]
    fn the_first_known_version_of_the_review_counts() {
        let version = |versions: Value| {
            let review = webhook(&versions)?.review("r", &[], "example.com/v2");
            Some(review["apiVersion"].as_str()?.to_owned())
        };
        assert_eq!(
            version(json!(["v2", "v1beta1", "v1"])).as_deref(),
            Some("apiextensions.k8s.io/v1beta1")
        );
        assert_eq!(version(json!(["v2"])), None);
    }
}
