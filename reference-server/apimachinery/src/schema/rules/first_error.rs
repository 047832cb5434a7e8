//! Finds the error that kube-apiserver reports for a failed evaluation.
//!
//! If both operands of `&&` or `||` fail, the library reports the last error, and kube-apiserver
//! the first one.

use cel::common::ast::{CallExpr, Expr, IdedExpr, operators};
use cel::{Context, ExecutionError, Value as Cel};

use super::meter::SPEND;

/// Returns the error to report for an expression that failed with `last`.
pub(super) fn first_error(
    expression: &IdedExpr,
    context: &Context<'_, '_>,
    last: ExecutionError,
) -> ExecutionError {
    let mut expression = expression;
    let mut error = last;
    // The loop follows one branch of each operator, so it is as long as the expression is deep.
    loop {
        let Expr::Call(call) = &expression.expr else { return error };
        let Some((part, why)) = next(call, context) else { return error };
        (expression, error) = (part, why);
    }
}

/// Returns the first part of a call that fails, with its error.
fn next<'e>(
    call: &'e CallExpr,
    context: &Context<'_, '_>,
) -> Option<(&'e IdedExpr, ExecutionError)> {
    let failure = |part: &'e IdedExpr| Cel::resolve(part, context).err().map(|error| (part, error));
    match (call.func_name.as_str(), call.args.as_slice()) {
        (operators::LOGICAL_AND | operators::LOGICAL_OR, [left, right]) => {
            failure(left).or_else(|| failure(right))
        }
        (operators::CONDITIONAL, [condition, yes, no]) => match Cel::resolve(condition, context) {
            Err(error) => Some((condition, error)),
            Ok(Cel::Bool(true)) => failure(yes),
            Ok(_) => failure(no),
        },
        (operators::LOGICAL_NOT, [part]) | (SPEND, [_, part]) => failure(part),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::super::counted::counted;
    use super::super::errors::evaluation_error;
    use super::super::{library, meter};
    use super::*;

    #[rstest]
    #[case("1 / zero == 1 || 1 % zero == 1", "division by zero")]
    #[case("1 / zero == 1 && 1 % zero == 1", "division by zero")]
    #[case("true && (1 % zero == 1 || 1 / zero == 1)", "modulus by zero")]
    #[case("!(zero == 0 ? 1 / zero == 1 || 1 % zero == 1 : false)", "division by zero")]
    #[case("1 / zero == 1", "division by zero")]
    fn the_first_error_is_reported(#[case] text: &str, #[case] expected: &str) {
        let program = library::env().compile(text).expect("an expression");
        let counted = counted(program.expression());
        let mut context = Context::with_env(library::env());
        context.add_variable_from_value("zero", 0);
        let error = meter::measure(|| {
            let last = Cel::resolve(&counted, &context).expect_err("an error");
            first_error(&counted, &context, last)
        });
        assert_eq!(evaluation_error(&error.0.expect("a result")), expected);
    }
}
