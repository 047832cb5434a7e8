//! `x-kubernetes-validations`: CEL rules for the objects of a custom type.
//!
//! When a definition is created, its rules are compiled, checked against the types of the schema,
//! and given a cost, which is that of the largest object in a request. So the evaluation on an
//! object cannot fail to compile, and its work is bounded. The evaluation counts its cost, too, and
//! ends at the limits of kube-apiserver.

pub mod authorizer;
mod check;
mod conversions;
mod cost;
mod counted;
pub mod device;
mod errors;
mod evaluate;
pub mod expression;
mod format;
mod kinds;
mod library;
mod messages;
mod meter;
mod node;
mod pairs;
pub mod semver;
mod signatures;
mod size;
mod syntax;
mod types;
mod value;

use std::sync::Arc;

use cel::{IdedExpr, Program};
use serde_json::Value;

use self::check::check;
use self::counted::counted;
pub use self::evaluate::Judgement;
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
const REASONS: [CauseReason; 4] = [
    CauseReason::FieldValueDuplicate,
    CauseReason::FieldValueForbidden,
    CauseReason::FieldValueInvalid,
    CauseReason::FieldValueRequired,
];

/// A compiled rule.
#[derive(Clone, Debug)]
pub struct Rule {
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

/// Reads the rules of a schema after its other keywords. `path` is the path of the schema.
///
/// `root` marks the schema of whole objects. They have a kind and a name even if the schema does
/// not declare them.
pub(super) fn read(
    rules: &Value,
    schema: &Schema,
    root: bool,
    path: Path<'_>,
) -> Result<Vec<Arc<Rule>>, Vec<FieldError>> {
    let whole;
    let schema = if root {
        whole = with_type_meta(schema.clone());
        &whole
    } else {
        schema
    };
    let at = path.field(KEYWORD);
    let mut reader = Reader { schema, errors: Vec::new() };
    let read = rules.as_array().into_iter().flatten().enumerate();
    let read: Vec<_> =
        read.filter_map(|(index, rule)| reader.rule(rule, at.index(index))).map(Arc::new).collect();
    if reader.errors.is_empty() { Ok(read) } else { Err(reader.errors) }
}

struct Reader<'s> {
    schema: &'s Schema,
    errors: Vec<FieldError>,
}

impl Reader<'_> {
    fn rule(&mut self, rule: &Value, path: Path<'_>) -> Option<Rule> {
        let text = |field: &str| rule[field].as_str().unwrap_or_default().trim().to_owned();
        let (expression, message) = (text("rule"), text("message"));
        if expression.is_empty() {
            self.errors.push(FieldError::required(path.field("rule"), "rule is not specified"));
            return None;
        }
        for (field, content) in [("rule", &expression), ("message", &message)] {
            if field == "message" && content.contains('\n') {
                let why = "message must not contain line breaks";
                self.errors.push(FieldError::invalid(path.field(field), &rule[field], why));
            }
        }
        let reason = self.reason(&rule["reason"], path);
        let field = self.field(&rule["fieldPath"], path);
        let optional_old = rule["optionalOldSelf"] == true;
        let (program, cost) = self.compile(&rule["rule"], "rule", optional_old, path)?;
        let (mut message_expression, mut message_cost) = (None, 0);
        if !text("messageExpression").is_empty() {
            let (program, more) =
                self.compile(&rule["messageExpression"], "messageExpression", optional_old, path)?;
            message_cost = more;
            message_expression = Some(Arc::new(counted(program.expression())));
        }
        let looks_back = program.references().has_variable("oldSelf");
        if optional_old && !looks_back {
            let why = "may not be set if oldSelf is not used in rule";
            self.errors.push(FieldError::invalid(
                path.field("optionalOldSelf"),
                &rule["optionalOldSelf"],
                why,
            ));
        }
        Some(Rule {
            text: expression,
            program: Arc::new(counted(program.expression())),
            message: (!message.is_empty()).then_some(message),
            message_expression,
            reason: reason?,
            field: field?,
            optional_old,
            looks_back,
            cost,
            message_cost,
        })
    }

    /// Compiles the expression in `field` of a rule. Returns it with its cost.
    fn compile(
        &mut self,
        text: &Value,
        field: &str,
        optional_old: bool,
        path: Path<'_>,
    ) -> Option<(Program, u64)> {
        let (place, wanted) = match field {
            "rule" => (path.field("rule"), "bool"),
            field => (path.field(field), "string"),
        };
        let expression = text.as_str().unwrap_or_default();
        if let Some(error) = unreadable(expression, place) {
            self.errors.push(error);
            return None;
        }
        let compiled = library::env().compile(expression).map_err(|error| error.to_string());
        let checked = compiled.and_then(|program| {
            let checked = check(program.expression(), self.schema, optional_old)?;
            Ok((program, checked.ty.to_string(), checked.cost))
        });
        let error = match checked {
            Ok((program, ty, cost)) if ty == wanted || ty == "dyn" => {
                return Some((program, cost));
            }
            Ok(_) => format!("{field} must evaluate to a {wanted}"),
            Err(error) => format!("compilation failed: {}", error.replace('\n', "; ")),
        };
        self.errors.push(FieldError::invalid(place, text, &error));
        None
    }

    fn reason(&mut self, value: &Value, path: Path<'_>) -> Option<CauseReason> {
        let Some(word) = value.as_str().filter(|word| !word.is_empty()) else {
            return Some(CauseReason::FieldValueInvalid);
        };
        let known = REASONS.into_iter().find(|reason| reason.as_str() == word);
        if known.is_none() {
            let words = REASONS.map(|reason| Value::from(reason.as_str()));
            self.errors.push(FieldError::not_supported(path.field("reason"), value, &words));
        }
        known
    }

    /// Reads `fieldPath`, which must exist in the schema of the rule.
    fn field(&mut self, value: &Value, path: Path<'_>) -> Option<String> {
        let given = value.as_str().unwrap_or_default().trim();
        let names = steps(given);
        let exists = |names: &[String]| {
            names.iter().try_fold(self.schema, |schema, name| schema.child(name)).is_some()
                && !names.is_empty()
        };
        match names {
            _ if given.is_empty() => Some(String::new()),
            Some(names) if exists(&names) => Some(given.to_owned()),
            _ => {
                let why =
                    "fieldPath must be a valid path to a field of the schema, such as .spec.size";
                self.errors.push(FieldError::invalid(path.field("fieldPath"), value, why));
                None
            }
        }
    }
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

/// Parses the names in a path `.a['b.c'].d`.
fn steps(path: &str) -> Option<Vec<String>> {
    let mut names = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        let (name, tail) = if let Some(quoted) = rest.strip_prefix("['") {
            quoted.split_once("']")?
        } else {
            let plain = rest.strip_prefix('.')?;
            plain.split_at(plain.find(['.', '[']).unwrap_or(plain.len()))
        };
        if name.is_empty() {
            return None;
        }
        names.push(name.to_owned());
        rest = tail;
    }
    Some(names)
}
