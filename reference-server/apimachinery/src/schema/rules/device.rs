//! The variable `device` in the selectors of dynamic resource allocation.
//!
//! The server only compiles selectors and estimates their cost. The scheduler evaluates them.

use std::sync::{Arc, LazyLock};

use cel::Env;
use cel::common::ast::{Expr, IdedExpr};
use cel::parser::{Macro, MacroExprHelper, ParseError};

use super::check::{Parsed, check_device};
use super::library;
use super::size::Range;
use super::syntax::bound;
use super::types::Type;
use super::unreadable;
use crate::field::Path;

/// The maximum length of a domain or of the name of a driver.
const DOMAIN: u64 = 63;
/// The maximum length of the name of an attribute or capacity.
const NAME: u64 = 32;
/// The maximum number of attributes and capacities of a device.
const ENTRIES: u64 = 32;
/// The maximum length of the value of an attribute.
const VALUE: u64 = 64;

/// A part of the variable `device`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Device,
    Driver,
    AllowsMany,
    /// The attributes of all domains.
    Attributes,
    /// The attributes of one domain.
    AttributesOfDomain,
    Attribute,
    /// The capacities of all domains.
    Capacities,
    /// The capacities of one domain.
    CapacitiesOfDomain,
    Capacity,
    Domain,
    Name,
}

impl Part {
    pub(super) fn size(self) -> Range {
        Range::up_to(match self {
            Self::Device | Self::Capacity => 0,
            Self::AllowsMany => 1,
            Self::Driver | Self::Domain => DOMAIN,
            Self::Name => NAME,
            Self::Attributes
            | Self::AttributesOfDomain
            | Self::Capacities
            | Self::CapacitiesOfDomain => ENTRIES,
            Self::Attribute => VALUE,
        })
    }

    /// Returns a named field, if the limits of devices say something about its size.
    pub(super) fn field(self, name: &str) -> Option<Self> {
        match (self, name) {
            (Self::Device, "driver") => Some(Self::Driver),
            (Self::Device, "allowMultipleAllocations") => Some(Self::AllowsMany),
            (Self::Device, "attributes") => Some(Self::Attributes),
            (Self::Device, "capacity") => Some(Self::Capacities),
            (Self::AttributesOfDomain, _) => Some(Self::Attribute),
            _ => None,
        }
    }

    /// Returns the values of a map.
    pub(super) fn contents(self) -> Option<Self> {
        match self {
            Self::Attributes => Some(Self::AttributesOfDomain),
            Self::AttributesOfDomain => Some(Self::Attribute),
            Self::Capacities => Some(Self::CapacitiesOfDomain),
            Self::CapacitiesOfDomain => Some(Self::Capacity),
            _ => None,
        }
    }

    /// Returns the keys of a map.
    pub(super) fn keys(self) -> Option<Self> {
        match self {
            Self::Attributes | Self::Capacities => Some(Self::Domain),
            Self::AttributesOfDomain | Self::CapacitiesOfDomain => Some(Self::Name),
            _ => None,
        }
    }

    /// Returns the type of a field of the device.
    pub(super) fn type_of<'s>(name: &str) -> Option<Type<'s>> {
        let map = |values| Type::Map(Box::new(Type::String), Box::new(values));
        match name {
            "driver" => Some(Type::String),
            "allowMultipleAllocations" => Some(Type::Bool),
            "attributes" => Some(map(map(Type::Any))),
            "capacity" => Some(map(map(Type::Kind("Quantity")))),
            _ => None,
        }
    }
}

/// Returns the maximum number of steps of a selector. The error is a message for the user.
pub fn selector_cost(text: &str) -> Result<u64, String> {
    if let Some(error) = unreadable(text, Path::Root) {
        return Err(error.message);
    }
    let failed = |error: String| format!("compilation failed: {error}");
    let compiled = env().compile(text).map_err(|error| failed(error.to_string()))?;
    let parsed = Parsed { expression: compiled.expression(), source: compiled.source_info() };
    let checked = check_device(parsed).map_err(failed)?;
    match checked.ty {
        Type::Bool | Type::Any => Ok(checked.cost),
        other => Err(format!("must evaluate to bool or the unknown type, not {other}")),
    }
}

/// Returns the environment of selectors, which has the macro `cel.bind`.
fn env() -> Arc<Env> {
    static ENV: LazyLock<Arc<Env>> = LazyLock::new(|| {
        let mut env = library::new_env();
        let added = env.add_macro(Macro::receiver("bind", 3, bind));
        debug_assert!(added.is_ok(), "{added:?}");
        Arc::new(env)
    });
    Arc::clone(&ENV)
}

/// Expands `cel.bind(name, value, result)` into a loop without rounds.
fn bind(
    helper: &mut MacroExprHelper<'_>,
    target: &mut Option<IdedExpr>,
    arguments: &mut Vec<IdedExpr>,
) -> Result<Option<IdedExpr>, ParseError> {
    let is_cel = |target: &IdedExpr| matches!(&target.expr, Expr::Ident(name) if name == "cel");
    if !target.as_ref().is_some_and(is_cel) {
        return Ok(None);
    }
    let (Some(result), Some(value), Some(name)) =
        (arguments.pop(), arguments.pop(), arguments.pop())
    else {
        return Ok(None);
    };
    let Expr::Ident(variable) = name.expr else {
        let why = "cel.bind() variable names must be simple identifiers";
        return Err(helper.new_error(name.id, why));
    };
    Ok(Some(bound(&variable, value, result)))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("device.driver == 'gpu.example.com'")]
    #[case("device.attributes['a.example.com'].model == 'x'")]
    #[case("device.capacity['a.example.com'].memory.compareTo(quantity('1Gi')) >= 0")]
    #[case("device.allowMultipleAllocations")]
    #[case("device.attributes['a.example.com'].healthy")]
    #[case("cel.bind(a, device.attributes['a.example.com'], a.b && a.c)")]
    #[case("device.attributes['a.example.com'].version.isGreaterThan(semver('1.0.0'))")]
    fn selectors_are_cheap(#[case] text: &str) {
        let cost = selector_cost(text);
        assert!(cost.as_ref().is_ok_and(|cost| *cost < 30), "{cost:?}");
    }

    #[rstest]
    #[case("", "compilation failed")]
    #[case("device.", "compilation failed")]
    #[case("device.model == 'x'", "undefined field 'model'")]
    #[case("claim.name == 'x'", "undeclared reference to 'claim'")]
    #[case("device.driver", "must evaluate to bool or the unknown type, not string")]
    #[case("device.attributes['a'].b.all(x, x == 1)", "cannot be range of a comprehension")]
    #[case("device.driver == 1", "found no matching overload")]
    fn selectors_are_checked(#[case] text: &str, #[case] expected: &str) {
        let error = selector_cost(text).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn nested_loops_are_expensive() {
        let all = "device.attributes.all(a, device.attributes.all(b, ";
        let cost = |text: &str| selector_cost(text).expect("an expression");
        assert!(cost(&format!("{all}a == b))")) < 1_000_000);
        assert!(cost(&format!("{all}{all}a == b))))")) > 1_000_000);
    }
}
