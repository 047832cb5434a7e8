//! Deserializes types from a tree of nodes.
//!
//! The parser of YAML has many types of deserializers, and serde compiles each type of the case
//! language for each of them. This module has only one, so it compiles each type once.

use std::fmt;
use std::ops::Range;

use serde::de::{
    DeserializeSeed, EnumAccess, Error, MapAccess, SeqAccess, Unexpected, VariantAccess, Visitor,
};
use serde::{Deserializer, forward_to_deserialize_any};

use super::{Content, Key, Node};

/// A newtype struct of this name is read as a sequence: line, column, first byte, end, value.
pub(super) const PLACED: &str = "$kubeproof::placed";

/// A part of a tree.
#[derive(Clone, Copy)]
pub(super) enum Part<'de> {
    /// A value.
    Node(&'de Node),
    /// The key of a member.
    Key(&'de Key),
    /// A number of a place.
    Number(u64),
}

/// A value does not fit its type.
#[derive(Debug)]
pub(super) struct Mismatch {
    pub(super) message: String,
    /// The bytes of the innermost value that does not fit.
    pub(super) place: Option<Range<usize>>,
}

impl<'de> Part<'de> {
    /// The numbers of the place: line, column, first byte, end.
    fn place(self) -> [u64; 4] {
        let (span, bytes) = match self {
            Self::Node(node) => (node.span, &node.place),
            Self::Key(key) => (key.span, &key.place),
            Self::Number(_) => return [0; 4],
        };
        let number = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        [span.line.into(), span.column.into(), number(bytes.start), number(bytes.end)]
    }

    /// The form of the value, for messages.
    fn unexpected(self) -> Unexpected<'de> {
        match self {
            Self::Key(key) => Unexpected::Str(&key.value),
            Self::Number(number) => Unexpected::Unsigned(number),
            Self::Node(node) => match &node.content {
                Content::Null => Unexpected::Unit,
                Content::Bool(value) => Unexpected::Bool(*value),
                Content::Number(_) => Unexpected::Other("number"),
                Content::String(text) => Unexpected::Str(text),
                Content::List(_) => Unexpected::Seq,
                Content::Map(_) => Unexpected::Map,
            },
        }
    }

    fn locate<T>(self, result: Result<T, Mismatch>) -> Result<T, Mismatch> {
        result.map_err(|error| {
            let place = match self {
                Self::Node(node) => Some(node.place.clone()),
                Self::Key(key) => Some(key.place.clone()),
                Self::Number(_) => None,
            };
            Mismatch { place: error.place.or(place), ..error }
        })
    }
}

impl<'de> Deserializer<'de> for Part<'de> {
    type Error = Mismatch;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        let content = match self {
            Self::Node(node) => &node.content,
            Self::Key(key) => return self.locate(visitor.visit_borrowed_str(&key.value)),
            Self::Number(number) => return visitor.visit_u64(number),
        };
        self.locate(match content {
            Content::Null => visitor.visit_unit(),
            Content::Bool(value) => visitor.visit_bool(*value),
            Content::Number(number) => {
                if let Some(number) = number.as_u64() {
                    visitor.visit_u64(number)
                } else if let Some(number) = number.as_i64() {
                    visitor.visit_i64(number)
                } else {
                    visitor.visit_f64(number.as_f64().unwrap_or(f64::NAN))
                }
            }
            Content::String(text) => visitor.visit_borrowed_str(text),
            Content::List(nodes) => visitor.visit_seq(Items(nodes.iter())),
            Content::Map(members) => visitor.visit_map(Members { rest: members, value: None }),
        })
    }

    /// A number where text is expected is the text that it is written as, as in `channel: 7`.
    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        match self {
            Self::Node(Node { content: Content::Number(number), .. }) => {
                self.locate(visitor.visit_string(number.to_string()))
            }
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        match self {
            Self::Node(Node { content: Content::Null, .. }) => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        if name != PLACED {
            return visitor.visit_newtype_struct(self);
        }
        let [line, column, start, end] = self.place().map(Part::Number);
        visitor.visit_seq(Placed([line, column, start, end, self].into_iter()))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        let variant = match self {
            Self::Node(Node { content: Content::Map(members), .. }) => match members.as_slice() {
                [(key, value)] => Variant { name: Self::Key(key), value: Some(value) },
                _ => return self.locate(Err(Mismatch::custom("expected one key"))),
            },
            _ => Variant { name: self, value: None },
        };
        self.locate(visitor.visit_enum(variant))
    }

    // Each type names the form that it expects, so that serde compiles no other form for it.

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        match self {
            Self::Node(Node { content: Content::Map(members), .. }) => {
                self.locate(visitor.visit_map(Members { rest: members, value: None }))
            }
            _ => self.locate(Err(Mismatch::invalid_type(self.unexpected(), &visitor))),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        self.deserialize_map(visitor)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        match self {
            Self::Node(Node { content: Content::List(nodes), .. }) => {
                self.locate(visitor.visit_seq(Items(nodes.iter())))
            }
            _ => self.locate(Err(Mismatch::invalid_type(self.unexpected(), &visitor))),
        }
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        match self {
            Self::Node(Node { content: Content::String(text), .. })
            | Self::Key(Key { value: text, .. }) => self.locate(visitor.visit_str(text)),
            _ => self.locate(Err(Mismatch::invalid_type(self.unexpected(), &visitor))),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char bytes byte_buf unit unit_struct
        tuple tuple_struct
    }
}

/// The items of a list.
struct Items<'de>(std::slice::Iter<'de, Node>);

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Mismatch;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Mismatch> {
        self.0.next().map(|node| seed.deserialize(Part::Node(node))).transpose()
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.0.len())
    }
}

/// The numbers of a place, and the value.
struct Placed<'de>(std::array::IntoIter<Part<'de>, 5>);

impl<'de> SeqAccess<'de> for Placed<'de> {
    type Error = Mismatch;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Mismatch> {
        self.0.next().map(|part| seed.deserialize(part)).transpose()
    }
}

/// The members of a mapping.
struct Members<'de> {
    rest: &'de [(Key, Node)],
    /// The value of the last key.
    value: Option<&'de Node>,
}

impl<'de> MapAccess<'de> for Members<'de> {
    type Error = Mismatch;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Mismatch> {
        let Some(((key, value), rest)) = self.rest.split_first() else { return Ok(None) };
        (self.rest, self.value) = (rest, Some(value));
        seed.deserialize(Part::Key(key)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Mismatch> {
        let value = self.value.take().ok_or_else(|| Mismatch::custom("a key has no value"))?;
        seed.deserialize(Part::Node(value))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

/// The name of a variant, or a mapping from the name to the value.
struct Variant<'de> {
    name: Part<'de>,
    value: Option<&'de Node>,
}

impl<'de> EnumAccess<'de> for Variant<'de> {
    type Error = Mismatch;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Mismatch> {
        Ok((seed.deserialize(self.name)?, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'de> {
    type Error = Mismatch;

    fn unit_variant(self) -> Result<(), Mismatch> {
        match self.value {
            None | Some(Node { content: Content::Null, .. }) => Ok(()),
            Some(_) => Err(Mismatch::invalid_type(Unexpected::NewtypeVariant, &"a word")),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Mismatch> {
        match self.value {
            Some(value) => seed.deserialize(Part::Node(value)),
            None => Err(Mismatch::invalid_type(Unexpected::UnitVariant, &"a mapping")),
        }
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Mismatch> {
        match self.value {
            Some(value) => Part::Node(value).deserialize_any(visitor),
            None => Err(Mismatch::invalid_type(Unexpected::UnitVariant, &visitor)),
        }
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        self.tuple_variant(0, visitor)
    }
}

impl Error for Mismatch {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self { message: message.to_string(), place: None }
    }
}

impl std::error::Error for Mismatch {}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde::Deserialize;

    use crate::yaml::{self, Located, Source};

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Form {
        Word,
        Mapping(Mapping),
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Mapping {
        #[serde(default)]
        numbers: Vec<Located<u16>>,
        text: Option<Located<String>>,
        any: Option<yaml::Node>,
    }

    fn read(text: &str) -> Result<Form, yaml::YamlError> {
        yaml::read(&Source::new("f.yaml", text)).expect("YAML").to_type()
    }

    #[test]
    fn values_have_their_places() {
        let text = "mapping:\n  numbers: [1, 22]\n  text: 7\n  any: {a: [b]}\n";
        let Ok(Form::Mapping(mapping)) = read(text) else { panic!("a mapping") };
        assert_eq!(&text[mapping.numbers[1].place.clone()], "22");
        assert_eq!(mapping.text.expect("a text").value, "7");
        let any = mapping.any.expect("a value");
        assert_eq!((any.find("/a/0").line, any.find("/a/0").column), (4, 13));
        assert!(matches!(read("word"), Ok(Form::Word)));
    }

    #[rstest]
    #[case("mapping: {numbers: [1, 70000]}", "70000")]
    #[case("mapping: {numbers: {a: 1}}", "{a: 1}")]
    #[case("mapping: {text: [a]}", "[a]")]
    #[case("mapping: {other: 1}", "other")]
    #[case("other", "other")]
    #[case("mapping", "mapping")]
    #[case("{word: 1, mapping: 1}", "{word: 1, mapping: 1}")]
    fn a_mismatch_is_at_the_innermost_value(#[case] text: &str, #[case] expected: &str) {
        let error = read(text).expect_err("a mismatch");
        assert!(text[error.place.start..].starts_with(expected), "{error:?}");
    }
}
