use cel::{Context, Value as Cel};
use rstest::rstest;

use super::super::{library, meter};
use super::*;

fn measured(text: &str) -> (Option<Result<Cel, cel::ExecutionError>>, u64) {
    let program = library::env().compile(text).expect("an expression");
    let counted = counted(program.expression());
    let mut context = Context::with_env(library::env());
    let items: Vec<i64> = (0..1000).collect();
    context.add_variable_from_value("items", items);
    context.add_variable_from_value("text", "x".repeat(1000));
    context.add_variable_from_value("flag", true);
    meter::measure(|| Cel::resolve(&counted, &context))
}

/// The numbers are those of kube-apiserver, except that the condition that ends a loop early is
/// not counted.
#[rstest]
#[case("true", 0)]
#[case("flag", 1)]
#[case("!flag", 2)]
#[case("flag && !flag", 3)]
#[case("!flag && items.all(x, x > 0)", 2)]
#[case("flag ? true : text.contains('y')", 1)]
#[case("text.contains('y')", 1 + 100)]
#[case("text.matches('^x*$')", 1 + 101)]
#[case("matches(text, '^x*$')", 1 + 1)]
#[case("text == text", 2 + 100)]
#[case("1 + 1 == 2", 1 + 1)]
#[case("text + 'y' == text", 2 + 101 + 100)]
#[case("items.size()", 2)]
#[case("5 in items", 1 + 1000)]
#[case("[1, 2].size()", 10 + 1)]
#[case("{'a': 1}.size()", 30 + 1)]
#[case("items.all(x, x >= 0)", 2 + 1000 * (2 + 1 + 2))]
#[case("items.exists(x, x == 0)", 2 + 3 + 1 + 2)]
#[case("items.map(x, x + 1)", 2 + 10 + 1000 * (12 + 2))]
#[case("items.filter(x, x > 5).size() == 994", 4 + 10 + 1000 * 2 + 994 * 13)]
#[case("(flag ? flag : !flag) && (!flag ? flag : items[0] == 0)", 1 + 2 + 2 + 1)]
#[case("items.exists_one(x, x == 7)", 3 + 1000 * 2 + 2)]
fn evaluations_cost_their_steps(#[case] text: &str, #[case] expected: u64) {
    let (result, cost) = measured(text);
    assert!(matches!(result, Some(Ok(_))), "{text}: {result:?}");
    assert_eq!(cost, expected, "{text}");
}

#[test]
fn results_stay_the_same() {
    for (text, expected) in [
        ("items.map(x, x * 2).filter(x, x < 4) == [0, 2]", true),
        ("items.exists_one(x, x == 7) && !items.exists_one(x, x > 7)", true),
        ("optional.of(1).orValue(2) == 1 && {'a': 1}[?'b'].orValue(3) == 3", true),
        ("has({'a': 1}.a) && !has({'a': 1}.b)", true),
        ("[1, 2].exists(x, 1 / (x - 1) == 1)", true),
        ("['b', 'a'].sort().join(',') == 'a,b' && sets.contains([1], [1])", true),
        ("{'a': 1, 'a': 2} == {'a': 2} && .flag", true),
        ("text.startsWith('y') || items.all(x, x in [1, 2])", false),
        (r"'a1'.matches('^[[:word:]&&]+$') && matches('a', r'^\p{^Greek}$')", true),
    ] {
        assert_eq!(measured(text).0, Some(Ok(Cel::Bool(expected))), "{text}");
    }
}

#[test]
fn expensive_evaluations_end() {
    let nested = "items.all(x, items.all(y, x + y >= 0))";
    let (result, cost) = measured(nested);
    assert!(result.is_none() && (1_000_000..1_010_000).contains(&cost), "{cost}");
    let (result, _) = measured("items.map(x, items.map(y, x + y)).size() > 0");
    assert!(result.is_none());
    let (result, _) = measured("items.all(x, x >= 0 && items.exists(y, y == 0))");
    assert!(result.is_some());
}

#[rstest]
#[case(format!("true{}", " == true".repeat(149)))]
#[case(format!("'a'{}", " + 'a'".repeat(299)))]
#[case(format!("'a'{} == 'a'", ".lowerAscii()".repeat(290)))]
#[case(format!("{}true{}", "(flag ? ".repeat(90), " : false)".repeat(90)))]
#[case(format!("{}true{}", "(false || ".repeat(90), ")".repeat(90)))]
fn deep_expressions_fit_the_stack(#[case] text: String) {
    let small = std::thread::Builder::new().stack_size(2 * 1024 * 1024);
    let result = small.spawn(move || measured(&text).0.is_some_and(|result| result.is_ok()));
    assert!(result.expect("a thread").join().expect("enough stack"));
}
