use cel::Context;
use rstest::rstest;

use super::super::library::env;
use super::*;

#[rstest]
#[case("quantity('1Gi').isGreaterThan(quantity('1Mi')) && quantity('1') == quantity('1000m')")]
#[case(
    "quantity('1.5').add(quantity('500m')).asInteger() == 2 && sign(quantity('2').sub(3)) == -1"
)]
#[case("!quantity('1.5').isInteger() && quantity('1.5').asApproximateFloat() == 1.5")]
#[case("quantity('1').compareTo(quantity('2')) == -1 && quantity('9').isLessThan(quantity('10'))")]
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
#[case("ip('10.0.0.1').family() == 4 && ip('::1').family() == 6 && string(ip('0::1')) == '::1'")]
#[case("ip('::1').isLoopback() && ip('::').isUnspecified() && ip('8.8.8.8').isGlobalUnicast()")]
#[case("ip('fe80::1').isLinkLocalUnicast() && ip('224.0.0.1').isLinkLocalMulticast()")]
#[case("!ip('127.0.0.1').isGlobalUnicast() && ip.isCanonical('::1') && !ip.isCanonical('0::1')")]
#[case(
    "cidr('10.0.0.0/8').containsIP('10.1.1.1') && !cidr('10.0.0.0/8').containsIP(ip('11.1.1.1'))"
)]
#[case(
    "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && \
     !cidr('10.1.0.0/16').containsCIDR(cidr('10.0.0.0/8'))"
)]
#[case(
    "cidr('10.1.1.1/8').masked() == cidr('10.0.0.0/8') && cidr('10.1.1.1/8').ip() == ip('10.1.1.1')"
)]
#[case("cidr('10.0.0.0/8').prefixLength() == 8 && string(cidr('10.0.0.0/8')) == '10.0.0.0/8'")]
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
#[case("quantity('much')")]
#[case("quantity('1.5').asInteger()")]
#[case("url('a b')")]
#[case("ip('1.2.3')")]
#[case("cidr('10.0.0.0')")]
fn an_invalid_text_is_an_error(#[case] text: &str) {
    let program = env().compile(text).expect("an expression");
    assert!(program.execute(&Context::with_env(env())).is_err());
}
