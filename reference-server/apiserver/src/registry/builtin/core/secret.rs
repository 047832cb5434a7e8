//! `secrets`: bytes in base64, with a type that requires certain keys.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::configmap::sealed;
use crate::registry::builtin::data::resource;
use crate::registry::builtin::{BuiltinType, FieldLabel, Hooks, warnings};
use kubeproof_apimachinery::object::validation::names::config_key;
use kubeproof_apimachinery::table::column::{Cell, age, column, count};

use kubeproof_apimachinery::schema::FieldError;

const DATA_LIMIT: usize = 1024 * 1024;

/// The keys that a type requires.
const PROMISES: [(&str, &[&str]); 3] = [
    ("kubernetes.io/tls", &["tls.crt", "tls.key"]),
    ("kubernetes.io/dockerconfigjson", &[".dockerconfigjson"]),
    ("kubernetes.io/dockercfg", &[".dockercfg"]),
];

pub(super) fn secrets() -> BuiltinType {
    BuiltinType {
        field_labels: &[FieldLabel { label: "type", pointer: "/type", absent: "" }],
        columns: vec![
            column("Type", "string", Cell::Pointer("/type")),
            column("Data", "string", Cell::Computed(|object| json!(count(object, "/data")))),
            age(),
        ],
        hooks: Hooks {
            default: fold_string_data,
            validate,
            validate_update,
            checks_prefix: true,
            warn: warnings::secrets::secret,
            ..Hooks::NONE
        },
        ..resource("", "v1", "secrets")
    }
}

/// `stringData` overrides `data` and is never stored.
fn fold_string_data(object: &mut Value) {
    let Some(fields) = object.as_object_mut() else { return };
    let Some(Value::Object(texts)) = fields.remove("stringData") else { return };
    let data = fields.entry("data").or_insert_with(|| Value::Object(Map::new()));
    let Some(data) = data.as_object_mut() else { return };
    for (key, text) in texts {
        data.insert(key, json!(STANDARD.encode(text.as_str().unwrap_or_default())));
    }
}

fn validate(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut size = 0;
    for (key, value) in object.get("data").and_then(Value::as_object).into_iter().flatten() {
        let wrong = config_key(key);
        errors.extend(
            wrong.iter().map(|why| FieldError::invalid(format!("data[{key}]"), &json!(key), why)),
        );
        size += value.as_str().map_or(0, str::len) / 4 * 3;
    }
    if size > DATA_LIMIT {
        errors.push(FieldError::too_long("data", DATA_LIMIT as u64));
    }
    let kind = object.get("type").and_then(Value::as_str).unwrap_or_default();
    let has = |key: &str| object.get("data").is_some_and(|data| data.get(key).is_some());
    let missing = |key: &str| FieldError::required(format!("data[{key}]"), "");
    if let Some((_, keys)) = PROMISES.iter().find(|(promised, _)| *promised == kind) {
        errors.extend(keys.iter().filter(|key| !has(key)).map(|key| missing(key)));
    }
    errors.extend(registry_credentials(kind, object));
    let is_empty = |key: &str| object["data"][key].as_str().is_none_or(str::is_empty);
    if kind == "kubernetes.io/ssh-auth" && is_empty("ssh-privatekey") {
        errors.push(missing("ssh-privatekey"));
    }
    if kind == "kubernetes.io/basic-auth" && !has("username") && !has("password") {
        errors.extend(["username", "password"].map(missing));
    }
    if kind == "kubernetes.io/service-account-token" {
        let annotation = "kubernetes.io/service-account.name";
        let named = object.pointer("/metadata/annotations").and_then(|all| all.get(annotation));
        if named.and_then(Value::as_str).unwrap_or_default().is_empty() {
            errors.push(FieldError::required(format!("metadata.annotations[{annotation}]"), ""));
        }
    }
    errors
}

/// The credentials of a container registry are a JSON object. The error does not show them.
fn registry_credentials(kind: &str, secret: &Value) -> Option<FieldError> {
    let key = match kind {
        "kubernetes.io/dockerconfigjson" => ".dockerconfigjson",
        "kubernetes.io/dockercfg" => ".dockercfg",
        _ => return None,
    };
    let bytes = STANDARD.decode(secret["data"][key].as_str()?).ok()?;
    let why = match serde_json::from_slice::<Value>(&bytes) {
        Ok(Value::Object(_) | Value::Null) => return None,
        Ok(value) => {
            let what = match value {
                Value::Array(_) => "array",
                Value::String(_) => "string",
                Value::Bool(_) => "bool",
                _ => "number",
            };
            format!("json: cannot unmarshal {what} into Go value of type map[string]interface {{}}")
        }
        Err(error) if error.is_eof() => "unexpected end of JSON input".to_owned(),
        Err(error) => syntax_error(&error, &bytes),
    };
    let shown = json!("<secret contents redacted>");
    Some(FieldError::invalid(format!("data[{key}]"), &shown, &why))
}

/// Returns the message of Go about bytes that are no JSON.
fn syntax_error(error: &serde_json::Error, bytes: &[u8]) -> String {
    let line = bytes.split(|byte| *byte == b'\n').nth(error.line().saturating_sub(1));
    let rest = line.and_then(|line| line.get(error.column().saturating_sub(1)..));
    let shown = rest.and_then(|rest| String::from_utf8_lossy(rest).chars().next());
    let text = error.to_string();
    match shown {
        Some(c) if text.starts_with("expected value") => {
            format!("invalid character {c:?} looking for beginning of value")
        }
        Some(c) if text.starts_with("trailing characters") => {
            format!("invalid character {c:?} after top-level value")
        }
        _ => text,
    }
}

fn validate_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if new.get("type") != old.get("type") {
        errors.push(FieldError::invalid("type", &new["type"], "field is immutable"));
    }
    errors.extend(sealed(new, old, &["data"]));
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn string_data_wins_and_disappears() {
        let mut secret = json!({"data": {"a": "QQ=="}, "stringData": {"a": "x", "b": "y"}});
        fold_string_data(&mut secret);
        assert_eq!(secret, json!({"data": {"a": "eA==", "b": "eQ=="}}));
    }

    #[test]
    fn a_type_promises_keys() {
        let secret = json!({"type": "kubernetes.io/tls", "data": {}});
        let fields: Vec<_> = validate(&secret).into_iter().map(|error| error.field).collect();
        assert_eq!(fields, ["data[tls.crt]", "data[tls.key]"]);
        let secret = json!({"type": "kubernetes.io/ssh-auth", "data": {"ssh-privatekey": ""}});
        assert_eq!(validate(&secret)[0].field, "data[ssh-privatekey]");
        let credentials = |text: &str| {
            let data = json!({".dockercfg": STANDARD.encode(text)});
            validate(&json!({"type": "kubernetes.io/dockercfg", "data": data}))
        };
        assert_eq!(credentials("{}"), []);
        assert_eq!(credentials("null"), []);
        let message = |text: &str| credentials(text)[0].message.clone();
        let expected = "invalid character 'a' looking for beginning of value";
        assert!(message("a").ends_with(expected), "{}", message("a"));
        let expected = "invalid character 'e' after top-level value";
        assert!(message("{} e").ends_with(expected), "{}", message("{} e"));
        assert_eq!(credentials("")[0].field, "data[.dockercfg]");
        assert_eq!(credentials("[1]")[0].field, "data[.dockercfg]");
        let secret = json!({"type": "kubernetes.io/basic-auth", "data": {"username": "YQ=="}});
        assert!(validate(&secret).is_empty());
    }

    #[test]
    fn the_type_is_forever() {
        let errors = validate_update(&json!({"type": "b"}), &json!({"type": "a"}));
        assert_eq!(errors[0].field, "type");
    }
}
