use cel::Context;
use rstest::rstest;

use super::super::counted::counted;
use super::super::library::env;
use super::*;

fn written(expression: &str) -> Result<Cel, ExecutionError> {
    let program = env().compile(expression).expect("an expression");
    Cel::resolve(&counted(program.expression()), &Context::with_env(env()))
}

/// kube-apiserver 1.36.2 wrote these texts.
#[rstest]
#[case("'%s-%d%%'.format(['a', 1])", "a-1%")]
#[case("'%s'.format([[1, 'a', [2u]]])", r#"[1, "a", [2]]"#)]
#[case("'%s'.format([{'b': [1], true: 'x'}])", r#"{"b":[1], true:"x"}"#)]
#[case(
    "'%s'.format([[true, null, b'a', duration('1h'), timestamp('2026-01-02T03:04:05Z')]])",
    r#"[true, null, b"a", duration("3600s"), timestamp("2026-01-02T03:04:05Z")]"#
)]
#[case("'%s'.format([[1.5, 1e30]])", "[1.500000, 1000000000000000019884624838656.000000]")]
#[case(r#"'%s'.format([['a"b\n', 'é\t\u0001']])"#, r#"["a\"b\n", "é\t\x01"]"#)]
#[case("'%s %s %s'.format([1.5, 1e30, 100000.0])", "1.5 1e+30 100000")]
#[case("'%s %s'.format([1e6, 0.00001])", "1e+06 1e-05")]
#[case("'%s %s'.format([duration('90s'), null])", "90s null")]
#[case("'%s'.format([[dyn(double('NaN'))]])", r#"["NaN"]"#)]
#[case("'%e|%.2e'.format([12345.678, -0.00012])", "1.234568×10⁰⁴|-1.200000×10⁻⁰⁴")]
#[case("'%s'.format([timestamp('2026-01-02T03:04:05.100-05:30')])", "2026-01-02T03:04:05.1-05:30")]
#[case("'%f|%.3f|%.0f'.format([-1234567.891, 999.9996, 0.5])", "-1,234,567.891000|1,000.000|0")]
#[case("'%f %f'.format([double('Infinity'), 'NaN'])", "∞ NaN")]
#[case("'%.256f|%.258f'.format([2.5, 2.5])", "2.5|2.50")]
#[case("'%e|%.2e'.format([double('Infinity'), 'NaN'])", "     ∞|NaN")]
#[case("'%x|%X|%x|%o|%b'.format([-255, 'az', b'a', -8, -5])", "-ff|617A|61|-10|-101")]
#[case("'%b'.format([true])", "1")]
fn texts_are_those_of_kubernetes(#[case] expression: &str, #[case] expected: &str) {
    assert_eq!(written(expression), Ok(Cel::from(expected)));
}

#[rstest]
#[case("'%d'.format([dyn('x')])", "decimal clause can only be used on integers")]
#[case("'%s %s'.format(['x'])", "index 1 out of range")]
#[case("'%q'.format([1])", "unrecognized formatting clause \"q\"")]
#[case("'%'.format([1])", "unexpected end of string")]
#[case("'%.f'.format([1.5])", "error while parsing precision")]
#[case(r"'%s'.format([b'\xff'])", "string clause can only be used on")]
#[case("'%x'.format([dyn(1.5)])", "was given double")]
#[case("'%d'.format([dyn(quantity('1'))])", "was given kubernetes.Quantity")]
#[case("'%s'.format([{'a': quantity('1')}])", "no formatting function for kubernetes.Quantity")]
fn mistakes_are_errors(#[case] expression: &str, #[case] expected: &str) {
    let error = written(expression).unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
}

#[rstest]
#[case("%d %s", &[Type::Int, Type::List(Box::new(Type::Dyn))], None)]
#[case("%f", &[Type::Int], Some("fixed-point clause can only be used on doubles, was given int"))]
#[case("%s", &[Type::Kind("IP")], Some("was given net.IP"))]
#[case("%s", &[Type::Optional(Box::new(Type::Int))], Some("was given optional_type"))]
#[case("%s", &[], Some("index 0 out of range"))]
#[case("%s", &[Type::Int, Type::Int], Some("(expected 1, got 2)"))]
#[case("%.99999999999f", &[Type::Double], None)]
#[case("%.f", &[Type::Double], Some("strconv.Atoi: parsing \"\": invalid syntax"))]
#[case("%.1", &[Type::Double], Some("could not find end of precision specifier"))]
fn constant_texts_are_checked(
    #[case] text: &str,
    #[case] types: &[Type<'_>],
    #[case] expected: Option<&str>,
) {
    let accepts = |index: usize, clause: Clause| {
        if clause.accepts(&types[index]) { Ok(()) } else { Err((0, types[index].name())) }
    };
    match (check(text, types.len(), accepts), expected) {
        (Ok(()), None) => {}
        (Err(Mistake::Text(error) | Mistake::Item(_, error)), Some(expected)) => {
            assert!(error.contains(expected), "{error}");
        }
        (Ok(()), Some(expected)) => panic!("no mistake: {expected}"),
        (Err(Mistake::Text(error) | Mistake::Item(_, error)), None) => panic!("{error}"),
    }
}
