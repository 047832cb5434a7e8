//! The syntax of names, label keys and label values.

/// The rule for the names of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// A DNS subdomain: `a.b-c.1`, up to 253 characters.
    DnsSubdomain,
    /// A DNS label: no dots, up to 63 characters.
    DnsLabel,
    /// A DNS label that starts with a letter.
    Rfc1035Label,
    /// A single segment of a URL path.
    PathSegment,
    /// An IP address in its canonical form.
    Ip,
}

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
                         characters, '-' or '.', and must start and end with an alphanumeric \
                         character (e.g. 'example.com', regex used for validation is \
                         '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric \
                     characters or '-', and must start and end with an alphanumeric character \
                     (e.g. 'my-name',  or '123-abc', regex used for validation is \
                     '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const RFC1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or \
                       '-', start with an alphabetic character, and end with an alphanumeric \
                       character (e.g. 'my-name',  or 'abc-123', regex used for validation is \
                       '[a-z]([-a-z0-9]*[a-z0-9])?')";
const QUALIFIED: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and \
                         must start and end with an alphanumeric character (e.g. 'MyName',  or \
                         'my.name',  or '123-abc', regex used for validation is \
                         '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric \
                           characters, '-', '_' or '.', and must start and end with an \
                           alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', \
                           regex used for validation is \
                           '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const CONFIG_KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or \
                          '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for \
                          validation is '[-._a-zA-Z0-9]+')";

impl NameRule {
    /// Returns the mistakes in a name. `prefix` marks a `generateName`, whose last character is not
    /// final.
    pub fn check(self, name: &str, prefix: bool) -> Vec<String> {
        let name = if prefix { name.strip_suffix('-').unwrap_or(name) } else { name };
        match self {
            Self::DnsSubdomain => dns_subdomain(name),
            Self::DnsLabel => dns_label(name),
            Self::Rfc1035Label => rfc1035_label(name),
            Self::PathSegment => path_segment(name),
            Self::Ip => super::addresses::canonical_ip(name).into_iter().collect(),
        }
    }
}

/// Returns the mistakes in a DNS subdomain.
pub fn dns_subdomain(name: &str) -> Vec<String> {
    let mut wrong = too_long(name, 253);
    if !name.split('.').all(is_dns_label) {
        wrong.push(SUBDOMAIN.to_owned());
    }
    wrong
}

/// Returns the mistakes in a DNS label.
pub fn dns_label(name: &str) -> Vec<String> {
    let mut wrong = too_long(name, 63);
    if !is_dns_label(name) {
        let has_dots = name.split('.').all(is_dns_label);
        wrong.push(if has_dots { "must not contain dots" } else { LABEL }.to_owned());
    }
    wrong
}

/// Returns the mistakes in a DNS label that must start with a letter.
pub fn rfc1035_label(name: &str) -> Vec<String> {
    let mut wrong = too_long(name, 63);
    if !is_dns_label(name) || !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        wrong.push(RFC1035.to_owned());
    }
    wrong
}

/// Returns the mistakes in a path segment.
pub fn path_segment(name: &str) -> Vec<String> {
    if name == "." || name == ".." {
        return vec![format!("may not be '{name}'")];
    }
    ['/', '%']
        .iter()
        .filter(|c| name.contains(**c))
        .map(|c| format!("may not contain '{c}'"))
        .collect()
}

/// Returns the mistakes in the key of a label or annotation: `name` or `example.com/name`.
pub fn qualified_name(key: &str) -> Vec<String> {
    let (prefix, name) = match key.split_once('/') {
        None => (None, key),
        Some((prefix, name)) => (Some(prefix), name),
    };
    if name.contains('/') {
        let rule = QUALIFIED.strip_prefix("name part ").unwrap_or(QUALIFIED);
        return vec![format!(
            "a valid label key {rule} with an optional DNS subdomain prefix and '/' (e.g. \
             'example.com/MyName')"
        )];
    }
    let mut wrong = Vec::new();
    match prefix {
        Some("") => wrong.push("prefix part must be non-empty".to_owned()),
        Some(prefix) => {
            let reasons = in_bytes(prefix, 253, &dns_subdomain(prefix));
            wrong.extend(reasons.iter().map(|reason| format!("prefix part {reason}")));
        }
        None => {}
    }
    if name.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
        wrong.push(QUALIFIED.to_owned());
    } else {
        let reasons = in_bytes(name, 63, &too_long(name, 63));
        wrong.extend(reasons.iter().map(|reason| format!("name part {reason}")));
        if !is_label_text(name) {
            wrong.push(QUALIFIED.to_owned());
        }
    }
    wrong
}

/// Returns the mistakes in the value of a label.
pub fn label_value(value: &str) -> Vec<String> {
    let mut wrong = in_bytes(value, 63, &too_long(value, 63));
    if !value.is_empty() && !is_label_text(value) {
        wrong.push(LABEL_VALUE.to_owned());
    }
    wrong
}

/// Returns the mistakes in a key of a `ConfigMap` or Secret.
pub fn config_key(key: &str) -> Vec<String> {
    let mut wrong = too_long(key, 253);
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if key.is_empty() || !key.chars().all(allowed) {
        wrong.push(CONFIG_KEY.to_owned());
    }
    match key {
        "." => wrong.push("must not be '.'".to_owned()),
        ".." => wrong.push("must not be '..'".to_owned()),
        key if key.starts_with("..") => wrong.push("must not start with '..'".to_owned()),
        _ => {}
    }
    wrong
}

/// Returns the mistakes in a label. kube-apiserver counts its bytes, and the characters of names.
fn in_bytes(text: &str, limit: usize, wrong: &[String]) -> Vec<String> {
    let others = wrong.iter().skip(usize::from(text.len() > limit)).cloned();
    let length = (text.len() > limit).then(|| format!("must be no more than {limit} bytes"));
    length.into_iter().chain(others).collect()
}

fn too_long(text: &str, limit: usize) -> Vec<String> {
    if text.len() > limit {
        vec![format!("must be no more than {limit} characters")]
    } else {
        Vec::new()
    }
}

/// Checks for lower case alphanumerics and `-`, with an alphanumeric at both ends. The caller
/// checks the length.
fn is_dns_label(text: &str) -> bool {
    let alphanumeric = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    text.starts_with(alphanumeric)
        && text.ends_with(alphanumeric)
        && text.chars().all(|c| alphanumeric(c) || c == '-')
}

fn is_label_text(text: &str) -> bool {
    let alphanumeric = |c: char| c.is_ascii_alphanumeric();
    text.starts_with(alphanumeric)
        && text.ends_with(alphanumeric)
        && text.chars().all(|c| alphanumeric(c) || matches!(c, '-' | '_' | '.'))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("a.b-c.1", true)]
    #[case("0", true)]
    #[case("Upper", false)]
    #[case("a_b", false)]
    #[case("-a", false)]
    #[case("a-", false)]
    #[case("a..b", false)]
    #[case("a b", false)]
    #[case(".a", false)]
    #[case("ä", false)]
    #[case("", false)]
    fn subdomains(#[case] name: &str, #[case] good: bool) {
        assert_eq!(NameRule::DnsSubdomain.check(name, false).is_empty(), good, "{name}");
    }

    #[rstest]
    #[case(NameRule::DnsSubdomain, 253)]
    #[case(NameRule::DnsLabel, 63)]
    #[case(NameRule::Rfc1035Label, 63)]
    fn the_length_limit_is_exact(#[case] rule: NameRule, #[case] limit: usize) {
        assert!(rule.check(&"x".repeat(limit), false).is_empty());
        assert_eq!(
            rule.check(&"x".repeat(limit + 1), false),
            [format!("must be no more than {limit} characters")]
        );
    }

    #[rstest]
    #[case(NameRule::Rfc1035Label, "1a", RFC1035)]
    #[case(NameRule::DnsLabel, "a.b", "must not contain dots")]
    #[case(NameRule::DnsLabel, "a.B", LABEL)]
    #[case(NameRule::PathSegment, "..", "may not be '..'")]
    #[case(NameRule::PathSegment, "a%b", "may not contain '%'")]
    #[case(NameRule::Ip, "::A", "must be in canonical form (\"::a\")")]
    fn invalid_names_are_rejected_with_a_reason(
        #[case] rule: NameRule,
        #[case] name: &str,
        #[case] reason: &str,
    ) {
        assert_eq!(rule.check(name, false), [reason]);
    }

    #[test]
    fn a_prefix_may_end_in_a_dash() {
        assert!(NameRule::DnsSubdomain.check("web-", true).is_empty());
        assert!(!NameRule::DnsSubdomain.check("Web-", true).is_empty());
        assert!(!NameRule::DnsSubdomain.check("web-", false).is_empty());
    }

    #[test]
    fn labels_are_counted_in_bytes() {
        let long = "a".repeat(254);
        let name = "name part must be no more than 63 bytes";
        assert_eq!(qualified_name(&long), [name]);
        assert_eq!(label_value(&long), ["must be no more than 63 bytes"]);
        let prefix = "prefix part must be no more than 253 bytes";
        assert_eq!(qualified_name(&format!("{long}/a")), [prefix]);
        assert_eq!(label_value(&format!("{long} ")).len(), 2);
    }

    #[rstest]
    #[case("app", true)]
    #[case("a.b/c-d_e.F", true)]
    #[case("a b", false)]
    #[case("/a", false)]
    #[case("a/", false)]
    #[case("a/b/c", false)]
    #[case("UPPER.com/a", false)]
    #[case("", false)]
    fn label_keys(#[case] key: &str, #[case] good: bool) {
        assert_eq!(qualified_name(key).is_empty(), good, "{key}");
    }

    #[rstest]
    #[case("", true)]
    #[case("A.b_c-9", true)]
    #[case("-x", false)]
    #[case("x y", false)]
    fn label_values(#[case] value: &str, #[case] good: bool) {
        assert_eq!(label_value(value).is_empty(), good, "{value}");
        assert!(!label_value(&"x".repeat(64)).is_empty());
    }

    #[rstest]
    #[case("a.b_C-1", true)]
    #[case(".hidden", true)]
    #[case("a/b", false)]
    #[case("..", false)]
    #[case("..a", false)]
    fn config_keys(#[case] key: &str, #[case] good: bool) {
        assert_eq!(config_key(key).is_empty(), good, "{key}");
    }
}
