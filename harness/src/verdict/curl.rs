//! Renders an exchange as a complete command for a POSIX shell, with `$TOKEN` for credentials.

use kubeproof_cases::case::Identity;

use crate::exchange::Sent;

/// Larger bodies reach curl by a pipe, because systems limit the length of an argument.
const LONGEST_ARGUMENT: usize = 8 * 1024;

/// Shorter runs of one byte are written out.
const SHORTEST_RUN: usize = 256;

/// Returns the command. `server` is the URL of the target without credentials.
pub(crate) fn line(sent: &Sent, server: &str) -> String {
    let mut words = vec!["curl".to_owned(), "-sk".into(), "--path-as-is".into(), "-i".into()];
    match sent.method.as_str() {
        "GET" => {}
        // With -X, curl would wait for a body.
        "HEAD" => words.push("--head".into()),
        method => words.extend(["-X".into(), quote(method)]),
    }
    match sent.identity {
        Identity::Admin => words.extend(["-H".into(), "\"Authorization: Bearer $TOKEN\"".into()]),
        Identity::Second => {
            words.extend(["-H".into(), "\"Authorization: Bearer $SECOND_TOKEN\"".into()]);
        }
        Identity::Invalid => words.extend(["-H".into(), quote("Authorization: Bearer invalid")]),
        Identity::Anonymous => {}
    }
    words.extend(headers(sent));
    let body = Body::of(&sent.body);
    match &body {
        Body::None => {}
        Body::Argument(text) => words.extend(["--data-binary".into(), quote(text)]),
        Body::Pipe(_) => words.extend(["--data-binary".into(), "@-".into()]),
    }
    // curl expands brackets and braces in URLs.
    if sent.target.contains(['[', ']', '{', '}']) {
        words.push("-g".into());
    }
    words.push(quote(&format!("{}{}", server.trim_end_matches('/'), sent.target)));
    let command = words.join(" ");
    match body {
        Body::Pipe(writer) => format!("{writer} | {command}"),
        _ => command,
    }
}

/// Returns the headers as options. curl adds some by itself, which an empty value suppresses.
fn headers(sent: &Sent) -> Vec<String> {
    let mut options = Vec::new();
    let mut add = |header: String| options.extend(["-H".to_owned(), quote(&header)]);
    for (name, value) in &sent.headers {
        let own = ["content-length", "host", "authorization"];
        if own.contains(&name.to_ascii_lowercase().as_str()) {
            continue;
        }
        add(if value.is_empty() { format!("{name};") } else { format!("{name}: {value}") });
    }
    let has = |name: &str| sent.headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
    if !sent.body.is_empty() && !has("content-type") {
        add("content-type:".to_owned());
    }
    if !has("accept") {
        add("accept:".to_owned());
    }
    options
}

/// How a body reaches curl.
enum Body {
    None,
    Argument(String),
    /// Commands that write the body.
    Pipe(String),
}

impl Body {
    fn of(body: &[u8]) -> Self {
        if body.is_empty() {
            return Self::None;
        }
        match std::str::from_utf8(body) {
            // A leading @ names a file.
            Ok(text) if body.len() <= LONGEST_ARGUMENT && !text.starts_with('@') => {
                if text.contains('\0') {
                    Self::Pipe(printed(body))
                } else {
                    Self::Argument(text.into())
                }
            }
            Ok(text) if !text.contains('\0') => Self::Pipe(piped(text)),
            _ => Self::Pipe(printed(body)),
        }
    }
}

/// Returns commands that write a text. Fillers of large bodies are one short command each.
fn piped(text: &str) -> String {
    let mut commands = Vec::new();
    let mut from = 0;
    for (run, byte) in runs(text.as_bytes()) {
        if from < run.start {
            commands.push(format!("printf %s {}", quote(&text[from..run.start])));
        }
        let byte = quote(&char::from(byte).to_string());
        commands.push(format!("head -c {} /dev/zero | tr '\\0' {byte}", run.len()));
        from = run.end;
    }
    if from < text.len() {
        commands.push(format!("printf %s {}", quote(&text[from..])));
    }
    match commands.as_slice() {
        [only] => only.clone(),
        all => format!("{{ {}; }}", all.join("; ")),
    }
}

/// Returns long runs of one letter or digit.
fn runs(bytes: &[u8]) -> Vec<(std::ops::Range<usize>, u8)> {
    let mut all = Vec::new();
    let mut start = 0;
    for run in bytes.chunk_by(|one, other| one == other) {
        let end = start + run.len();
        if run.len() >= SHORTEST_RUN && run[0].is_ascii_alphanumeric() {
            all.push((start..end, run[0]));
        }
        start = end;
    }
    all
}

/// Returns a command that writes any bytes.
fn printed(bytes: &[u8]) -> String {
    let text: String = bytes
        .iter()
        .map(|byte| match byte {
            b'%' => "%%".to_owned(),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b' ' | b'{' | b'}' | b'"' | b':' | b',' => {
                char::from(*byte).to_string()
            }
            other => format!("\\{other:03o}"),
        })
        .collect();
    format!("printf '{text}'")
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
            concat!(
                r#"curl -sk --path-as-is -i -X POST -H "Authorization: Bearer $TOKEN""#,
                r#" -H 'content-type: application/json' -H accept:"#,
                r#" --data-binary '{"a": "it'\''s"}'"#,
                " 'https://h:1/api/v1/namespaces?watch=true&limit=1'"
            )
        );
    }

    #[rstest]
    #[case::an_argument("x".repeat(LONGEST_ARGUMENT), "--data-binary xxx")]
    #[case::a_filler("x".repeat(200_000), "head -c 200000 /dev/zero | tr '\\0' x | curl ")]
    #[case::a_file_name("@etc".to_owned(), "printf %s @etc | curl ")]
    fn a_body_is_complete(#[case] body: String, #[case] expected: &str) {
        let line = line(&sent("PUT", &body), "http://h");
        assert!(line.contains(expected), "{line}");
        assert_eq!(line.contains("--data-binary @-"), !expected.starts_with("--"));
    }

    /// The shell writes exactly the bytes of the body.
    #[cfg(unix)]
    #[rstest]
    #[case::quotes(r#"{"a": "it's $HOME `x` \\ %s"}"#.as_bytes().to_vec())]
    #[case::fillers(
        ["{\"a\": \"", &"x".repeat(3000), "\", ", &"7".repeat(9000)].concat().into_bytes()
    )]
    #[case::no_filler((0..20_000).map(|n| n.to_string()).collect::<String>().into_bytes())]
    #[case::bytes((0..=255).collect())]
    #[case::a_zero(b"a\0b".to_vec())]
    fn the_shell_writes_the_body(#[case] body: Vec<u8>) {
        let command = match Body::of(&body) {
            Body::None => unreachable!("it has a body"),
            Body::Argument(text) => format!("printf %s {}", quote(&text)),
            Body::Pipe(writer) => writer,
        };
        let mut shell = std::process::Command::new("sh")
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = shell.stdin.take().unwrap();
        let writer = std::thread::spawn(move || {
            std::io::Write::write_all(&mut input, command.as_bytes()).unwrap();
        });
        let output = shell.wait_with_output().unwrap();
        writer.join().unwrap();
        assert!(output.status.success() && output.stdout == body);
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
            format!(
                "curl -sk --path-as-is -i{said} -H accept: \
                 'http://h/api/v1/namespaces?watch=true&limit=1'"
            )
        );
    }

    #[test]
    fn nothing_is_a_word_too() {
        assert_eq!(["", "a", "a b"].map(quote), ["''", "a", "'a b'"]);
    }
}
