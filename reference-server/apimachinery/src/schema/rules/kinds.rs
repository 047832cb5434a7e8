//! CEL values with a structure: quantities, URLs, IP addresses, CIDR ranges and named formats.
//!
//! A function with the name of the type parses each value from a text, and fails for invalid texts.
//! The methods are those of the CEL libraries of Kubernetes.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use cel::common::types::{INT_TYPE, STRING_TYPE, Type};
use cel::common::value::CowVal;
use cel::objects::{Key, Map, Opaque, OptionalValue};
use cel::{DeclarationError, Env, ExecutionError, Value as Cel};
use ipnet::IpNet;

use super::super::format::uri::Uri;
use super::super::{Format, quantity};
use super::library::{Result, argument, give, give_value, string};
use crate::object::validation::names;

type Declared = std::result::Result<(), DeclarationError>;

/// The amount in billionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Quantity(i128);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Url(Uri);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Address(IpAddr);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range(IpNet);

/// A format by name, which validates texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Named(&'static str);

macro_rules! kinds {
    ($($kind:ident $name:literal)*) => {
        $(impl Opaque for $kind {
            fn runtime_type_name(&self) -> &str {
                $name
            }
        }

        impl $kind {
            fn ty() -> Type {
                Type::new_opaque_type($name)
            }

            fn of(arguments: &[CowVal<'_, '_>], index: usize) -> Result<Self> {
                match argument(arguments, index)? {
                    Cel::Opaque(value) => value.downcast_ref::<Self>().cloned(),
                    _ => None,
                }
                .ok_or_else(|| {
                    ExecutionError::function_error($name, "the argument is of another type")
                })
            }
        }

        impl From<$kind> for Cel {
            fn from(value: $kind) -> Self {
                Cel::Opaque(Arc::new(value))
            }
        })*
    };
}

kinds! {
    Quantity "kubernetes.Quantity"
    Url "kubernetes.URL"
    Address "net.IP"
    Range "net.CIDR"
    Named "kubernetes.NamedFormat"
}

/// Declares the constructors and methods of these types.
pub(super) fn declare(env: &mut Env) -> Declared {
    for ty in [Quantity::ty(), Url::ty(), Address::ty(), Range::ty(), Named::ty()] {
        env.add_type(ty)?;
    }
    quantities(env)?;
    urls(env)?;
    addresses(env)?;
    ranges(env)?;
    formats(env)
}

fn quantities(env: &mut Env) -> Declared {
    env.add_overload("quantity", "string_to_quantity", vec![STRING_TYPE], |arguments| {
        let amount = quantity::nanos(&string(&arguments, 0)?);
        give(
            amount
                .map(Quantity)
                .ok_or_else(|| ExecutionError::function_error("quantity", "no quantity"))?,
        )
    })?;
    let method = Quantity::ty;
    env.add_member_overload("isInteger", "quantity_is_integer", method(), vec![], |arguments| {
        give(whole(Quantity::of(&arguments, 0)?).is_some())
    })?;
    env.add_member_overload("asInteger", "quantity_as_integer", method(), vec![], |arguments| {
        let whole = whole(Quantity::of(&arguments, 0)?);
        give(whole.ok_or_else(|| ExecutionError::function_error("asInteger", "not an integer"))?)
    })?;
    // Unlike the other functions, this is no method in kube-apiserver.
    env.add_overload("sign", "quantity_sign", vec![method()], |arguments| {
        give(i64::try_from(Quantity::of(&arguments, 0)?.0.signum()).unwrap_or_default())
    })?;
    env.add_member_overload(
        "asApproximateFloat",
        "quantity_as_float",
        method(),
        vec![],
        |arguments| {
            #[expect(clippy::cast_precision_loss, reason = "it is approximate by its name")]
            let float = Quantity::of(&arguments, 0)?.0 as f64 / quantity::UNIT as f64;
            give(float)
        },
    )?;
    let other = || vec![Quantity::ty()];
    env.add_member_overload("isLessThan", "quantity_is_less", method(), other(), |arguments| {
        give(Quantity::of(&arguments, 0)? < Quantity::of(&arguments, 1)?)
    })?;
    env.add_member_overload(
        "isGreaterThan",
        "quantity_is_greater",
        method(),
        other(),
        |arguments| give(Quantity::of(&arguments, 0)? > Quantity::of(&arguments, 1)?),
    )?;
    env.add_member_overload("compareTo", "quantity_compare", method(), other(), |arguments| {
        give(Quantity::of(&arguments, 0)?.cmp(&Quantity::of(&arguments, 1)?) as i64)
    })?;
    env.add_member_overload("add", "quantity_add", method(), other(), |arguments| {
        let (one, other) = (Quantity::of(&arguments, 0)?, Quantity::of(&arguments, 1)?);
        sum(one, Some(other.0))
    })?;
    env.add_member_overload("sub", "quantity_sub", method(), other(), |arguments| {
        let (one, other) = (Quantity::of(&arguments, 0)?, Quantity::of(&arguments, 1)?);
        sum(one, other.0.checked_neg())
    })?;
    env.add_member_overload("add", "quantity_add_int", method(), vec![INT_TYPE], |arguments| {
        sum(Quantity::of(&arguments, 0)?, units(&arguments)?)
    })?;
    env.add_member_overload("sub", "quantity_sub_int", method(), vec![INT_TYPE], |arguments| {
        sum(Quantity::of(&arguments, 0)?, units(&arguments)?.and_then(i128::checked_neg))
    })
}

fn whole(Quantity(nanos): Quantity) -> Option<i64> {
    (nanos % quantity::UNIT == 0).then(|| i64::try_from(nanos / quantity::UNIT).ok())?
}

fn units(arguments: &[CowVal<'_, '_>]) -> Result<Option<i128>> {
    match argument(arguments, 1)? {
        Cel::Int(units) => Ok(i128::from(units).checked_mul(quantity::UNIT)),
        other => Err(other.error_expected_type(cel::objects::ValueType::Int)),
    }
}

fn sum<'b, 'v>(one: Quantity, other: Option<i128>) -> Result<CowVal<'b, 'v>> {
    let sum = other.and_then(|other| one.0.checked_add(other));
    give(
        sum.map(Quantity)
            .ok_or_else(|| ExecutionError::function_error("add", "more than a quantity holds"))?,
    )
}

fn urls(env: &mut Env) -> Declared {
    env.add_overload("url", "string_to_url", vec![STRING_TYPE], |arguments| {
        let url = Uri::parse(&string(&arguments, 0)?).map(Url);
        give(url.ok_or_else(|| ExecutionError::function_error("url", "no URL"))?)
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

fn addresses(env: &mut Env) -> Declared {
    env.add_overload("ip", "string_to_ip", vec![STRING_TYPE], |arguments| {
        give(Address(parsed("ip", &string(&arguments, 0)?)?))
    })?;
    env.add_overload("ip.isCanonical", "ip_is_canonical", vec![STRING_TYPE], |arguments| {
        let text = string(&arguments, 0)?;
        give(parsed::<IpAddr>("ip.isCanonical", &text)?.to_string() == *text)
    })?;
    env.add_overload("string", "ip_to_string", vec![Address::ty()], |arguments| {
        give(Address::of(&arguments, 0)?.0.to_string())
    })?;
    env.add_member_overload("family", "ip_family", Address::ty(), vec![], |arguments| {
        give(if Address::of(&arguments, 0)?.0.is_ipv4() { 4_i64 } else { 6 })
    })?;
    env.add_member_overload(
        "isUnspecified",
        "ip_is_unspecified",
        Address::ty(),
        vec![],
        |arguments| give(Address::of(&arguments, 0)?.0.is_unspecified()),
    )?;
    env.add_member_overload("isLoopback", "ip_is_loopback", Address::ty(), vec![], |arguments| {
        give(Address::of(&arguments, 0)?.0.is_loopback())
    })?;
    env.add_member_overload(
        "isLinkLocalUnicast",
        "ip_is_link_local",
        Address::ty(),
        vec![],
        |arguments| give(is_link_local(Address::of(&arguments, 0)?.0)),
    )?;
    let multicast = "isLinkLocalMulticast";
    env.add_member_overload(
        multicast,
        "ip_is_local_multicast",
        Address::ty(),
        vec![],
        |arguments| {
            give(match Address::of(&arguments, 0)?.0 {
                IpAddr::V4(address) => address.octets().starts_with(&[224, 0, 0]),
                IpAddr::V6(address) => address.segments()[0] & 0xff0f == 0xff02,
            })
        },
    )?;
    env.add_member_overload(
        "isGlobalUnicast",
        "ip_is_global_unicast",
        Address::ty(),
        vec![],
        |arguments| {
            let Address(address) = Address::of(&arguments, 0)?;
            let broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
            let special =
                address.is_unspecified() || address.is_loopback() || address.is_multicast();
            give(!broadcast && !special && !is_link_local(address))
        },
    )
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

fn ranges(env: &mut Env) -> Declared {
    env.add_overload("cidr", "string_to_cidr", vec![STRING_TYPE], |arguments| {
        give(Range(parsed("cidr", &string(&arguments, 0)?)?))
    })?;
    env.add_overload("string", "cidr_to_string", vec![Range::ty()], |arguments| {
        give(Range::of(&arguments, 0)?.0.to_string())
    })?;
    env.add_member_overload(
        "containsIP",
        "cidr_contains_ip",
        Range::ty(),
        vec![Address::ty()],
        |arguments| give(Range::of(&arguments, 0)?.0.contains(&Address::of(&arguments, 1)?.0)),
    )?;
    let text = || vec![STRING_TYPE];
    env.add_member_overload(
        "containsIP",
        "cidr_contains_ip_string",
        Range::ty(),
        text(),
        |arguments| {
            let address: IpAddr = parsed("containsIP", &string(&arguments, 1)?)?;
            give(Range::of(&arguments, 0)?.0.contains(&address))
        },
    )?;
    env.add_member_overload(
        "containsCIDR",
        "cidr_contains_cidr",
        Range::ty(),
        vec![Range::ty()],
        |arguments| give(Range::of(&arguments, 0)?.0.contains(&Range::of(&arguments, 1)?.0)),
    )?;
    env.add_member_overload(
        "containsCIDR",
        "cidr_contains_cidr_string",
        Range::ty(),
        text(),
        |arguments| {
            let range: IpNet = parsed("containsCIDR", &string(&arguments, 1)?)?;
            give(Range::of(&arguments, 0)?.0.contains(&range))
        },
    )?;
    env.add_member_overload("ip", "cidr_ip", Range::ty(), vec![], |arguments| {
        give(Address(Range::of(&arguments, 0)?.0.addr()))
    })?;
    env.add_member_overload("masked", "cidr_masked", Range::ty(), vec![], |arguments| {
        give(Range(Range::of(&arguments, 0)?.0.trunc()))
    })?;
    env.add_member_overload(
        "prefixLength",
        "cidr_prefix_length",
        Range::ty(),
        vec![],
        |arguments| give(i64::from(Range::of(&arguments, 0)?.0.prefix_len())),
    )
}

fn parsed<T: std::str::FromStr>(function: &str, text: &str) -> Result<T> {
    text.parse().map_err(|_| ExecutionError::function_error(function, "the text has another form"))
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
    "uri" |text| of_format(&Format::Uri, text),
    "uuid" |text| of_format(&Format::Uuid, text),
    "byte" |text| of_format(&Format::Byte, text),
    "date" |text| of_format(&Format::Date, text),
    "datetime" |text| of_format(&Format::DateTime, text),
}

fn prefix(text: &str) -> &str {
    text.strip_suffix('-').unwrap_or(text)
}

fn of_format(format: &Format, text: &str) -> Vec<String> {
    let name = format.name().unwrap_or_default();
    if format.accepts(text) { Vec::new() } else { vec![format!("must be of the format {name}")] }
}

fn give_optional<'b, 'v>(value: Option<Cel>) -> Result<CowVal<'b, 'v>> {
    let optional = value.map_or_else(OptionalValue::none, OptionalValue::of);
    give_value(Cel::Opaque(Arc::new(optional)))
}

#[cfg(test)]
mod tests;
