//! Validates how the server reaches a webhook.

use kubeproof_apimachinery::object::validation::names;
use kubeproof_apimachinery::schema::{FieldError, Path};
use serde_json::{Value, json};

/// The characters of a host besides letters, digits and `%`.
const HOST_MARKS: &str = "-_.~!$&'()*+,;=:[]<>\"";
const FORM: &str = "desired format: https://host[/path]";

/// Returns the errors in the URL of a webhook.
pub(super) fn validate_url(url: &str, path: Path<'_>) -> Vec<FieldError> {
    if let Some(why) = parse_error(url) {
        let why = format!("url must be a valid URL: parse {url:?}: {why}; {FORM}");
        return vec![FieldError::required(path, &why)];
    }
    let (rest, fragment) = url.split_once('#').unwrap_or((url, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (scheme, rest) = rest.split_once(':').unwrap_or(("", rest));
    let authority = rest.strip_prefix("//").unwrap_or_default();
    let authority = authority.split('/').next().unwrap_or_default();
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    let mut errors = Vec::new();
    let mut reject = |is_wrong: bool, shown: &str, why: &str| {
        if is_wrong {
            errors.push(FieldError::invalid(path, &json!(shown), why));
        }
    };
    let scheme = scheme.to_lowercase();
    let why = format!("'https' is the only allowed URL scheme; {FORM}");
    reject(scheme != "https", &scheme, &why);
    reject(host.is_empty(), "", &format!("host must be specified; {FORM}"));
    reject(
        user.is_some(),
        user.unwrap_or_default(),
        "user information is not permitted in the URL",
    );
    reject(!fragment.is_empty(), fragment, "fragments are not permitted in the URL");
    reject(!query.is_empty(), query, "query parameters are not permitted in the URL");
    errors
}

/// Returns why Go cannot parse a URL.
fn parse_error(url: &str) -> Option<String> {
    if url.chars().any(|c| c.is_ascii_control()) {
        return Some("net/url: invalid control character in URL".to_owned());
    }
    if url.starts_with(':') {
        return Some("missing protocol scheme".to_owned());
    }
    let end = url.find(['#', '?']).unwrap_or(url.len());
    let (rest, tail) = url.split_at(end);
    let is_scheme = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_alphabetic())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    };
    let rest = match rest.split_once(':') {
        Some((scheme, rest)) if is_scheme(scheme) => rest,
        _ if rest.split('/').next().is_some_and(|segment| segment.contains(':')) => {
            return Some("first path segment in URL cannot contain colon".to_owned());
        }
        _ => rest,
    };
    let authority = rest.strip_prefix("//").unwrap_or_default();
    let authority = authority.split('/').next().unwrap_or_default();
    host_error(authority.rsplit_once('@').map_or(authority, |(_, host)| host)).or_else(|| {
        let fragment = tail.split_once('#').map_or("", |(_, fragment)| fragment);
        [rest, fragment].into_iter().find_map(escape_error)
    })
}

fn host_error(host: &str) -> Option<String> {
    let is_valid = |c: char| c.is_alphanumeric() || !c.is_ascii() || HOST_MARKS.contains(c);
    if let Some(wrong) = host.chars().find(|c| !is_valid(*c) && *c != '%') {
        return Some(format!("invalid character {:?} in host name", wrong.to_string()));
    }
    let (_, port) = host.rsplit_once(':').filter(|_| !host.ends_with(']'))?;
    let is_wrong = !port.chars().all(|c| c.is_ascii_digit());
    is_wrong.then(|| format!("invalid port {:?} after host", format!(":{port}")))
}

fn escape_error(text: &str) -> Option<String> {
    text.match_indices('%').find_map(|(index, _)| {
        let escape: String = text[index..].chars().take(3).collect();
        let digits = &escape[1..];
        let is_valid = digits.len() == 2 && digits.chars().all(|c| c.is_ascii_hexdigit());
        (!is_valid).then(|| format!("invalid URL escape {escape:?}"))
    })
}

/// Returns the errors in the reference to the service of a webhook.
pub(super) fn validate_service(service: &Value, path: Path<'_>) -> Vec<FieldError> {
    // kube-apiserver exchanges the two, so its error names the other field.
    let swapped = [("name", "namespace"), ("namespace", "name")];
    let missing = swapped.iter().filter(|(_, field)| text(service, field).is_empty());
    let mut errors: Vec<_> =
        missing.map(|(shown, _)| FieldError::required(path.field(shown), "")).collect();
    let port = service["port"].as_i64().unwrap_or(443);
    if !(1..=65535).contains(&port) {
        let why = "port is not valid: must be between 1 and 65535, inclusive";
        errors.push(FieldError::invalid(path.field("port"), &json!(port), why));
    }
    errors.extend(validate_path(text(service, "path"), path.field("path")));
    errors
}

fn validate_path(url_path: &str, path: Path<'_>) -> Vec<FieldError> {
    let invalid = |why: String| FieldError::invalid(path, &json!(url_path), &why);
    match url_path {
        "" | "/" => return Vec::new(),
        "//" => return vec![invalid("segment[0] may not be empty".to_owned())],
        _ => {}
    }
    let mut errors = Vec::new();
    if !url_path.starts_with('/') {
        errors.push(invalid("must start with a '/'".to_owned()));
    }
    // The first character counts as the slash.
    let first = url_path.chars().next().map_or(0, char::len_utf8);
    let segments = url_path[first..].strip_suffix('/').unwrap_or(&url_path[first..]);
    for (index, segment) in segments.split('/').enumerate() {
        if segment.is_empty() {
            errors.push(invalid(format!("segment[{index}] may not be empty")));
            continue;
        }
        let wrong = names::dns_subdomain(segment);
        errors.extend(wrong.iter().map(|why| invalid(format!("segment[{index}]: {why}"))));
    }
    errors
}

fn text<'v>(object: &'v Value, field: &str) -> &'v str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("https://a.example/x", &[])]
    #[case("HTTPS://a/x y", &[])]
    #[case("https://a?", &[])]
    #[case("http://a", &["Invalid value: \"http\""])]
    #[case("a", &["Invalid value: \"\"", "Invalid value: \"\""])]
    #[case("https://u:p@a", &["Invalid value: \"u:p\""])]
    #[case("https://@a", &["Invalid value: \"\""])]
    #[case("https://a?b#c", &["Invalid value: \"c\"", "Invalid value: \"b\""])]
    #[case(":x", &["Required value"])]
    fn a_url_has_a_host_and_a_path(#[case] url: &str, #[case] expected: &[&str]) {
        let errors = validate_url(url, Path::Root.field("url"));
        assert_eq!(errors.len(), expected.len());
        for (error, expected) in errors.iter().zip(expected) {
            assert!(error.message.starts_with(&format!("{expected}: ")), "{}", error.message);
        }
    }

    #[rstest]
    #[case("https://a/%20", None)]
    #[case("https://[::1]:80/", None)]
    #[case("https://a b", Some("invalid character \" \" in host name"))]
    #[case("https://a:b/", Some("invalid port \":b\" after host"))]
    #[case("https://a/%zz", Some("invalid URL escape \"%zz\""))]
    #[case("https://a/%2", Some("invalid URL escape \"%2\""))]
    #[case("1.2.3.4:80", Some("first path segment in URL cannot contain colon"))]
    #[case("https://a/\n", Some("net/url: invalid control character in URL"))]
    fn some_texts_are_no_urls(#[case] url: &str, #[case] expected: Option<&str>) {
        assert_eq!(parse_error(url).as_deref(), expected);
    }

    #[rstest]
    #[case(json!({"name": "a", "namespace": "b", "path": "/a/b/"}), &[])]
    #[case(json!({"name": "a"}), &["s.name"])]
    #[case(json!({"name": "a", "namespace": "b", "port": 0}), &["s.port"])]
    #[case(json!({"name": "a", "namespace": "b", "path": "a"}), &["s.path", "s.path"])]
    fn a_service_has_a_name(#[case] service: Value, #[case] expected: &[&str]) {
        let errors = validate_service(&service, Path::Root.field("s"));
        assert_eq!(errors.iter().map(|error| &*error.field).collect::<Vec<_>>(), expected);
    }
}
