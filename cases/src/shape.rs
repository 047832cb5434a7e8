//! Reads a file into its raw type, or reports everything that does not fit.
//!
//! serde stops at the first thing that is wrong. So when it fails, the file is compared with the
//! JSON Schema of the type, which serde's derive and schemars' derive make from the same source.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Number, Value};

use crate::diagnostic::Diagnostic;
use crate::yaml::{self, Content, Key, Node, Source, YamlError};

/// Reads a file.
pub(crate) fn read<T: DeserializeOwned + JsonSchema>(
    source: &Source,
) -> Result<T, Vec<Diagnostic>> {
    let node = yaml::read(source).map_err(|error| vec![parser_error(source, error)])?;
    node.to_type().map_err(|first| {
        let errors = differences(source, &node, &schemars::schema_for!(T).to_value());
        if errors.is_empty() { vec![parser_error(source, first)] } else { errors }
    })
}

/// Reports where a file differs from a schema.
pub(crate) fn compare(source: &Source, schema: &Value) -> Vec<Diagnostic> {
    match yaml::read(source) {
        Ok(node) => differences(source, &node, schema),
        Err(error) => vec![parser_error(source, error)],
    }
}

fn differences(source: &Source, node: &Node, schema: &Value) -> Vec<Diagnostic> {
    let mut comparison = Comparison { source, root: schema, errors: Vec::new() };
    comparison.node(node, schema);
    comparison.errors
}

fn parser_error(source: &Source, error: YamlError) -> Diagnostic {
    // The parser's hint about its configuration does not help authors of cases.
    let message = error.message.split(", set DuplicateKeyPolicy").next().unwrap_or_default();
    let diagnostic = Diagnostic::new(source, error.place, "yaml", message);
    if message.starts_with("mapping values are not allowed") {
        diagnostic.help("put text with `: ` in quotes, or below `key: >-`")
    } else {
        diagnostic
    }
}

struct Comparison<'a> {
    source: &'a Source,
    root: &'a Value,
    errors: Vec<Diagnostic>,
}

impl<'a> Comparison<'a> {
    fn node(&mut self, node: &Node, schema: &'a Value) {
        let forms = self.forms(schema);
        let fitting: Vec<&'a Value> =
            forms.iter().copied().filter(|form| accepts(form, &node.content)).collect();
        match (&node.content, fitting.as_slice()) {
            (_, []) => self.wrong_type(node, &forms),
            (Content::String(text), forms) => self.choice(node, text, forms),
            (Content::Map(members), [form, ..]) => self.mapping(node, members, form),
            (Content::List(items), [form, ..]) => {
                let schemas = std::iter::repeat_n(form.get("items"), items.len());
                for (item, schema) in items.iter().zip(schemas.flatten()) {
                    self.node(item, schema);
                }
            }
            _ => {}
        }
    }

    /// One of a few words, unless some form takes any text.
    fn choice(&mut self, node: &Node, text: &str, forms: &[&'a Value]) {
        let choices: Vec<&str> = forms.iter().copied().flat_map(choices).collect();
        if forms.iter().all(|form| is_choice(form)) && !choices.contains(&text) {
            let message = format!("`{text}` is not known here");
            self.error(node, "unknown-value", message, |error| error.suggest(text, choices));
        }
    }

    /// The alternatives of a schema, with references resolved.
    fn forms(&self, schema: &'a Value) -> Vec<&'a Value> {
        if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
            let pointer = target.trim_start_matches('#');
            return self.root.pointer(pointer).map(|schema| self.forms(schema)).unwrap_or_default();
        }
        match schema.get("anyOf").or(schema.get("oneOf")).and_then(Value::as_array) {
            Some(forms) => forms.iter().flat_map(|form| self.forms(form)).collect(),
            None => vec![schema],
        }
    }

    fn mapping(&mut self, node: &Node, members: &[(Key, Node)], schema: &'a Value) {
        let properties = schema.get("properties").and_then(Value::as_object);
        let known =
            properties.into_iter().flat_map(|properties| properties.keys().map(String::as_str));
        for (key, value) in members {
            let property = properties.and_then(|properties| properties.get(&key.value));
            let others = schema.get("additionalProperties");
            match property.or(others) {
                Some(Value::Bool(false)) => {
                    let missing = known
                        .clone()
                        .filter(|known| !members.iter().any(|(key, _)| key.value == **known));
                    self.errors.push(
                        Diagnostic::new(
                            self.source,
                            key.place.clone(),
                            "unknown-key",
                            format!("the key `{}` is not known here", key.value),
                        )
                        .suggest(&key.value, missing),
                    );
                }
                Some(schema) => self.node(value, schema),
                None => {}
            }
        }
        let required = schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str);
        for name in required {
            if !members.iter().any(|(key, _)| key.value == name) {
                self.error(
                    node,
                    "missing-key",
                    format!("the key `{name}` is missing here"),
                    |error| error,
                );
            }
        }
    }

    fn wrong_type(&mut self, node: &Node, forms: &[&'a Value]) {
        let mut expected: Vec<String> = forms.iter().flat_map(|form| expected(form)).collect();
        expected.dedup();
        let message = format!("expected {}, found {}", expected.join(" or "), found(&node.content));
        self.error(node, "wrong-type", message, |error| error);
    }

    fn error(
        &mut self,
        node: &Node,
        code: &'static str,
        message: String,
        complete: impl FnOnce(Diagnostic) -> Diagnostic,
    ) {
        self.errors.push(complete(Diagnostic::new(self.source, node.place.clone(), code, message)));
    }
}

fn types(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// Whether the parser would read a value into a type with this schema, as far as the kind of value
/// goes.
fn accepts(schema: &Value, value: &Content) -> bool {
    let types = types(schema);
    types.is_empty()
        || types.iter().any(|name| match value {
            Content::Null => *name == "null",
            Content::Bool(_) => matches!(*name, "boolean" | "string"),
            Content::Number(number) if is_integer(number) => {
                matches!(*name, "integer" | "number" | "string")
            }
            Content::Number(_) => matches!(*name, "number" | "string"),
            Content::String(_) => *name == "string",
            Content::List(_) => *name == "array",
            Content::Map(_) => *name == "object",
        })
}

/// The strings that a schema lists.
fn choices(schema: &Value) -> Vec<&str> {
    let listed = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
    listed.chain(schema.get("const")).filter_map(Value::as_str).collect()
}

fn is_choice(schema: &Value) -> bool {
    schema.get("enum").is_some() || schema.get("const").is_some()
}

fn expected(schema: &Value) -> Vec<String> {
    if schema.get("contentMediaType").is_some() {
        return vec!["JSON in a block scalar (`key: |`)".to_owned()];
    }
    let words = types(schema).into_iter().filter(|name| *name != "null").map(|name| match name {
        "object" => "a mapping",
        "array" => "a list",
        "integer" => "a whole number",
        "boolean" => "`true` or `false`",
        "number" => "a number",
        _ => "text",
    });
    words.map(str::to_owned).collect()
}

fn found(value: &Content) -> &'static str {
    match value {
        Content::Null => "nothing",
        Content::Bool(_) => "a boolean",
        Content::Number(number) if is_integer(number) => "a whole number",
        Content::Number(_) => "a number",
        Content::String(_) => "text",
        Content::List(_) => "a list",
        Content::Map(_) => "a mapping",
    }
}

fn is_integer(number: &Number) -> bool {
    number.is_i64() || number.is_u64()
}
