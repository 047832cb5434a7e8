//! YAML, by serde-saphyr: the one module that knows it.
//!
//! A file is read straight into its raw type. Only when that fails is it read a second time into a [`Node`] tree, in
//! which everything that does not fit the type can be found and not just the first thing.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{DeserializeOwned, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::source::Source;

/// A value and its bytes in the file.
#[derive(Clone, Debug)]
pub(crate) struct Located<T> {
    pub(crate) value: T,
    pub(crate) place: Range<usize>,
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Located<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let serde_saphyr::Spanned { value, referenced, .. } =
            serde_saphyr::Spanned::deserialize(deserializer)?;
        Ok(Self { value, place: place(referenced) })
    }
}

impl<T: JsonSchema> JsonSchema for Located<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

/// What is wrong with a file, by the parser's own account.
#[derive(Debug)]
pub(crate) struct YamlError {
    pub(crate) message: String,
    pub(crate) place: Range<usize>,
}

/// How deep a file may be nested; the deepest of the suite has 20 levels. Reading follows it down, on whatever stack there is.
const DEEPEST: usize = 32;

/// Reads a file into a type.
pub(crate) fn read<T: DeserializeOwned>(source: &Source) -> Result<T, YamlError> {
    let budget = serde_saphyr::budget! { max_depth: DEEPEST };
    let options = serde_saphyr::options! { budget: budget, strict_booleans: true, with_snippet: false };
    serde_saphyr::from_str_with_options(&source.text, options).map_err(|error| {
        let text = error.without_snippet().to_string();
        let message = text.rsplit_once(" at line ").map_or(text.as_str(), |(message, _)| message);
        let place = error.location().map_or(0..0, |location| located(location, source));
        YamlError { message: message.to_owned(), place }
    })
}

/// Errors of the scanner know no bytes, only a line and a column.
fn located(location: serde_saphyr::Location, source: &Source) -> Range<usize> {
    if location.span().byte_offset().is_some() {
        return place(location);
    }
    let nth = |number: u64| usize::try_from(number.saturating_sub(1)).unwrap_or(0);
    let line_start: usize = source.text.split_inclusive('\n').take(nth(location.line())).map(str::len).sum();
    let line = source.text[line_start..].lines().next().unwrap_or_default();
    let start = line_start + line.char_indices().nth(nth(location.column())).map_or(line.len(), |(at, _)| at);
    start..start
}

fn place(location: serde_saphyr::Location) -> Range<usize> {
    let span = location.span();
    let start = span.byte_offset().map_or(0, |offset| usize::try_from(offset).unwrap_or(usize::MAX));
    let len = span.byte_len().map_or(0, |len| usize::try_from(len).unwrap_or(usize::MAX));
    start..start.saturating_add(len)
}

/// Any YAML.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) value: NodeValue,
    pub(crate) place: Range<usize>,
}

/// What a node holds.
#[derive(Debug)]
pub(crate) enum NodeValue {
    Null,
    Boolean,
    Integer,
    Number,
    String(String),
    Sequence(Vec<Node>),
    /// The keys with their places.
    Mapping(Vec<(Located<String>, Node)>),
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Located { value, place } = Located::deserialize(deserializer)?;
        Ok(Self { value, place })
    }
}

impl<'de> Deserialize<'de> for NodeValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = NodeValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any YAML")
    }

    fn visit_unit<E>(self) -> Result<NodeValue, E> {
        Ok(NodeValue::Null)
    }

    fn visit_bool<E>(self, _: bool) -> Result<NodeValue, E> {
        Ok(NodeValue::Boolean)
    }

    fn visit_i64<E>(self, _: i64) -> Result<NodeValue, E> {
        Ok(NodeValue::Integer)
    }

    fn visit_u64<E>(self, _: u64) -> Result<NodeValue, E> {
        Ok(NodeValue::Integer)
    }

    fn visit_f64<E>(self, _: f64) -> Result<NodeValue, E> {
        Ok(NodeValue::Number)
    }

    fn visit_str<E>(self, value: &str) -> Result<NodeValue, E> {
        Ok(NodeValue::String(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<NodeValue, A::Error> {
        let mut nodes = Vec::new();
        while let Some(node) = items.next_element()? {
            nodes.push(node);
        }
        Ok(NodeValue::Sequence(nodes))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<NodeValue, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = entries.next_entry()? {
            members.push(member);
        }
        Ok(NodeValue::Mapping(members))
    }
}
