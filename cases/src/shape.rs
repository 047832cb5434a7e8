//! Reads a file into its raw type, or says everything that does not fit.
//!
//! serde stops at the first thing that is wrong. So when it fails, the file is compared with the JSON Schema of the
//! type, which serde's derive and schemars' derive make from the same source.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::diagnostic::Diagnostic;
use crate::syntax::yaml::{self, Node, NodeValue, YamlError};
use crate::syntax::{Located, Source};

/// Reads a file.
pub(crate) fn read<T: DeserializeOwned + JsonSchema>(source: &Source) -> Result<T, Vec<Diagnostic>> {
    yaml::read(source).map_err(|first| match yaml::read::<Node>(source) {
        Ok(node) => {
            let schema = schemars::schema_for!(T).to_value();
            let mut comparison = Comparison { source, root: &schema, errors: Vec::new() };
            comparison.node(&node, &schema);
            if comparison.errors.is_empty() { vec![parser_error(source, first)] } else { comparison.errors }
        }
        Err(error) => vec![parser_error(source, error)],
    })
}

fn parser_error(source: &Source, error: YamlError) -> Diagnostic {
    // Its author tells how to configure the parser; ours cannot.
    let message = error.message.split(", set DuplicateKeyPolicy").next().unwrap_or_default();
    let diagnostic = Diagnostic::new(source, error.place, "yaml", message);
    if message.starts_with("mapping values are not allowed") {
        diagnostic.help("text with `: ` in it stands in quotes, or below `key: >-`")
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
            forms.iter().copied().filter(|form| accepts(form, &node.value)).collect();
        match (&node.value, fitting.as_slice()) {
            (_, []) => self.wrong_type(node, &forms),
            (NodeValue::String(text), forms) => self.choice(node, text, forms),
            (NodeValue::Mapping(members), [form]) => self.mapping(node, members, form),
            (NodeValue::Mapping(members), variants) => self.variant(node, members, variants),
            (NodeValue::Sequence(items), [form, ..]) => {
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

    /// The schemas of which one must fit, references followed.
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

    fn mapping(&mut self, node: &Node, members: &[(Located<String>, Node)], schema: &'a Value) {
        let properties = schema.get("properties").and_then(Value::as_object);
        let known = properties.into_iter().flat_map(|properties| properties.keys().map(String::as_str));
        for (key, value) in members {
            let property = properties.and_then(|properties| properties.get(&key.value));
            let others = schema.get("additionalProperties");
            match property.or(others) {
                Some(Value::Bool(false)) => {
                    let missing =
                        known.clone().filter(|known| !members.iter().any(|(key, _)| key.value == **known));
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
        let required =
            schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        for name in required {
            if !members.iter().any(|(key, _)| key.value == name) {
                self.error(node, "missing-key", format!("the key `{name}` is missing here"), |error| error);
            }
        }
    }

    /// One key decides what the mapping is: `given`, `request`, ...
    fn variant(&mut self, node: &Node, members: &[(Located<String>, Node)], variants: &[&'a Value]) {
        let tag = |variant: &'a Value| {
            variant.get("properties").and_then(Value::as_object).and_then(|all| all.iter().next())
        };
        let [(key, value)] = members else {
            let found = members.len();
            let message = format!("expected a mapping with one key, found {found}");
            return self
                .error(node, "one-of", message, |error| error.help("is something indented too little?"));
        };
        let tags: Vec<_> = variants.iter().filter_map(|variant| tag(variant)).collect();
        if let Some((_, schema)) = tags.iter().find(|(name, _)| **name == key.value) {
            self.node(value, schema);
        } else {
            let message = format!("the key `{}` is not known here", key.value);
            self.errors.push(
                Diagnostic::new(self.source, key.place.clone(), "unknown-key", message)
                    .suggest(&key.value, tags.iter().map(|(name, _)| name.as_str())),
            );
        }
    }

    fn wrong_type(&mut self, node: &Node, forms: &[&'a Value]) {
        let mut expected: Vec<String> = forms.iter().flat_map(|form| expected(form)).collect();
        expected.dedup();
        let message = format!("expected {}, found {}", expected.join(" or "), found(&node.value));
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

/// Whether the parser would read a value into a type with this schema, as far as the kind of value goes.
fn accepts(schema: &Value, value: &NodeValue) -> bool {
    let types = types(schema);
    types.is_empty()
        || types.iter().any(|name| match value {
            NodeValue::Null => *name == "null",
            NodeValue::Boolean => matches!(*name, "boolean" | "string"),
            NodeValue::Integer => matches!(*name, "integer" | "number" | "string"),
            NodeValue::Number => matches!(*name, "number" | "string"),
            NodeValue::String(_) => *name == "string",
            NodeValue::Sequence(_) => *name == "array",
            NodeValue::Mapping(_) => *name == "object",
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

fn found(value: &NodeValue) -> &'static str {
    match value {
        NodeValue::Null => "nothing",
        NodeValue::Boolean => "a boolean",
        NodeValue::Integer => "a whole number",
        NodeValue::Number => "a number",
        NodeValue::String(_) => "text",
        NodeValue::Sequence(_) => "a list",
        NodeValue::Mapping(_) => "a mapping",
    }
}
