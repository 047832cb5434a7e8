//! A line for a shell that repeats an exchange. Credentials are never in it: `$TOKEN` stands for them.

use kubeproof_cases::case::Identity;

use crate::exchange::Sent;

/// Bodies beyond this many bytes are left to a file.
const LONGEST_BODY: usize = 8 * 1024;

/// The line. `server` is the URL of the target without credentials.
pub fn line(sent: &Sent, server: &str) -> String {
    let mut words = vec!["curl".to_owned(), "-sk".into(), "--path-as-is".into(), "-i".into()];
    if sent.method != "GET" {
        words.extend(["-X".into(), quote(&sent.method)]);
    }
    match sent.identity {
        Identity::Admin => words.extend(["-H".into(), "\"Authorization: Bearer $TOKEN\"".into()]),
        Identity::Second => words.extend(["-H".into(), "\"Authorization: Bearer $SECOND_TOKEN\"".into()]),
        Identity::Invalid => words.extend(["-H".into(), quote("Authorization: Bearer invalid")]),
        Identity::Anonymous => {}
    }
    for (name, value) in &sent.headers {
        if !["content-length", "host", "authorization"].contains(&name.to_ascii_lowercase().as_str()) {
            words.extend(["-H".into(), quote(&format!("{name}: {value}"))]);
        }
    }
    if sent.body.len() > LONGEST_BODY {
        words.extend(["--data-binary".into(), format!("@body-of-{}-bytes", sent.body.len())]);
    } else if !sent.body.is_empty() {
        words.extend(["--data-binary".into(), quote(&String::from_utf8_lossy(&sent.body))]);
    }
    words.push(quote(&format!("{}{}", server.trim_end_matches('/'), sent.target)));
    words.join(" ")
}

/// Quotes a word for a POSIX shell.
fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use rstest::rstest;

    use super::*;

    fn sent(method: &str, body: &str) -> Sent {
        Sent {
            method: method.into(),
            target: "/api/v1/namespaces?watch=true&limit=1".into(),
            headers: vec![
                ("content-type".into(), "application/json".into()),
                ("Authorization".into(), "x".into()),
            ],
            body: Bytes::from(body.to_owned()),
            identity: Identity::Admin,
        }
    }

    #[test]
    fn the_line_repeats_the_exchange_and_holds_no_credential() {
        assert_eq!(
            line(&sent("POST", r#"{"a": "it's"}"#), "https://h:1/"),
            r#"curl -sk --path-as-is -i -X POST -H "Authorization: Bearer $TOKEN" -H 'content-type: application/json' --data-binary '{"a": "it'\''s"}' 'https://h:1/api/v1/namespaces?watch=true&limit=1'"#
        );
    }

    #[test]
    fn a_huge_body_stays_out() {
        let line = |length| line(&sent("PUT", &"x".repeat(length)), "http://h");
        assert!(line(LONGEST_BODY + 1).contains("@body-of-8193-bytes"));
        assert!(line(LONGEST_BODY).contains("--data-binary xxx"));
    }
    #[rstest]
    #[case(Identity::Admin, r#" -H "Authorization: Bearer $TOKEN""#)]
    #[case(Identity::Second, r#" -H "Authorization: Bearer $SECOND_TOKEN""#)]
    #[case(Identity::Invalid, " -H 'Authorization: Bearer invalid'")]
    #[case(Identity::Anonymous, "")]
    fn what_curl_does_by_itself_is_not_said(#[case] identity: Identity, #[case] said: &str) {
        let sent = Sent { identity, headers: vec![("Host".into(), "h".into())], ..sent("GET", "") };
        assert_eq!(
            line(&sent, "http://h"),
            format!("curl -sk --path-as-is -i{said} 'http://h/api/v1/namespaces?watch=true&limit=1'")
        );
    }

    #[test]
    fn nothing_is_a_word_too() {
        assert_eq!(["", "a", "a b"].map(quote), ["''", "a", "'a b'"]);
    }
}
