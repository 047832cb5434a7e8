use proptest::proptest;
use rstest::rstest;

use super::*;

#[rstest]
#[case("^[^][ ()]$", "a", true)]
#[case("^[^][ ()]$", "[", false)]
#[case("^[]a]$", "]", true)]
#[case("^[a&&b]+$", "a&b", true)]
#[case("^[+--]+$", "+,-", true)]
#[case("^[a-c-]+$", "b-", true)]
#[case(r"^[a-z0-9-\p{S}\p{L}]+$", "é-+", true)]
#[case(r"^\d\w\s$", "1a ", true)]
#[case(r"^\d$", "١", false)]
#[case(r"^[\D]$", "1", false)]
#[case(r"^[^\w]$", "é", true)]
#[case("^[[:alpha:]]+$", "ab", true)]
#[case("^[[:]+$", "[:", true)]
#[case("^a{,2}$", "a{,2}", true)]
#[case("^a{2}$", "aa", true)]
#[case("^{a}$", "{a}", true)]
#[case(r"^\Qa.b\E.$", "a.bc", true)]
#[case(r"^\Qa.b\E$", "axb", false)]
#[case(r"^\<a\>$", "<a>", true)]
#[case(r"^[\x00-\x1F\x7F]+$", "\u{1}", true)]
#[case(r"\bfoo\b", "a foo", true)]
#[case(r"^\101$", "A", true)]
#[case("^[[:word:]]+$", "a_1", true)]
#[case("^[[:^alpha:]]+$", "1", true)]
#[case(r"^\p{^Greek}$", "a", true)]
#[case(r"^[\P{^Greek}]$", "α", true)]
#[case(r"^\p{Letter}\pN\p{greek}$", "a1α", true)]
#[case("^(?i-s:A)(?P<n>b)(?<m>c)$", "abc", true)]
#[case("(?U)^a+?b*?$", "aab", true)]
#[case(r"^\x{41}\x42\_\z", "AB_", true)]
#[case("^x{0}y{2,}?$", "yy", true)]
#[case("^(?)(?ii)A(?P<n>b)(?P<n>c)$", "abc", true)]
fn patterns_have_the_meaning_of_go(
    #[case] pattern: &str,
    #[case] text: &str,
    #[case] matches: bool,
) {
    let regex = compile(pattern, 1 << 20).expect("a pattern");
    assert_eq!(regex.is_match(text), matches, "{:?}", translate(pattern));
}

#[rstest]
#[case("[a")]
#[case("(a")]
#[case("a)")]
#[case(r"\8")]
#[case("[b-a]")]
#[case("*")]
#[case("a**")]
#[case("a*?+")]
#[case("a{2}{3}")]
#[case("a{1001}")]
#[case("a{3,2}")]
#[case("(?x)a")]
#[case("(?i-)a")]
#[case("(?--i)a")]
#[case("(?R)a")]
#[case("(?-u:a)")]
#[case("(?=a)")]
#[case("(?<!a)")]
#[case("(?P=n)")]
#[case("(?<n.m>a)")]
#[case(r"\h")]
#[case(r"\u0041")]
#[case(r"\e")]
#[case(r"\C")]
#[case(r"\Z")]
#[case(r"\1")]
#[case(r"[\b]")]
#[case(r"[\Qa\E]")]
#[case(r"[a-\d]")]
#[case("[[:foo:]]")]
#[case(r"\p{Script=Greek}")]
#[case(r"\p{Alphabetic}")]
fn invalid_patterns_are_rejected(#[case] pattern: &str) {
    assert!(compile(pattern, 1 << 20).is_err());
}

/// The pattern of host names in the `Ingress` and `Route` types of `OpenShift`.
#[test]
fn large_classes_can_be_repeated() {
    let class = r"[a-zA-Z0-9\p{S}\p{L}]";
    let (inner, end) = (r"[a-zA-Z0-9-\p{S}\p{L}]", r"[a-zA-Z\p{L}]");
    let label = format!(r"{class}(({inner}{{0,61}}{class})?)");
    let pattern = format!(r"^({class}((-?{class}{{0,62}})?)|({label}(\.)){{1,}}({end}){{2,63}})$");
    let regex = compile(&pattern, 20 << 20).expect("a pattern");
    assert!(regex.is_match("exämple.com") && !regex.is_match("-.com"));
}

proptest! {
    #[test]
    fn any_pattern_is_translated(
        pattern in r"(a|\[|\]|\^|-|\\|\{|\}|,|2|:|d|p|Q|E|&|\(|\)|\?|<|P|é){0,12}"
    ) {
        let _ = compile(&pattern, 1 << 20);
    }
}
