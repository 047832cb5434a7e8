use rstest::rstest;

use super::*;

fn list(item: Type<'static>) -> Type<'static> {
    Type::List(Box::new(item))
}

#[rstest]
#[case("_+_", vec![Type::Int, Type::Int], "int")]
#[case("_+_", vec![Type::Dyn, Type::Dyn], "dyn")]
#[case("_+_", vec![Type::Dyn, Type::Int], "int")]
#[case(".sum", vec![list(Type::Uint)], "uint")]
#[case("type", vec![Type::Int], "type(int)")]
#[case("_+_", vec![list(Type::Dyn), list(Type::Bool)], "list(dyn)")]
#[case("_<_", vec![Type::Int, Type::Double], "bool")]
#[case("_[_]", vec![list(Type::Bool), Type::Int], "bool")]
#[case("_?_:_", vec![Type::Bool, Type::Int, Type::Int], "int")]
#[case(".startsWith", vec![Type::String, Type::String], "bool")]
#[case(".max", vec![list(Type::Double)], "double")]
#[case(".orValue", vec![Type::Optional(Box::new(Type::Int)), Type::Int], "int")]
#[case("sets.contains", vec![list(Type::Int), list(Type::Int)], "bool")]
#[case(".join", vec![list(Type::String), Type::String], "string")]
fn a_call_has_the_type_of_its_overload(
    #[case] name: &str,
    #[case] arguments: Vec<Type<'static>>,
    #[case] expected: &str,
) {
    let ty = call(name, &arguments, &mut Inference::default());
    assert_eq!(ty.map(|ty| ty.to_string()).as_deref(), Some(expected));
}

#[rstest]
#[case(
    "_+_",
    vec![Type::Int, Type::String],
    "found no matching overload for '_+_' applied to '(int, string)'"
)]
#[case(
    "_==_",
    vec![Type::Int, Type::String],
    "found no matching overload for '_==_' applied to '(int, string)'"
)]
#[case(
    ".startsWith",
    vec![Type::Int, Type::Int],
    "found no matching overload for 'startsWith' applied to 'int.(int)'"
)]
#[case(
    "@in",
    vec![Type::Int, list(Type::Bool)],
    "found no matching overload for '@in' applied to '(int, list(bool))'"
)]
#[case(
    ".sort",
    vec![list(list(Type::Int))],
    "found no matching overload for 'sort' applied to 'list(list(int)).()'"
)]
fn an_invalid_call_is_rejected(
    #[case] name: &str,
    #[case] arguments: Vec<Type<'static>>,
    #[case] expected: &str,
) {
    assert_eq!(call(name, &arguments, &mut Inference::default()), None);
    assert_eq!(mismatch(name, &arguments), expected);
}
