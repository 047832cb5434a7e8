//! The definitions of the built-in types as data: fields, protobuf numbers, list keys, defaults.
//!
//! The generator writes one text file for each package of Kubernetes, such as
//! `io.k8s.api.core.v1`. Schemas and the protobuf codec read the same definitions.
//!
//! ```text
//! package io.k8s.api.core.v1
//!
//! io.k8s.api.core.v1.ContainerPort
//!   1 name string
//!   2 hostPort int32
//!   3 containerPort int32 required keep default=0
//!   4 protocol string enum=SCTP,TCP,UDP default="TCP"
//!   5 hostIP string
//! ```
//!
//! A definition has a line with its name and attributes. `map=atomic` marks a definition whose
//! value patches replace as a whole. `union=DISCRIMINATOR:FIELD,FIELD` lists mutually exclusive
//! fields. The discriminator may be empty. `kind=GROUP/VERSION/KIND` follows for a kind. Each field
//! has a line with its number, its name, its type and its attributes:
//!
//! | attribute | meaning |
//! | --- | --- |
//! | `required` | the published schema requires the field |
//! | `keep` | an empty value is written: in Go a pointer, or a field without `omitempty` |
//! | `null` | an absent value is written as null: in Go a list or map without `omitempty` |
//! | `inline` | the fields of the message appear in place of the field in JSON |
//! | `list=set`, `list=map`, `list=atomic` | `x-kubernetes-list-type` |
//! | `keys=A,B` | `x-kubernetes-list-map-keys` |
//! | `map=atomic`, `map=granular` | `x-kubernetes-map-type` |
//! | `merge=KEY` | `x-kubernetes-patch-merge-key` |
//! | `strategy=merge,retainKeys`, `strategy=replace` | `x-kubernetes-patch-strategy` |
//! | `enum=A,B` | the permitted values, which may contain spaces; after all attributes above |
//! | `default=JSON` | the published default; the last attribute |
//!
//! The number 0 marks a field that protobuf lacks. Types are scalars (`string`, `bytes`, `bool`,
//! `int32`, `int64`, `double`), special types (`time`, `microtime`, `duration`, `quantity`,
//! `intorstring`, `rawextension`, `json`, `fieldsv1`), messages, `[]T`, `{}T` and `wrapped[]T`. A
//! message of the same package has its short name, any other its full name.

mod error;
mod parse;

use std::collections::HashMap;

pub use self::error::{DefinitionsError, Problem};
use super::{ListType, PatchStrategy};

/// The definitions of a version of Kubernetes.
#[derive(Debug, Default)]
pub struct Definitions {
    all: Vec<Definition>,
    names: HashMap<&'static str, usize>,
    kinds: HashMap<GroupVersionKind, usize>,
}

/// A group, a version and a kind. The core group is empty.
pub type GroupVersionKind = (&'static str, &'static str, &'static str);

/// One definition: a structure with fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// The published name, such as `io.k8s.api.core.v1.Pod`.
    pub name: &'static str,
    /// The fields, ordered by number.
    pub fields: Vec<Field>,
    /// The kinds with this definition. It is empty for a part of a kind.
    pub group_version_kind: Vec<GroupVersionKind>,
    /// Patches replace a value of this definition as a whole.
    pub atomic_map: bool,
    /// Mutually exclusive fields: `x-kubernetes-unions`.
    pub union: Option<Union>,
}

/// Fields that exclude each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Union {
    /// The field that names the set field.
    pub discriminator: Option<&'static str>,
    /// The names of the fields in JSON.
    pub fields: Vec<&'static str>,
}

/// A field of a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "they are independent facts of a field")]
pub struct Field {
    /// The name in JSON. For an inlined message, it is the name in the `.proto` file.
    pub name: &'static str,
    /// The number in protobuf; 0 for a field that protobuf lacks.
    pub number: u32,
    /// The type.
    pub ty: Type,
    /// The published schema requires the field.
    pub required: bool,
    /// An empty value is written (in Go: a pointer, or a field without `omitempty`).
    pub keep_empty: bool,
    /// An absent value is written as null (in Go: a list or map without `omitempty`).
    pub write_null: bool,
    /// JSON has the fields of the message in place of the field.
    pub inline: bool,
    /// The published default as JSON text.
    pub default: Option<&'static str>,
    /// The permitted values; empty for no restriction.
    pub enumeration: Vec<&'static str>,
    /// The identity rule for the items of a list.
    pub list_type: ListType,
    /// The fields that identify the items of a list map.
    pub list_map_keys: Vec<&'static str>,
    /// Patches replace the map as a whole.
    pub atomic_map: bool,
    /// Patches merge the map, which the published schema states.
    pub granular_map: bool,
    /// The field by which strategic merge patch identifies list items.
    pub patch_merge_key: Option<&'static str>,
    /// The strategy of strategic merge patch.
    pub patch_strategy: PatchStrategy,
}

/// The type of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// A string. Enumerations are strings, too.
    String,
    /// Bytes: base64 in JSON.
    Bytes,
    /// A boolean.
    Boolean,
    /// A 32-bit integer.
    Int32,
    /// A 64-bit integer.
    Int64,
    /// A floating point number.
    Double,
    /// A time with whole seconds.
    Time,
    /// A time with microseconds.
    MicroTime,
    /// A duration such as `1h30m`.
    Duration,
    /// A resource quantity.
    Quantity,
    /// A number or a string.
    IntOrString,
    /// An object of any kind.
    RawExtension,
    /// Any JSON value.
    Json,
    /// The field set of a manager.
    FieldsV1,
    /// Another definition, by its published name.
    Message(&'static str),
    /// A list.
    List(Box<Type>),
    /// A map from strings to values.
    Map(Box<Type>),
    /// A list that protobuf wraps in a message with the field `items = 1`.
    WrappedList(Box<Type>),
}

impl Definitions {
    /// Parses the text of definition files. Each file comes with its name for errors.
    ///
    /// # Errors
    ///
    /// A file has a mistake, a name occurs twice, or a message is not defined in any of the files.
    pub fn parse(files: &[(&'static str, &'static str)]) -> Result<Self, DefinitionsError> {
        Self::parse_changes(files, &[])
    }

    /// Parses the files of a version, and the changes of another version. A definition of the
    /// changes replaces that of the first files. A line `removed NAME` removes one.
    ///
    /// # Errors
    ///
    /// The errors are those of [`Self::parse`].
    pub fn parse_changes(
        base: &[(&'static str, &'static str)],
        changes: &[(&'static str, &'static str)],
    ) -> Result<Self, DefinitionsError> {
        let mut definitions = Self::default();
        for definition in parse::files(base, changes)? {
            let index = definitions.all.len();
            definitions.names.insert(definition.name, index);
            for kind in &definition.group_version_kind {
                definitions.kinds.insert(*kind, index);
            }
            definitions.all.push(definition);
        }
        Ok(definitions)
    }

    /// Returns the definition with this published name.
    pub fn get(&self, name: &str) -> Option<&Definition> {
        self.names.get(name).map(|index| &self.all[*index])
    }

    /// Returns the definition of a kind.
    pub fn kind(&self, group: &str, version: &str, kind: &str) -> Option<&Definition> {
        // The lifetime of a shared key can shrink to that of the arguments.
        let kinds: &HashMap<(&str, &str, &str), usize> = &self.kinds;
        kinds.get(&(group, version, kind)).map(|index| &self.all[*index])
    }

    /// Returns all definitions in the order of the files.
    pub fn iter(&self) -> impl Iterator<Item = &Definition> {
        self.all.iter()
    }
}

impl Definition {
    /// Returns the field with this number in protobuf.
    pub fn numbered(&self, number: u32) -> Option<&Field> {
        self.fields.iter().find(|field| field.number == number && number != 0)
    }

    /// Returns the field with this name in JSON. Fields of inlined messages are not included.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name && !field.inline)
    }
}

impl Type {
    /// Returns the published name of the message in this type, also in lists and maps.
    pub fn message(&self) -> Option<&'static str> {
        match self {
            Self::Message(name) => Some(name),
            Self::List(inner) | Self::Map(inner) | Self::WrappedList(inner) => inner.message(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
