//! Numbers and enumerations.

use serde_json::Value;

use super::fields::Field;

pub(super) fn sized(field: &Field<'_>) -> Option<String> {
    let schema = field.schema;
    if !field.is("integer") || schema["x-kubernetes-int-or-string"] == true {
        return None;
    }
    let bound = |name| schema[name].as_i64();
    match schema["format"].as_str() {
        Some("int64") => None,
        Some("int32") => {
            let fits = |name| bound(name).is_none_or(|bound| i32::try_from(bound).is_ok());
            let narrow = !(fits("minimum") && fits("maximum"));
            narrow.then(|| {
                "the integer has the format int32, and bounds that int32 does not hold".to_owned()
            })
        }
        // Bounds determine the width, too.
        None if bound("minimum").is_some() && bound("maximum").is_some() => None,
        format => Some(format!(
            "the integer has the format {}, not int32 or int64",
            format.unwrap_or("(none)")
        )),
    }
}

pub(super) fn unsigned(field: &Field<'_>) -> Option<String> {
    let format = field.schema["format"].as_str()?;
    format.starts_with("uint").then(|| format!("the format {format} is unsigned"))
}

pub(super) fn float_in_spec(field: &Field<'_>) -> Option<String> {
    (field.in_spec && field.is("number"))
        .then(|| "the spec holds a floating-point number".to_owned())
}

pub(super) fn enums_of_strings(field: &Field<'_>) -> Option<String> {
    let other = field.schema["enum"]
        .as_array()?
        .iter()
        .find(|value| !value.is_string() && !value.is_null())?;
    Some(format!("the enumeration holds {other}, which is no string"))
}

pub(super) fn enums_in_camel_case(field: &Field<'_>) -> Option<String> {
    let good = |value: &str| {
        // Symbols such as `*` have no case.
        !value.contains(char::is_alphabetic)
            || value.starts_with(|c: char| c.is_ascii_uppercase())
                && value.chars().all(|c| c.is_ascii_alphanumeric())
    };
    let values = field.schema["enum"].as_array()?.iter().filter_map(Value::as_str);
    let bad: Vec<&str> = values.filter(|value| !good(value)).collect();
    (!bad.is_empty()).then(|| format!("these values are not CamelCase: {}", bad.join(", ")))
}

pub(super) fn wide(field: &Field<'_>) -> Option<String> {
    let is_wide = matches!(field.name, "resourceVersion" | "uid") || field.name.ends_with("UID");
    let format = field.schema["format"].as_str().unwrap_or_default();
    let too_wide = matches!(format, "int128" | "uint64" | "uint128");
    let number = field.is("integer") || field.is("number");
    (number && (is_wide || too_wide))
        .then(|| "the number may need more than 53 bits, and is no string".to_owned())
}
