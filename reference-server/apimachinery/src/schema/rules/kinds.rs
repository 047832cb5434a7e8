//! CEL values with a structure: URLs and named formats.
//!
//! A function with the name of the type parses each value from a text, and fails for invalid texts.
//! The methods are those of the CEL libraries of Kubernetes.

use std::collections::HashMap;
use std::sync::Arc;

use cel::common::types::STRING_TYPE;
use cel::common::value::CowVal;
use cel::objects::{Key, Map, OptionalValue};
use cel::{DeclarationError, Env, ExecutionError, Value as Cel};

use super::super::Format;
use super::super::format::uri::{self, Uri};
use super::library::{Result, give, give_value, string};
use crate::object::validation::names;

pub(super) type Declared = std::result::Result<(), DeclarationError>;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Url(Uri);

/// A format by name, which validates texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Named(&'static str);

/// Defines how types become CEL values, with their names in CEL.
macro_rules! kinds {
    ($($kind:ident $name:literal)*) => {
        $(impl cel::objects::Opaque for $kind {
            fn runtime_type_name(&self) -> &str {
                $name
            }
        }

        impl $kind {
            fn ty() -> cel::common::types::Type {
                cel::common::types::Type::new_opaque_type($name)
            }

            fn of(
                arguments: &[cel::common::value::CowVal<'_, '_>],
                index: usize,
            ) -> $crate::schema::rules::library::Result<Self> {
                match $crate::schema::rules::library::argument(arguments, index)? {
                    cel::Value::Opaque(value) => value.downcast_ref::<Self>().cloned(),
                    _ => None,
                }
                .ok_or_else(|| {
                    cel::ExecutionError::function_error($name, "the argument is of another type")
                })
            }
        }

        impl From<$kind> for cel::Value {
            fn from(value: $kind) -> Self {
                cel::Value::Opaque(std::sync::Arc::new(value))
            }
        })*
    };
}

pub(super) use kinds;

kinds! {
    Url "kubernetes.URL"
    Named "kubernetes.NamedFormat"
}

/// Declares the constructors and methods of these types.
pub(super) fn declare(env: &mut Env) -> Declared {
    env.add_type(Url::ty())?;
    env.add_type(Named::ty())?;
    urls(env)?;
    formats(env)
}

fn urls(env: &mut Env) -> Declared {
    env.add_overload("url", "string_to_url", vec![STRING_TYPE], |arguments| {
        let text = string(&arguments, 0)?;
        let failed = || {
            let why = uri::mistake(&text);
            format!("URL parse error during conversion from string: {why}")
        };
        let url = Uri::parse(&text).map(Url);
        give(url.ok_or_else(|| ExecutionError::function_error("url", failed()))?)
    })?;
    env.add_member_overload("getScheme", "url_scheme", Url::ty(), vec![], |arguments| {
        give(Url::of(&arguments, 0)?.0.scheme)
    })?;
    env.add_member_overload("getHost", "url_host", Url::ty(), vec![], |arguments| {
        give(Url::of(&arguments, 0)?.0.host)
    })?;
    env.add_member_overload("getHostname", "url_hostname", Url::ty(), vec![], |arguments| {
        give(Url::of(&arguments, 0)?.0.hostname().to_owned())
    })?;
    env.add_member_overload("getPort", "url_port", Url::ty(), vec![], |arguments| {
        give(Url::of(&arguments, 0)?.0.port().to_owned())
    })?;
    env.add_member_overload("getEscapedPath", "url_path", Url::ty(), vec![], |arguments| {
        give(Url::of(&arguments, 0)?.0.escaped_path().into_owned())
    })?;
    env.add_member_overload("getQuery", "url_query", Url::ty(), vec![], |arguments| {
        let mut values: HashMap<Key, Vec<Cel>> = HashMap::new();
        for (key, value) in Url::of(&arguments, 0)?.0.parameters() {
            values.entry(Key::from(key)).or_default().push(value.into());
        }
        let map =
            values.into_iter().map(|(key, values)| (key, Cel::List(Arc::new(values)))).collect();
        give_value(Cel::Map(Map { map: Arc::new(map) }))
    })
}

macro_rules! formats {
    ($($name:literal $check:expr,)*) => {
        /// The validation functions, by the name of the format.
        const FORMATS: &[(&str, fn(&str) -> Vec<String>)] = &[$(($name, $check),)*];

        fn formats(env: &mut Env) -> Declared {
            $(
                let (function, overload) = (concat!("format.", $name), concat!("format_", $name));
                env.add_overload(function, overload, vec![], |_| give(Named($name)))?;
            )*
            env.add_overload("format.named", "format_named", vec![STRING_TYPE], |arguments| {
                let name = string(&arguments, 0)?;
                let known = FORMATS.iter().find(|(known, _)| *known == *name);
                give_optional(known.map(|(known, _)| Named(known).into()))
            })?;
            env.add_member_overload(
                "validate",
                "format_validate",
                Named::ty(),
                vec![STRING_TYPE],
                |arguments| {
                    let (Named(name), text) = (Named::of(&arguments, 0)?, string(&arguments, 1)?);
                    let known = FORMATS.iter().find(|(known, _)| *known == name);
                    let wrong = known.map(|(_, check)| check(&text)).unwrap_or_default();
                    let wrong: Vec<Cel> = wrong.into_iter().map(Cel::from).collect();
                    give_optional((!wrong.is_empty()).then(|| Cel::List(Arc::new(wrong))))
                },
            )
        }
    };
}

formats! {
    "dns1123Label" names::dns_label,
    "dns1123Subdomain" names::dns_subdomain,
    "dns1035Label" names::rfc1035_label,
    "dns1123LabelPrefix" |text| names::dns_label(prefix(text)),
    "dns1123SubdomainPrefix" |text| names::dns_subdomain(prefix(text)),
    "dns1035LabelPrefix" |text| names::rfc1035_label(prefix(text)),
    "qualifiedName" names::qualified_name,
    "labelValue" names::label_value,
    "uri" |text| match Uri::parse(text) {
        Some(_) => Vec::new(),
        None => vec![uri::mistake(text)],
    },
    "uuid" |text| of_format(&Format::Uuid, text, "does not match the UUID format"),
    "byte" |text| of_format(&Format::Byte, text, "invalid base64"),
    "date" |text| of_format(&Format::Date, text, "invalid date"),
    "datetime" |text| of_format(&Format::DateTime, text, "invalid datetime"),
}

fn prefix(text: &str) -> &str {
    text.strip_suffix('-').unwrap_or(text)
}

fn of_format(format: &Format, text: &str, why: &str) -> Vec<String> {
    if format.accepts(text) { Vec::new() } else { vec![why.to_owned()] }
}

fn give_optional<'b, 'v>(value: Option<Cel>) -> Result<CowVal<'b, 'v>> {
    let optional = value.map_or_else(OptionalValue::none, OptionalValue::of);
    give_value(Cel::Opaque(Arc::new(optional)))
}

#[cfg(test)]
mod tests;
