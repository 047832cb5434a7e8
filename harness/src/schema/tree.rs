//! YAML and JSON with the line and column of everything.

use std::fmt;

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_saphyr::Spanned;

/// A bundle of definitions has hundreds of thousands of nodes, which the reader takes for an attack by default.
const MOST: usize = 20_000_000;

/// Schemas of schemas go deep.
const DEEPEST: usize = 256;

/// A value that knows where it stands.
#[derive(Clone, Debug)]
pub(super) struct Node {
    content: Content,
    /// Counted from 1.
    pub(super) line: u64,
    column: u64,
}

#[derive(Clone, Debug)]
enum Content {
    Scalar(Value),
    List(Vec<Node>),
    /// Each with its key, which stands before it.
    Map(Vec<(Spanned<String>, Node)>),
}

/// The text is no YAML.
#[derive(Debug)]
pub(super) struct SyntaxError {
    pub(super) message: String,
    /// Line and column.
    pub(super) place: Option<(u64, u64)>,
}

/// The documents of a text; empty ones are left out.
pub(super) fn documents(text: &str) -> Result<Vec<Node>, SyntaxError> {
    let budget = serde_saphyr::budget! {
        max_events: MOST,
        max_nodes: MOST,
        max_documents: MOST,
        max_depth: DEEPEST,
    };
    let options = serde_saphyr::options! { budget: budget, strict_booleans: true, with_snippet: false };
    let documents: Vec<Node> = serde_saphyr::from_multiple_with_options(text, options).map_err(|error| {
        let message = error.without_snippet().to_string();
        let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(message, _)| message);
        let place = error.location().map(|location| (location.line(), location.column()));
        SyntaxError { message: message.to_owned(), place }
    })?;
    Ok(documents.into_iter().filter(|node| !matches!(node.content, Content::Scalar(Value::Null))).collect())
}

impl Node {
    pub(super) fn to_value(&self) -> Value {
        match &self.content {
            Content::Scalar(value) => value.clone(),
            Content::List(items) => items.iter().map(Self::to_value).collect(),
            Content::Map(members) => {
                let members = members.iter().map(|(key, value)| (key.value.clone(), value.to_value()));
                Value::Object(members.collect())
            }
        }
    }

    /// Line and column of what a JSON Pointer leads to, or of the last thing on the way that is there. Of a member, the place is
    /// that of its key.
    pub(super) fn find(&self, pointer: &str) -> (u64, u64) {
        let mut place = (self.line, self.column);
        let mut node = self;
        for part in pointer.split('/').skip(1) {
            let part = part.replace("~1", "/").replace("~0", "~");
            let next = match &node.content {
                Content::Map(members) => members
                    .iter()
                    .find(|(key, _)| key.value == part)
                    .map(|(key, value)| ((key.referenced.line(), key.referenced.column()), value)),
                Content::List(items) => part
                    .parse::<usize>()
                    .ok()
                    .and_then(|nth| items.get(nth))
                    .map(|item| ((item.line, item.column), item)),
                Content::Scalar(_) => None,
            };
            let Some((there, child)) = next else { break };
            (place, node) = (there, child);
        }
        place
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Spanned { value, referenced, .. } = Spanned::deserialize(deserializer)?;
        Ok(Self { content: value, line: referenced.line(), column: referenced.column() })
    }
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
        Ok(Content::Scalar(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Content, E> {
        Ok(Content::Scalar(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Content, E> {
        Ok(Content::Scalar(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Content, E> {
        Ok(Content::Scalar(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Content, E> {
        Ok(Content::Scalar(value.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Content, E> {
        Ok(Content::Scalar(value.into()))
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
    fn everything_knows_its_line() {
        let text = "a: 1\n---\n# nothing\n---\nb:\n  - c\n  - d/e: {f: true}\n";
        let documents = documents(text).expect("two documents");
        assert_eq!(documents.len(), 2);
        assert_eq!(documents[1].to_value(), serde_json::json!({"b": ["c", {"d/e": {"f": true}}]}));
        for (pointer, place) in [
            ("", (5, 1)),
            ("/b", (5, 1)),
            ("/b/0", (6, 5)),
            ("/b/1/d~1e", (7, 5)),
            ("/b/1/d~1e/f", (7, 11)),
            ("/b/1/d~1e/missing/x", (7, 5)),
        ] {
            assert_eq!(documents[1].find(pointer), place, "{pointer}");
        }
    }

    #[test]
    fn a_mistake_has_a_place() {
        let error = documents("a: 1\nb: [\n").expect_err("a mistake");
        assert_eq!(error.place.map(|(line, _)| line), Some(2), "{}", error.message);
    }
}
