//! Mistakes of the constant parts of an expression, which kube-apiserver evaluates in advance.

use cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, LiteralValue};
use cel::{Context, Value as Cel};

use super::super::super::pattern;
use super::super::counted::counted;
use super::super::errors::evaluation_error;
use super::super::library;

/// The functions that convert a value to another type.
const CONVERSIONS: [&str; 10] =
    ["bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"];

/// Returns the first mistake of a constant conversion or pattern.
pub(in super::super) fn mistake(expression: &IdedExpr) -> Option<String> {
    visit(expression).err()
}

/// Reports whether an expression is constant.
fn visit(expression: &IdedExpr) -> Result<bool, String> {
    match &expression.expr {
        Expr::Literal(_) => Ok(true),
        Expr::Unspecified | Expr::Ident(_) => Ok(false),
        Expr::Select(select) => visit(&select.operand).map(|_| false),
        Expr::Call(call) => self::call(call, expression),
        Expr::List(list) => {
            let is_constant = all(list.elements.iter())?;
            Ok(is_constant && list.optional_indices.is_empty())
        }
        Expr::Map(map) => {
            let parts = map.entries.iter().flat_map(|entry| match &entry.expr {
                EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
                EntryExpr::StructField(field) => vec![&field.value],
            });
            all(parts)
        }
        Expr::Struct(literal) => {
            let fields = literal.entries.iter().filter_map(|entry| match &entry.expr {
                EntryExpr::StructField(field) => Some(&field.value),
                EntryExpr::MapEntry(_) => None,
            });
            all(fields).map(|_| false)
        }
        Expr::Comprehension(loops) => {
            let parts = [&loops.accu_init, &loops.iter_range, &loops.loop_cond, &loops.loop_step];
            all(parts.into_iter().chain([&loops.result])).map(|_| false)
        }
    }
}

fn all<'e>(parts: impl Iterator<Item = &'e IdedExpr>) -> Result<bool, String> {
    let mut are_constant = true;
    for part in parts {
        are_constant &= visit(part)?;
    }
    Ok(are_constant)
}

fn call(call: &CallExpr, whole: &IdedExpr) -> Result<bool, String> {
    let are_constant = all(call.target.as_deref().into_iter().chain(&call.args))?;
    match (call.func_name.as_str(), call.target.as_deref(), call.args.as_slice()) {
        ("matches", None, [_, pattern])
        | ("matches" | "find" | "findAll", Some(_), [pattern, ..]) => {
            if let Some(text) = constant_text(pattern)? {
                pattern::check(&text).map_err(|error| error.to_string())?;
            }
            Ok(false)
        }
        // These accept any value.
        ("dyn" | "type", None, [_]) => Ok(are_constant),
        (name, None, [_]) if are_constant && CONVERSIONS.contains(&name) => {
            evaluated(whole).map(|_| true)
        }
        _ => Ok(false),
    }
}

fn constant_text(expression: &IdedExpr) -> Result<Option<String>, String> {
    if let Expr::Literal(LiteralValue::String(text)) = &expression.expr {
        return Ok(Some(text.inner().to_owned()));
    }
    if !visit(expression)? {
        return Ok(None);
    }
    Ok(match evaluated(expression)? {
        Cel::String(text) => Some(text.to_string()),
        _ => None,
    })
}

fn evaluated(expression: &IdedExpr) -> Result<Cel, String> {
    let context = Context::with_env(library::env());
    Cel::resolve(&counted(expression), &context).map_err(|error| evaluation_error(&error))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// kube-apiserver 1.36.2 reports these mistakes after "program instantiation failed: ".
    #[rstest]
    #[case("int('x') == 1", "type conversion error from 'string' to 'int'")]
    #[case("int(18446744073709551615u) == 1", "integer overflow")]
    #[case("matches(self.s, '(')", "error parsing regexp: missing closing ): `(`")]
    #[case("self.s.find('[') == ''", "error parsing regexp: missing closing ]: `[`")]
    #[case("string(null) == ''", "no such overload: string(null_type)")]
    #[case("true || bool('yes')", "type conversion error from 'string' to 'bool'")]
    #[case("[1].all(x, uint(-1) == x)", "unsigned integer overflow")]
    fn constants_are_evaluated_in_advance(#[case] text: &str, #[case] expected: &str) {
        let program = library::env().compile(text).expect("an expression");
        assert_eq!(mistake(program.expression()).as_deref(), Some(expected));
    }

    #[rstest]
    #[case("int(self.s) == 1 && self.s.matches(self.t)")]
    #[case(
        "dyn({1.5: 'a'}) == {} && int(string(1)) == 1 && '1'.matches('^1$') && int('1' + '') > 0"
    )]
    fn other_expressions_have_no_mistake(#[case] text: &str) {
        let program = library::env().compile(text).expect("an expression");
        assert_eq!(mistake(program.expression()), None);
    }
}
