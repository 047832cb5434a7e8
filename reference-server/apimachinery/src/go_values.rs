//! JSON values as messages of kube-apiserver show them, in the notation of Go.

use serde_json::Value;

/// Returns the name of the type that Go decodes a value into, such as `float64` or
/// `[]interface {}`.
pub fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// Returns a value as Go prints it, such as `map[a:1 b:[x y]]`.
pub(crate) fn go_text(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(go_text).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(fields) => {
            let mut fields: Vec<_> =
                fields.iter().map(|(name, value)| format!("{name}:{}", go_text(value))).collect();
            fields.sort_unstable();
            format!("map[{}]", fields.join(" "))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case(json!(null), "<nil>", "<nil>")]
    #[case(json!(1), "int64", "1")]
    #[case(json!(1.5), "float64", "1.5")]
    #[case(json!(["x", true]), "[]interface {}", "[x true]")]
    #[case(json!({"b": {}, "a": null}), "map[string]interface {}", "map[a:<nil> b:map[]]")]
    fn values_have_types_and_texts(#[case] value: Value, #[case] ty: &str, #[case] text: &str) {
        assert_eq!((go_type(&value), go_text(&value).as_str()), (ty, text));
    }
}
