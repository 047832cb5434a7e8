//! The reference page of the case language, made from the types that read the files.

use std::fmt::Write as _;

use serde_json::Value;

use crate::catalogue::Catalogue;
use crate::lower::expression::{FUNCTIONS, MEMBERS};
use crate::lower::pattern::{OPERATORS, TYPES};
use crate::lower::stream::MEMBERS as STREAM_MEMBERS;
use crate::lower::text::{ALWAYS, OF_POD, OF_PROTOCOL, OF_SUBJECT};
use crate::protocol::PROTOCOL_SETS;
use crate::schema::{FileSchema, schemas};

/// The widest line of the page.
const WIDTH: usize = 100;

const INTRODUCTION: &str = include_str!("reference/introduction.md");
const VALUES: &str = include_str!("reference/values.md");
const EXPRESSIONS: &str = include_str!("reference/expressions.md");
const STREAMS: &str = include_str!("reference/streams.md");

/// Returns the reference page in Markdown.
pub fn reference(catalogue: &Catalogue) -> String {
    let [case, fragment, subject, requirements, ..] = schemas(catalogue);
    let mut page = Page { text: String::new() };
    page.text.push_str(INTRODUCTION);
    page.heading(2, "Case files");
    page.keys(&case, "");
    page.heading(3, "`subject`");
    page.definition(&case, "RawSubject");
    page.heading(3, "`needs`");
    page.choices(&case, "Capability");
    page.heading(2, "Steps");
    page.definition(&case, "RawStep");
    for (action, definition) in actions(&case) {
        page.heading(3, &format!("`{action}`"));
        page.definition(&case, &definition);
        for inner in INNER.iter().filter(|(of, _)| *of == action).map(|(_, inner)| inner) {
            page.heading(4, &format!("`{}`", inner.0));
            page.definition(&case, inner.1);
        }
    }
    page.heading(2, "Checks");
    page.definition(&case, "RawCheck");
    for (key, definition) in [("rejected", "RawRejected"), ("deviation", "RawDeviation")] {
        page.heading(3, &format!("`{key}`"));
        page.definition(&case, definition);
    }
    page.patterns();
    page.variables();
    page.expressions();
    page.streams();
    page.heading(2, "Fragments");
    page.keys(&fragment, "");
    page.heading(2, "Subject files");
    page.keys(&subject, "");
    page.heading(2, "Requirement files");
    page.definition(&requirements, "Requirement");
    page.heading(2, "Design rules");
    page.choices(&case, "Rule");
    page.text
}

/// Definitions that only one action uses.
const INNER: [(&str, (&str, &str)); 5] = [
    ("await", ("next", "RawEvent")),
    ("request", ("protobuf", "RawProtobuf")),
    ("update", ("edit", "RawEdit")),
    ("schema", ("expect", "RawSchemaCheck")),
    ("use", ("with parameters", "RawUseFragment")),
];

/// The actions of a step with the definitions of their keys.
fn actions(case: &FileSchema) -> Vec<(String, String)> {
    let properties = case.schema.pointer("/$defs/RawStep/properties").and_then(Value::as_object);
    let of = |(name, schema): (&String, &Value)| {
        let forms = schema.get("anyOf").and_then(Value::as_array);
        let mut forms = forms.into_iter().flatten().chain([schema]);
        let reference = forms.find_map(|form| form.get("$ref")?.as_str())?;
        Some((name.clone(), reference.rsplit('/').next()?.to_owned()))
    };
    properties.into_iter().flatten().filter_map(of).filter(|(name, _)| name != "use").collect()
}

struct Page {
    text: String,
}

impl Page {
    fn heading(&mut self, level: usize, text: &str) {
        let _ = write!(self.text, "\n{} {text}\n\n", "#".repeat(level));
    }

    /// A list entry, wrapped.
    fn entry(&mut self, head: &str, description: &str) {
        let separator = if description.is_empty() { "" } else { ": " };
        let text = format!(
            "{head}{separator}{}",
            description.split_whitespace().collect::<Vec<_>>().join(" ")
        );
        let mut line = "-".to_owned();
        for word in text.split(' ') {
            if line.chars().count() + 1 + word.chars().count() > WIDTH {
                self.text.push_str(&line);
                self.text.push('\n');
                " ".clone_into(&mut line);
            }
            line.push(' ');
            line.push_str(word);
        }
        self.text.push_str(&line);
        self.text.push('\n');
    }

    fn paragraph(&mut self, text: &str) {
        let mut line = String::new();
        for word in text.split_whitespace() {
            if line.chars().count() + 1 + word.chars().count() > WIDTH {
                self.text.push_str(&line);
                self.text.push('\n');
                line.clear();
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        self.text.push_str(&line);
        self.text.push_str("\n\n");
    }

    fn definition(&mut self, file: &FileSchema, name: &str) {
        self.keys(file, &format!("/$defs/{name}"));
    }

    /// The description of a mapping, and its keys.
    fn keys(&mut self, file: &FileSchema, pointer: &str) {
        let Some(schema) = file.schema.pointer(pointer) else { return };
        if let Some(description) = schema["description"].as_str() {
            self.paragraph(description);
        }
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let must = if required.contains(&name.as_str()) { ", required" } else { "" };
            let kind = kind_of(&file.schema, property);
            let head = format!("`{name}` ({kind}{must})");
            self.entry(&head, property["description"].as_str().unwrap_or_default());
        }
    }

    /// The words of an enumeration.
    fn choices(&mut self, file: &FileSchema, name: &str) {
        let Some(schema) = file.schema.pointer(&format!("/$defs/{name}")) else { return };
        if let Some(description) = schema["description"].as_str() {
            self.paragraph(description);
        }
        for choice in schema["oneOf"].as_array().into_iter().flatten() {
            let words = choice["enum"].as_array().into_iter().flatten().chain(choice.get("const"));
            for word in words.filter_map(Value::as_str) {
                self.entry(
                    &format!("`{word}`"),
                    choice["description"].as_str().unwrap_or_default(),
                );
            }
        }
    }

    fn patterns(&mut self) {
        self.heading(2, "Patterns");
        self.paragraph(
            "`body`, `details`, `object` of an event and `frame` are patterns. A mapping matches \
             when each of its members matches; other members do not matter. A list matches an \
             array of the same length, item by item. Everything else matches what is equal. A \
             mapping with one of these keys is special:",
        );
        for (_, meaning) in OPERATORS {
            self.entry(meaning, "");
        }
        let types: Vec<String> = TYPES.iter().map(|(name, _)| format!("`{name}`")).collect();
        self.text.push('\n');
        self.paragraph(&format!("Types are {}.", types.join(", ")));
    }

    fn variables(&mut self) {
        self.heading(2, "Names and values");
        self.text.push_str(VALUES);
        for (title, variables) in [
            ("In every case", &ALWAYS[..]),
            ("With `subject`", &OF_SUBJECT[..]),
            ("With `protocols`", &OF_PROTOCOL[..]),
            ("With `needs: [running-pods]`", &OF_POD[..]),
        ] {
            self.heading(3, title);
            for (name, meaning) in variables {
                self.entry(&format!("`${{{name}}}`"), meaning);
            }
        }
    }

    fn expressions(&mut self) {
        self.heading(2, "Expressions");
        self.text.push_str(EXPRESSIONS);
        let members: Vec<String> = MEMBERS.iter().map(|name| format!("`{name}`")).collect();
        self.text.push('\n');
        self.paragraph(&format!("A step has the members {}.", members.join(", ")));
        self.heading(3, "Functions");
        self.paragraph(
            "These functions are kubeproof's own. The standard ones of CEL are there, too.",
        );
        for (_, meaning) in FUNCTIONS.iter().filter(|(_, meaning)| !meaning.is_empty()) {
            self.entry(meaning, "");
        }
    }

    fn streams(&mut self) {
        self.heading(2, "Streams");
        self.text.push_str(STREAMS);
        let members: Vec<String> = STREAM_MEMBERS.iter().map(|name| format!("`{name}`")).collect();
        self.text.push('\n');
        self.paragraph(&format!(
            "A stream has the members {}, and its channels by name.",
            members.join(", ")
        ));
        self.heading(3, "Sets of protocols");
        for (set, members) in PROTOCOL_SETS {
            let members: Vec<String> = members.iter().map(|name| format!("`{name}`")).collect();
            self.entry(&format!("`{set}`"), &members.join(", "));
        }
    }
}

/// The type of a property, in words.
fn kind_of(root: &Value, property: &Value) -> String {
    if let Some(reference) = property["$ref"].as_str() {
        let name = reference.rsplit('/').next().unwrap_or_default();
        return match name {
            "RequirementId" => "requirement id".to_owned(),
            "FaultName" => "fault name".to_owned(),
            "SubjectName" => "subject name".to_owned(),
            "ProtocolName" => "protocol".to_owned(),
            "FragmentName" => "fragment name".to_owned(),
            _ => {
                let target =
                    root.pointer(reference.trim_start_matches('#')).unwrap_or(&Value::Null);
                words_of(target).unwrap_or_else(|| kind_of(root, target))
            }
        };
    }
    if let Some(words) = words_of(property) {
        return words;
    }
    if let Some(forms) = property["anyOf"].as_array() {
        let mut kinds: Vec<String> = Vec::new();
        for form in forms.iter().filter(|form| form["type"] != "null") {
            let kind = kind_of(root, form);
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        return kinds.join(" or ");
    }
    let types: Vec<&str> = match &property["type"] {
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        Value::String(name) => vec![name],
        _ => Vec::new(),
    };
    match types.as_slice() {
        types if types.len() > 3 => "any YAML".to_owned(),
        ["array", ..] => {
            let item = kind_of(root, &property["items"]);
            if item == "mapping" { "list of mappings".to_owned() } else { format!("list: {item}") }
        }
        ["integer" | "number", ..] => "number".to_owned(),
        ["boolean", ..] => "true or false".to_owned(),
        ["object", ..] => "mapping".to_owned(),
        _ => "text".to_owned(),
    }
}

/// The words of a short enumeration.
fn words_of(schema: &Value) -> Option<String> {
    let direct = schema["enum"].as_array().cloned().unwrap_or_default();
    let one_of = schema["oneOf"].as_array().into_iter().flatten().flat_map(|choice| {
        choice["enum"]
            .as_array()
            .cloned()
            .unwrap_or_default()
            .into_iter()
            .chain(choice.get("const").cloned())
    });
    let words: Vec<String> = direct
        .into_iter()
        .chain(one_of)
        .filter_map(|word| Some(format!("`{}`", word.as_str()?)))
        .collect();
    match words.len() {
        0 => None,
        1..=8 => Some(words.join(", ")),
        _ => Some("one of the words below".to_owned()),
    }
}
