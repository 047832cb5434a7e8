//! YAML with the place of everything in it.
//!
//! This is the only module that uses serde-saphyr. [`documents`] reads any YAML into a tree of
//! [`Node`]s. Types of files are deserialized from such a tree.

mod deserializer;
mod located;
mod source;
mod span;

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use serde::de::{DeserializeOwned, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Number, Value};
use serde_saphyr::{Location, Spanned};

use deserializer::{PLACED, Part};

pub(crate) use located::Located;
pub(crate) use source::{Scalar, Source};
pub use span::Span;

/// The deepest nesting of a case file. The deepest of the suite has 24 levels.
const DEEPEST: usize = 32;

/// The deepest nesting of other documents: schemas of schemas go deep.
const DEEPEST_DOCUMENT: usize = 256;

/// The most nodes of other documents. A bundle of definitions has hundreds of thousands of nodes,
/// which exceeds the default budget of the parser.
const MOST_NODES: usize = 20_000_000;

/// A YAML value with its place.
#[derive(Clone, Debug)]
pub struct Node {
    /// The value.
    pub content: Content,
    /// Where it starts.
    pub span: Span,
    pub(crate) place: Range<usize>,
}

/// The value of a node.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// `null`, or nothing.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(Number),
    /// Text.
    String(String),
    /// The items of a list.
    List(Vec<Node>),
    /// The members of a mapping, in the order of the file.
    Map(Vec<(Key, Node)>),
}

/// The key of a mapping's member.
#[derive(Clone, Debug)]
pub struct Key {
    /// Its text.
    pub value: String,
    /// Where it starts.
    pub span: Span,
    pub(crate) place: Range<usize>,
}

/// The place does not matter.
impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        self.content == other.content
    }
}

/// The place does not matter.
impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

/// A text is not YAML.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct SyntaxError {
    /// What the parser expected or found.
    pub message: String,
    /// Where, if the parser reports a place.
    pub span: Option<Span>,
}

/// Parses the documents of a text, YAML or JSON. Empty documents are left out.
pub fn documents(text: &str) -> Result<Vec<Node>, SyntaxError> {
    let budget = serde_saphyr::budget! {
        max_events: MOST_NODES,
        max_nodes: MOST_NODES,
        max_documents: MOST_NODES,
        max_depth: DEEPEST_DOCUMENT,
    };
    let options =
        serde_saphyr::options! { budget: budget, strict_booleans: true, with_snippet: false };
    let documents: Vec<Node> =
        serde_saphyr::from_multiple_with_options(text, options).map_err(|error| SyntaxError {
            message: message(&error),
            span: error.location().map(span_of),
        })?;
    Ok(documents.into_iter().filter(|node| node.content != Content::Null).collect())
}

/// An error of the parser, with its bytes in the file.
#[derive(Debug)]
pub(crate) struct YamlError {
    pub(crate) message: String,
    pub(crate) place: Range<usize>,
}

/// Reads a file.
pub(crate) fn read(source: &Source) -> Result<Node, YamlError> {
    let budget = serde_saphyr::budget! { max_depth: DEEPEST };
    let options =
        serde_saphyr::options! { budget: budget, strict_booleans: true, with_snippet: false };
    serde_saphyr::from_str_with_options(&source.text, options).map_err(|error| {
        let place = error.location().map_or(0..0, |location| place_in(location, source));
        YamlError { message: message(&error), place }
    })
}

fn message(error: &serde_saphyr::Error) -> String {
    let text = error.without_snippet().to_string();
    text.rsplit_once(" at line ").map_or(text.as_str(), |(message, _)| message).to_owned()
}

fn span_of(location: Location) -> Span {
    let count = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    Span { line: count(location.line()), column: count(location.column()) }
}

/// The bytes of a location. Errors of the scanner have only a line and a column.
fn place_in(location: Location, source: &Source) -> Range<usize> {
    if location.span().byte_offset().is_some() {
        return place_of(location);
    }
    let nth = |number: u64| usize::try_from(number.saturating_sub(1)).unwrap_or(0);
    let lines = source.text.split_inclusive('\n');
    let line_start: usize = lines.take(nth(location.line())).map(str::len).sum();
    let line = source.text[line_start..].lines().next().unwrap_or_default();
    let column = line.char_indices().nth(nth(location.column()));
    let start = line_start + column.map_or(line.len(), |(at, _)| at);
    start..start
}

fn place_of(location: Location) -> Range<usize> {
    let span = location.span();
    let count = |number: Option<u64>| {
        number.map_or(0, |number| usize::try_from(number).unwrap_or(usize::MAX))
    };
    let start = count(span.byte_offset());
    start..start.saturating_add(count(span.byte_len()))
}

impl Node {
    /// Reads the value into a type.
    pub(crate) fn to_type<T: DeserializeOwned>(&self) -> Result<T, YamlError> {
        T::deserialize(Part::Node(self)).map_err(|error| YamlError {
            message: error.message,
            place: error.place.unwrap_or_else(|| self.place.clone()),
        })
    }

    /// Returns the value as JSON.
    pub fn to_value(&self) -> Value {
        match &self.content {
            Content::Null => Value::Null,
            Content::Bool(value) => Value::Bool(*value),
            Content::Number(number) => Value::Number(number.clone()),
            Content::String(text) => Value::String(text.clone()),
            Content::List(items) => items.iter().map(Self::to_value).collect(),
            Content::Map(members) => {
                let member = |(key, value): &(Key, Self)| (key.value.clone(), value.to_value());
                Value::Object(members.iter().map(member).collect())
            }
        }
    }

    /// Returns the place of what a JSON Pointer leads to, or of the last existing node on the way.
    /// The place of a member is that of its key.
    pub fn find(&self, pointer: &str) -> Span {
        let mut span = self.span;
        let mut node = self;
        for part in pointer.split('/').skip(1) {
            let part = part.replace("~1", "/").replace("~0", "~");
            let next = match &node.content {
                Content::Map(members) => members
                    .iter()
                    .find(|(key, _)| key.value == part)
                    .map(|(key, value)| (key.span, value)),
                Content::List(items) => part
                    .parse::<usize>()
                    .ok()
                    .and_then(|nth| items.get(nth))
                    .map(|item| (item.span, item)),
                _ => None,
            };
            let Some((there, child)) = next else { break };
            (span, node) = (there, child);
        }
        span
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let visitor = PlacedVisitor(PhantomData);
        let (content, span, place) = deserializer.deserialize_newtype_struct(PLACED, visitor)?;
        Ok(Self { content, span, place })
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let visitor = PlacedVisitor(PhantomData);
        let (value, span, place) = deserializer.deserialize_newtype_struct(PLACED, visitor)?;
        Ok(Self { value, span, place })
    }
}

/// Reads a value and its place from the parser, or from another tree.
struct PlacedVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for PlacedVisitor<T> {
    type Value = (T, Span, Range<usize>);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value with its place")
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<Self::Value, D::Error> {
        let Spanned { value, referenced, .. } = Spanned::deserialize(deserializer)?;
        Ok((value, span_of(referenced), place_of(referenced)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Self::Value, A::Error> {
        let (span, place) = next_place(&mut parts)?;
        let value = parts.next_element()?;
        Ok((value.ok_or_else(|| A::Error::invalid_length(4, &self))?, span, place))
    }
}

/// Reads the numbers of a place.
fn next_place<'de, A: SeqAccess<'de>>(parts: &mut A) -> Result<(Span, Range<usize>), A::Error> {
    let mut next = || {
        let number: Option<u64> = parts.next_element()?;
        number.ok_or_else(|| A::Error::custom("expected a place"))
    };
    let (line, column, start, end) = (next()?, next()?, next()?, next()?);
    let short = |number| u32::try_from(number).unwrap_or(u32::MAX);
    let long = |number| usize::try_from(number).unwrap_or(usize::MAX);
    Ok((Span { line: short(line), column: short(column) }, long(start)..long(end)))
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any YAML")
    }

    fn visit_unit<E>(self) -> Result<Content, E> {
        Ok(Content::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Content, E> {
        Ok(Content::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Content, E> {
        Ok(Content::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Content, E> {
        Ok(Content::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Content, E> {
        // JSON has no infinity.
        Ok(Number::from_f64(value).map_or(Content::Null, Content::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Content, E> {
        Ok(Content::String(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Content, A::Error> {
        let mut nodes = Vec::new();
        while let Some(node) = items.next_element()? {
            nodes.push(node);
        }
        Ok(Content::List(nodes))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Content, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = entries.next_entry()? {
            members.push(member);
        }
        Ok(Content::Map(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_node_has_its_line_and_column() {
        let text = "a: 1\n---\n# nothing\n---\nb:\n  - c\n  - d/e: {f: true}\n";
        let documents = documents(text).expect("two documents");
        assert_eq!(documents.len(), 2);
        let expected = serde_json::json!({"b": ["c", {"d/e": {"f": true}}]});
        assert_eq!(documents[1].to_value(), expected);
        for (pointer, line, column) in [
            ("", 5, 1),
            ("/b", 5, 1),
            ("/b/0", 6, 5),
            ("/b/1/d~1e", 7, 5),
            ("/b/1/d~1e/f", 7, 11),
            ("/b/1/d~1e/missing/x", 7, 5),
        ] {
            assert_eq!(documents[1].find(pointer), Span { line, column }, "{pointer}");
        }
    }

    #[test]
    fn a_syntax_error_has_a_place() {
        let error = documents("a: 1\nb: [\n").expect_err("a mistake");
        assert_eq!(error.span.map(|span| span.line), Some(2), "{}", error.message);
    }
}
