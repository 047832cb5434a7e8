//! `x-kubernetes-validations`: CEL rules for the objects of a custom type.
//!
//! When a definition is created, its rules are compiled, checked against the types of the schema,
//! and given a cost, which is that of the largest object in a request. So the evaluation on an
//! object cannot fail to compile, and its work is bounded. The evaluation counts its cost, too, and
//! ends at the limits of kube-apiserver.

mod addresses;
pub mod authorizer;
mod check;
mod containers;
mod conversions;
mod cost;
mod counted;
pub mod device;
mod errors;
mod evaluate;
pub mod expression;
mod first_error;
mod format;
mod go;
mod inference;
mod issues;
mod kinds;
mod library;
mod lists;
mod messages;
mod meter;
mod node;
mod pairs;
mod quantities;
pub mod semver;
mod signatures;
mod size;
mod syntax;
mod types;
mod value;

use std::sync::Arc;

use cel::{IdedExpr, Program};
use serde::Serialize;
use serde_json::Value;

use self::check::{Parsed, check, mistake_of_constants};
use self::counted::counted;
pub use self::evaluate::Judgement;
pub(crate) use self::format::quoted;
pub use self::size::{cardinality, multiplicity};
use super::meta::with_type_meta;
use super::{CauseReason, FieldError, Path, Schema};

/// The keyword of the rules in a schema.
pub const KEYWORD: &str = "x-kubernetes-validations";

/// The maximum length of an expression in bytes.
const MAX_LENGTH: u64 = 16 * 1024;
/// The maximum number of links of all chains in an expression.
const MAX_LINKS: u64 = 300;

/// The reasons that a rule may declare for its violations.
pub const REASONS: [CauseReason; 4] = [
    CauseReason::FieldValueDuplicate,
    CauseReason::FieldValueForbidden,
    CauseReason::FieldValueInvalid,
    CauseReason::FieldValueRequired,
];

/// A compiled rule.
#[derive(Clone, Debug)]
pub struct Rule {
    index: usize,
    text: String,
    program: Arc<IdedExpr>,
    message: Option<String>,
    message_expression: Option<Arc<IdedExpr>>,
    reason: CauseReason,
    /// The path of the violation, relative to the path of the rule: `.spec.low`.
    field: String,
    /// The rule is also evaluated without an old value. `oldSelf` is then an empty optional.
    optional_old: bool,
    looks_back: bool,
    cost: u64,
    message_cost: u64,
}

impl Rule {
    /// Returns the position of the rule in the list of its schema.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Returns the text of the expression.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Reports whether the rule uses the value before the change.
    pub fn looks_back(&self) -> bool {
        self.looks_back
    }

    /// Returns the maximum number of steps of one evaluation.
    pub fn cost(&self) -> u64 {
        self.cost
    }

    /// Returns the maximum number of steps to write the message.
    pub fn message_cost(&self) -> u64 {
        self.message_cost
    }
}

/// Reads the rules of a schema after its other keywords. `path` is the path of the schema. Returns
/// the rules that compile, and the mistakes of the others.
///
/// `root` marks the schema of whole objects. They have a kind and a name even if the schema does
/// not declare them.
pub(super) fn read(
    rules: &Value,
    schema: &Schema,
    root: bool,
    path: Path<'_>,
) -> (Vec<Arc<Rule>>, Vec<FieldError>) {
    let whole;
    let schema = if root {
        whole = with_type_meta(schema.clone());
        &whole
    } else {
        schema
    };
    let at = path.field(KEYWORD);
    let rules_exist = rules.as_array().is_some_and(|rules| !rules.is_empty());
    if rules_exist && !size::is_exposed(schema) {
        let why = "internal error: failed to construct type information for \
                   x-kubernetes-validations rules: unable to convert structural schema to CEL \
                   declarations";
        return (Vec::new(), vec![FieldError::internal(at, why)]);
    }
    let mut reader = Reader { schema, errors: Vec::new() };
    let read = rules.as_array().into_iter().flatten().enumerate();
    let read = read.filter_map(|(index, rule)| reader.rule(rule, index, at)).map(Arc::new);
    (read.collect(), reader.errors)
}

struct Reader<'s> {
    schema: &'s Schema,
    errors: Vec<FieldError>,
}

impl Reader<'_> {
    fn rule(&mut self, rule: &Value, index: usize, path: Path<'_>) -> Option<Rule> {
        let path = path.index(index);
        let text = |field: &str| rule[field].as_str().unwrap_or_default().trim().to_owned();
        let (expression, message) = (text("rule"), text("message"));
        let optional_old = rule["optionalOldSelf"] == true;
        let compiled = self.compile(rule, "rule", optional_old, path);
        let looks_back = compiled
            .as_ref()
            .is_some_and(|(program, _)| program.references().has_variable("oldSelf"));
        let option = &rule["optionalOldSelf"];
        if !option.is_null() && !looks_back {
            let why = "may not be set if oldSelf is not used in rule";
            self.errors.push(FieldError::invalid(path.field("optionalOldSelf"), option, why));
        }
        let (program, cost) = compiled?;
        let message_program = (!text("messageExpression").is_empty())
            .then(|| self.compile(rule, "messageExpression", optional_old, path))
            .flatten();
        let reason = REASONS.into_iter().find(|reason| rule["reason"] == reason.as_str());
        Some(Rule {
            index,
            text: expression,
            program: Arc::new(counted(program.expression())),
            message: (!message.is_empty()).then_some(message),
            message_cost: message_program.as_ref().map_or(0, |(_, cost)| *cost),
            message_expression: message_program
                .map(|(program, _)| Arc::new(counted(program.expression()))),
            reason: reason.unwrap_or(CauseReason::FieldValueInvalid),
            field: text("fieldPath"),
            optional_old,
            looks_back,
            cost,
        })
    }

    /// Compiles the expression in `field` of a rule. Returns it with its cost.
    fn compile(
        &mut self,
        rule: &Value,
        field: &str,
        optional_old: bool,
        path: Path<'_>,
    ) -> Option<(Program, u64)> {
        let (place, subject, name, wanted) = match field {
            "rule" => (path.field("rule"), "", "cel expression", "bool"),
            field => (path.field(field), "messageExpression ", field, "string"),
        };
        let expression = rule[field].as_str().unwrap_or_default();
        if let Some(error) = unreadable(expression, place) {
            self.errors.push(error);
            return None;
        }
        match compiled(expression, self.schema, optional_old, (name, wanted)) {
            Ok(compiled) => Some(compiled),
            Err(mistake) => {
                let why = mistake.message(subject);
                self.errors.push(FieldError::invalid_text(place, &shown(rule), &why));
                None
            }
        }
    }
}

/// Why a rule has no program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum Mistake {
    #[error("compilation failed: {0}")]
    Compilation(String),
    #[error("{0}")]
    Type(String),
    #[error("program instantiation failed: {0}")]
    Constant(String),
}

impl Mistake {
    /// Returns the message about an expression. `subject` names expressions other than rules.
    fn message(&self, subject: &str) -> String {
        match self {
            Self::Constant(why) if !subject.is_empty() => {
                format!("{subject}instantiation failed: {why}")
            }
            Self::Compilation(_) => format!("{subject}{self}"),
            Self::Constant(_) | Self::Type(_) => self.to_string(),
        }
    }
}

/// Compiles an expression with the type `wanted`. Returns it with its cost.
fn compiled(
    expression: &str,
    schema: &Schema,
    optional_old: bool,
    (name, wanted): (&str, &str),
) -> Result<(Program, u64), Mistake> {
    let program = library::env()
        .compile(expression)
        .map_err(|error| Mistake::Compilation(issues::of_parser(&error.to_string())))?;
    let parsed = Parsed { expression: program.expression(), source: program.source_info() };
    let checked = check(parsed, schema, optional_old).map_err(Mistake::Compilation)?;
    let (ty, cost) = (checked.ty.to_string(), checked.cost);
    if ty != wanted {
        return Err(Mistake::Type(format!("{name} must evaluate to a {wanted}")));
    }
    match mistake_of_constants(program.expression()) {
        Some(why) => Err(Mistake::Constant(why)),
        None => Ok((program, cost)),
    }
}

/// Returns a rule as kube-apiserver shows it in a message.
fn shown(rule: &Value) -> String {
    #[derive(Serialize)]
    #[serde(rename_all = "PascalCase")]
    struct Shown<'r> {
        rule: &'r str,
        message: &'r str,
        message_expression: &'r str,
        reason: Option<&'r str>,
        field_path: &'r str,
        optional_old_self: Option<bool>,
    }
    let text = |field: &str| rule[field].as_str().unwrap_or_default();
    let shown = Shown {
        rule: text("rule"),
        message: text("message"),
        message_expression: text("messageExpression"),
        reason: rule["reason"].as_str(),
        field_path: text("fieldPath"),
        optional_old_self: rule["optionalOldSelf"].as_bool(),
    };
    let text = serde_json::to_string(&shown).unwrap_or_default();
    // Go escapes the characters with a meaning in HTML.
    text.chars().fold(String::new(), |mut text, character| {
        match character {
            '<' => text.push_str("\\u003c"),
            '>' => text.push_str("\\u003e"),
            '&' => text.push_str("\\u0026"),
            '\u{2028}' => text.push_str("\\u2028"),
            '\u{2029}' => text.push_str("\\u2029"),
            other => text.push(other),
        }
        text
    })
}

/// Returns the reason not to parse an expression. Each link of a chain (`a.b.c`, `a + b + c`) is a
/// level of the syntax tree. All code that walks the tree, including the library, takes a stack
/// frame for each level.
fn unreadable(expression: &str, path: Path<'_>) -> Option<FieldError> {
    let links = expression.chars().filter(|link| ".[+-*/%=<>".contains(*link)).count() as u64;
    if expression.len() as u64 > MAX_LENGTH {
        Some(FieldError::too_long(path, MAX_LENGTH))
    } else if links > MAX_LINKS {
        let why = format!("has {links} selections and operators, and may have {MAX_LINKS}");
        Some(FieldError::forbidden(path, &why))
    } else {
        None
    }
}
