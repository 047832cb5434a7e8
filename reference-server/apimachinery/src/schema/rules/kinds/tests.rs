use cel::Context;
use rstest::rstest;

use super::super::library::env;
use super::*;

#[rstest]
#[case("url('https://u@example.com:80/a?b=1&b=2').getHost() == 'example.com:80'")]
#[case("url('https://[::1]:80/a?b=1&b=2').getHostname() == '::1'")]
#[case(
    "url('https://example.com:80').getPort() == '80' && url('https://example.com').getPort() == ''"
)]
#[case(
    "url('https://example.com/a%20b?c').getEscapedPath() == '/a%20b' && \
     url('http://a').getEscapedPath() == ''"
)]
#[case("url('/a?b=1&b=x+y').getQuery()['b'] == ['1', 'x y'] && url('/a').getScheme() == ''")]
#[case(
    "!format.dns1123Label().validate('a').hasValue() && \
     format.dns1123Label().validate('A').value().size() == 1"
)]
#[case("!format.named('uuid').value().validate('123e4567-e89b-12d3-a456-426614174000').hasValue()")]
#[case(
    "!format.named('none').hasValue() && format.dns1035LabelPrefix().validate('a-') == \
     optional.none()"
)]
fn methods_return_the_documented_values(#[case] text: &str) {
    let program = env().compile(text).expect("an expression");
    assert_eq!(program.execute(&Context::with_env(env())), Ok(Cel::Bool(true)));
}

#[rstest]
#[case("url('a b')")]
#[case("url('')")]
fn an_invalid_text_is_an_error(#[case] text: &str) {
    let program = env().compile(text).expect("an expression");
    assert!(program.execute(&Context::with_env(env())).is_err());
}
