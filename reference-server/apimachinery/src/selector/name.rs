//! The rules for the keys and values of labels.

const NAME: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and \
                    end with an alphanumeric character";

/// Checks a label key. The error is the violated rule.
pub(super) fn check_key(key: &str) -> Result<(), &'static str> {
    let name = match key.split_once('/') {
        None => key,
        Some((prefix, name)) => {
            check_prefix(prefix)?;
            name
        }
    };
    if name.is_empty() {
        return Err("the name part must not be empty");
    }
    if name.len() > 63 {
        return Err("the name part must be no more than 63 bytes");
    }
    if is_name(name) { Ok(()) } else { Err(NAME) }
}

/// Checks a label value. The error is the violated rule.
pub(super) fn check_value(value: &str) -> Result<(), &'static str> {
    if value.len() > 63 {
        return Err("must be no more than 63 bytes");
    }
    if value.is_empty() || is_name(value) { Ok(()) } else { Err(NAME) }
}

fn check_prefix(prefix: &str) -> Result<(), &'static str> {
    let label = |label: &str| {
        let ends =
            |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        let bytes = label.as_bytes();
        ends(bytes.first())
            && ends(bytes.last())
            && bytes.iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'-')
    };
    if prefix.is_empty() {
        Err("the prefix part must not be empty")
    } else if prefix.len() > 253 {
        Err("the prefix part must be no more than 253 bytes")
    } else if prefix.split('.').all(label) {
        Ok(())
    } else {
        Err("the prefix part must be a lowercase DNS subdomain")
    }
}

fn is_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    let ends = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    ends(bytes.first())
        && ends(bytes.last())
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case("app", true)]
    #[case("example.com/App_1.x-y", true)]
    #[case("my-example.com/app", true)]
    #[case("-example.com/app", false)]
    #[case("example-.com/app", false)]
    #[case("exa_mple.com/app", false)]
    #[case("", false)]
    #[case("/app", false)]
    #[case("example.com/", false)]
    #[case("a/b/c", false)]
    #[case("Example.com/app", false)]
    #[case("example..com/app", false)]
    #[case("-app", false)]
    #[case("app.", false)]
    #[case("äpp", false)]
    fn keys(#[case] key: &str, #[case] valid: bool) {
        assert_eq!(check_key(key).is_ok(), valid);
    }

    #[test]
    fn lengths_are_limited() {
        assert!(check_value(&"x".repeat(63)).is_ok() && check_value("").is_ok());
        assert!(check_value(&"x".repeat(64)).is_err());
        assert!(check_key(&"x".repeat(63)).is_ok() && check_key(&"x".repeat(64)).is_err());
        assert!(check_key(&format!("{}/x", "a.".repeat(126) + "a")).is_ok());
        assert!(check_key(&format!("{}/x", "a.".repeat(127) + "a")).is_err());
    }
}
