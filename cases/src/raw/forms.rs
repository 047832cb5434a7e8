//! Forms of values that serde's derive does not offer: one or many, ordered mappings, headers, any
//! YAML. `#[serde(untagged)]` would read them too, but it loses their places.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::flow::{RawUse, RawUseFragment};
use crate::yaml::{Content, Located, Node};

/// A value, or a list of values. A value that stands alone has no place of its own: the whole has.
#[derive(Debug)]
pub(crate) struct OneOrMany<T>(pub(crate) Vec<Located<T>>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let whole: Located<Loose<T>> = Located::deserialize(deserializer)?;
        Ok(Self(match whole.value {
            Loose::One(value) => vec![Located { value, place: whole.place }],
            Loose::Many(values) => values,
        }))
    }
}

enum Loose<T> {
    One(T),
    Many(Vec<Located<T>>),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Loose<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LooseVisitor(PhantomData))
    }
}

struct LooseVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for LooseVisitor<T> {
    type Value = Loose<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value or a list of values")
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Self::Value, E> {
        T::deserialize(value.into_deserializer()).map(Loose::One)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Self::Value, E> {
        T::deserialize(value.into_deserializer()).map(Loose::One)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Self::Value, E> {
        T::deserialize(value.into_deserializer()).map(Loose::One)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Self::Value, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(items)).map(Loose::Many)
    }
}

impl<T: JsonSchema> JsonSchema for OneOrMany<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("OneOrMany{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<T>();
        json_schema!({"anyOf": [one, {"type": "array", "items": one, "minItems": 1}]})
    }
}

/// A text, or a list of texts. Numbers and truth values are the text that they are written as.
#[derive(Debug)]
pub(crate) struct Texts(pub(crate) Vec<Located<String>>);

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let whole: Located<LooseTexts> = Located::deserialize(deserializer)?;
        Ok(Self(match whole.value {
            LooseTexts::One(value) => vec![Located { value, place: whole.place }],
            LooseTexts::Many(values) => values,
        }))
    }
}

enum LooseTexts {
    One(String),
    Many(Vec<Located<String>>),
}

impl<'de> Deserialize<'de> for LooseTexts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextsVisitor)
    }
}

struct TextsVisitor;

impl<'de> Visitor<'de> for TextsVisitor {
    type Value = LooseTexts;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text or a list of texts")
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Self::Value, E> {
        Ok(LooseTexts::One(value.to_owned()))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Self::Value, E> {
        Ok(LooseTexts::One(value.to_string()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Self::Value, E> {
        Ok(LooseTexts::One(value.to_string()))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Self::Value, E> {
        Ok(LooseTexts::One(value.to_string()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Self::Value, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(items)).map(LooseTexts::Many)
    }
}

impl JsonSchema for Texts {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Texts".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let one = json_schema!({"type": ["string", "integer", "boolean"]});
        json_schema!({"anyOf": [one, {"type": "array", "items": one}]})
    }
}

/// A mapping in the order of the file.
#[derive(Debug)]
pub(crate) struct Entries<T>(pub(crate) Vec<(Located<String>, Located<T>)>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Entries<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EntriesVisitor(PhantomData))
    }
}

struct EntriesVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for EntriesVisitor<T> {
    type Value = Entries<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a mapping")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Entries(entries))
    }
}

impl<T: JsonSchema> JsonSchema for Entries<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("MapOf{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "object", "additionalProperties": generator.subschema_for::<T>()})
    }
}

/// A mapping, or a list of mappings of one entry each, which may repeat a name.
#[derive(Debug)]
pub(crate) struct RepeatableEntries<T>(pub(crate) Vec<(Located<String>, Located<T>)>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for RepeatableEntries<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RepeatableVisitor(PhantomData))
    }
}

struct RepeatableVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for RepeatableVisitor<T> {
    type Value = RepeatableEntries<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a mapping or a list of mappings")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        EntriesVisitor(PhantomData).visit_map(map).map(|entries| RepeatableEntries(entries.0))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut all = Vec::new();
        while let Some(entries) = items.next_element::<Entries<T>>()? {
            all.extend(entries.0);
        }
        Ok(RepeatableEntries(all))
    }
}

impl<T: JsonSchema> JsonSchema for RepeatableEntries<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("RepeatableMapOf{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<Entries<T>>();
        json_schema!({"anyOf": [one, {"type": "array", "items": one}]})
    }
}

/// An expectation for a header.
#[derive(Debug)]
pub(crate) enum HeaderExpectation {
    /// Equal to this.
    Value(String),
    /// Something else than that.
    Form(HeaderForm),
}

/// An expectation other than a value.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HeaderForm {
    /// A regular expression that the value matches.
    #[serde(rename = "match")]
    pub(crate) matches: Option<Located<String>>,
    /// `true`: the header is not there.
    pub(crate) absent: Option<Located<bool>>,
}

impl<'de> Deserialize<'de> for HeaderExpectation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(HeaderVisitor)
    }
}

struct HeaderVisitor;

impl<'de> Visitor<'de> for HeaderVisitor {
    type Value = HeaderExpectation;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value, `{match: regex}` or `{absent: true}`")
    }

    fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
        Ok(HeaderExpectation::Value(value.to_owned()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(HeaderExpectation::Value(value.to_string()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        HeaderForm::deserialize(MapAccessDeserializer::new(map)).map(HeaderExpectation::Form)
    }
}

impl JsonSchema for HeaderExpectation {
    fn schema_name() -> Cow<'static, str> {
        "HeaderExpectation".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let form = generator.subschema_for::<HeaderForm>();
        json_schema!({"anyOf": [{"type": ["string", "integer"]}, form]})
    }
}

/// Any YAML value, which stands for JSON.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(crate) struct Yaml(pub(crate) Node);

impl JsonSchema for Yaml {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Yaml".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": ["object", "array", "string", "number", "boolean", "null"]})
    }
}

/// A YAML mapping, which stands for a JSON object.
#[derive(Debug)]
pub(crate) struct YamlMapping(pub(crate) Node);

impl<'de> Deserialize<'de> for YamlMapping {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let node = Node::deserialize(deserializer)?;
        match node.content {
            Content::Map(_) => Ok(Self(node)),
            _ => Err(D::Error::custom("expected a mapping")),
        }
    }
}

impl JsonSchema for YamlMapping {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "YamlMapping".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "object"})
    }
}

impl<'de> Deserialize<'de> for RawUse {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Located { value, place }: Located<LooseUse> = Located::deserialize(deserializer)?;
        Ok(match value {
            LooseUse::Name(value) => {
                Self { fragment: Located { value, place }, parameters: Vec::new() }
            }
            LooseUse::Fragment(RawUseFragment { fragment, with }) => {
                Self { fragment, parameters: with.map(|with| with.0).unwrap_or_default() }
            }
        })
    }
}

enum LooseUse {
    Name(String),
    Fragment(RawUseFragment),
}

impl<'de> Deserialize<'de> for LooseUse {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UseVisitor)
    }
}

struct UseVisitor;

impl<'de> Visitor<'de> for UseVisitor {
    type Value = LooseUse;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a fragment, or `{fragment: .., with: ..}`")
    }

    fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
        Ok(LooseUse::Name(value.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        RawUseFragment::deserialize(MapAccessDeserializer::new(map)).map(LooseUse::Fragment)
    }
}

impl JsonSchema for RawUse {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Use".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let name = super::names::fragment_name(generator);
        json_schema!({"anyOf": [name, generator.subschema_for::<RawUseFragment>()]})
    }
}
