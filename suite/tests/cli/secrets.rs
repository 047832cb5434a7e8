//! Credentials and the data of Secrets are in no output.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::thread;

use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD};
use rstest::rstest;

use crate::program::{Finished, kubeproof};
use crate::safety::{SECRET, create_foreign_objects};
use crate::server::{TOKEN, TestServer, USER_TOKEN};

/// Runs with all reports at the highest verbosity, and asserts that none contains a canary.
#[track_caller]
fn assert_hidden(canaries: &[&str], arguments: &[&str]) -> Finished {
    let dir = tempfile::tempdir().expect("a directory");
    let place = |name: &str| dir.path().join(name).display().to_string();
    let files: Vec<String> = ["junit", "json", "html", "markdown", "sarif", "tap", "trace"]
        .iter()
        .flat_map(|kind| [format!("--{kind}"), place(kind)])
        .collect();
    let mut all = arguments.to_vec();
    all.extend(["-vv", "--github"]);
    all.extend(files.iter().map(String::as_str));
    let output = kubeproof(&all);
    let mut outputs = vec![("standard output".to_owned(), output.stdout.clone().into_bytes())];
    outputs.push(("standard error".to_owned(), output.stderr.clone().into_bytes()));
    read_all(dir.path(), &mut outputs);
    for canary in canaries {
        for form in forms(canary) {
            for (place, text) in &outputs {
                let found = text.windows(form.len()).position(|window| window == form.as_bytes());
                if let Some(at) = found {
                    let around = &text[at.saturating_sub(300)..(at + 100).min(text.len())];
                    panic!(
                        "{place} contains {canary} as {form}: {}",
                        String::from_utf8_lossy(around)
                    );
                }
            }
        }
    }
    output
}

fn read_all(path: &Path, outputs: &mut Vec<(String, Vec<u8>)>) {
    for entry in fs::read_dir(path).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            read_all(&path, outputs);
        } else {
            outputs.push((path.display().to_string(), fs::read(&path).expect("a file")));
        }
    }
}

/// Returns the text and its base64 forms at all three offsets, without the characters that depend
/// on neighbouring text.
fn forms(canary: &str) -> Vec<String> {
    let mut forms = vec![canary.to_owned()];
    for before in 0..3 {
        let padded = format!("{}{canary}", "x".repeat(before));
        for engine in [BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD] {
            let text = engine.encode(&padded);
            let inner = (before * 8).div_ceil(6)..padded.len() * 8 / 6;
            forms.push(text[inner].to_owned());
        }
    }
    forms.sort();
    forms.dedup();
    forms
}

#[test]
fn encoded_canaries_are_found() {
    for text in ["me:canary-bird", "Bearer canary-bird", "canary-bird", "xcanary-birdx"] {
        let encoded = BASE64_STANDARD.encode(text);
        assert!(forms("canary-bird").iter().any(|form| encoded.contains(form)), "{encoded}");
    }
}

/// The cases list and watch Secrets, as their subject or without one, and send tokens as
/// subprotocols. The faults return tokens.
#[test]
fn tokens_and_secrets_are_hidden() {
    let faults = [
        "websocket-token-echoed",
        "proxy-leaks-token",
        "discovery-hides-list",
        "responses-without-kind",
    ];
    let server = TestServer::start(&[&["--fault"], &faults[..]].concat());
    create_foreign_objects(&server);
    let password = BASE64_STANDARD.encode(SECRET);
    let cases = [
        "list/*@secrets.v1",
        "list/*@",
        "watch/*@secrets.v1",
        "watch/*@",
        "create/*@secrets.v1",
        "patch/*@secrets.v1",
        "exec/token-*",
        "proxy/*",
        "users/*",
    ];
    let run = [&["run", "--only"], &cases[..], &server.target()].concat();
    let output = assert_hidden(&[TOKEN, USER_TOKEN, SECRET, &password], &run).with(1);
    assert!(output.stdout.contains("FAIL"), "{}", output.stdout);
}

/// Starts a server that repeats the credentials of each request in headers, text, JSON and invalid
/// JSON.
fn start_echo_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("its address"));
    thread::spawn(move || {
        for (count, client) in listener.incoming().map_while(Result::ok).enumerate() {
            thread::spawn(move || echo_credentials(client, count));
        }
    });
    url
}

fn echo_credentials(mut client: TcpStream, count: usize) {
    let mut head = Vec::new();
    let mut chunk = [0; 4096];
    while !head.windows(4).any(|four| four == b"\r\n\r\n") {
        match client.read(&mut chunk) {
            Ok(length @ 1..) => head.extend_from_slice(&chunk[..length]),
            _ => return,
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let field = |wanted: &str| {
        let mut fields = head.lines().filter_map(|line| line.split_once(':'));
        fields
            .find(|(name, _)| name.eq_ignore_ascii_case(wanted))
            .map(|(_, value)| value.trim().to_owned())
    };
    let given = field("authorization").unwrap_or_default();
    let protocols = field("sec-websocket-protocol").unwrap_or_default();
    let secret = given.split_once(' ').map_or("", |(_, secret)| secret);
    let decoded =
        BASE64_STANDARD.decode(secret).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let echo = format!(
        "{given} {protocols} {} {} {}",
        BASE64_STANDARD.encode(&given),
        BASE64_URL_SAFE_NO_PAD.encode(secret),
        decoded.unwrap_or_default()
    );
    let body = match count % 3 {
        0 => {
            format!(
                r#"{{
                    "kind": "Status", "reason": "Teapot",
                    "message": "you sent {echo}", "{echo}": 1
                }}"#
            )
        }
        1 => format!(r#"{{"kind": "Status", "message": "{echo}"#),
        _ => echo.clone(),
    };
    let status = if head.starts_with("GET /version") { "200 OK" } else { "418 I'm a teapot" };
    let _ = write!(
        client,
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nX-Echo: {echo}\r\n\
         Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
}

const CANARY: &str = "canary-in-the-credentials";

/// Writes a kubeconfig with this user.
fn kubeconfig(url: &str, user: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
         clusters: [{{name: c, cluster: {{server: '{url}'}}}}]\n\
         contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
         users:\n- name: u\n  user: {user}\n"
    );
    fs::write(file.path(), text).expect("it is written");
    file
}

#[rstest]
#[case::token(&format!("{{token: {CANARY}}}"))]
#[case::basic(&format!("{{username: me, password: {CANARY}}}"))]
#[case::exec(&format!(
    "{{exec: {{apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, \
     command: sh, args: [-c, 'echo \"$CREDENTIAL\"'], \
     env: [{{name: CREDENTIAL, value: '{{\"apiVersion\": \"client.authentication.k8s.io/v1\", \
     \"kind\": \"ExecCredential\", \"status\": {{\"token\": \"{CANARY}\"}}}}'}}]}}}}"
))]
fn credentials_of_a_kubeconfig_are_hidden(#[case] user: &str) {
    let file = kubeconfig(&start_echo_server(), user);
    let path = file.path().to_str().expect("a path");
    let only = ["--only", "errors/*", "discovery/*", "get/*", "exec/token-*"];
    let output = assert_hidden(&[CANARY], &[&["run", "--kubeconfig", path], &only[..]].concat());
    assert!(
        output.stdout.contains("[redacted]"),
        "{:?}\n{}\n{}",
        output.code,
        output.stdout,
        output.stderr
    );
}

/// The tokens of the plugin expire at once, so each request has another token.
#[test]
fn tokens_received_during_the_run_are_hidden() {
    let dir = tempfile::tempdir().expect("a directory");
    let (script, logins) = (dir.path().join("plugin"), dir.path().join("logins"));
    let credential = format!(
        r#"{{
            "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
            "status": {{
                "token": "'$$'-{CANARY}", "expirationTimestamp": "2020-01-01T00:00:00Z"
            }}
        }}"#
    );
    fs::write(&script, format!("echo $$ >> {}\necho '{credential}'\n", logins.display()))
        .expect("it is written");
    let user = format!(
        "{{exec: {{apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, \
         command: sh, args: ['{}']}}}}",
        script.display()
    );
    let file = kubeconfig(&start_echo_server(), &user);
    let path = file.path().to_str().expect("a path");
    let run = ["run", "--kubeconfig", path, "--only", "discovery/*"];
    let output = assert_hidden(&[CANARY], &run);
    assert!(
        output.stdout.contains("[redacted]"),
        "{:?}\n{}\n{}",
        output.code,
        output.stdout,
        output.stderr
    );
    let logins = fs::read_to_string(logins).expect("there were some").lines().count();
    assert!(logins > 10, "the plugin logged in {logins} times");
}

/// The output and the environment of a failing plugin can contain secrets.
#[test]
fn the_output_of_a_failing_plugin_is_hidden() {
    let user = format!(
        "{{exec: {{apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, \
         command: sh, args: [-c, 'echo {CANARY}; exit 1'], \
         env: [{{name: CLIENT_SECRET, value: {CANARY}}}]}}}}"
    );
    let file = kubeconfig("http://127.0.0.1:1", &user);
    assert_hidden(&[CANARY], &["run", "--kubeconfig", file.path().to_str().expect("a path")])
        .with(2);
}

#[test]
fn client_keys_are_hidden() {
    let server = TestServer::start(&["--tls"]);
    let pair = rcgen::generate_simple_self_signed(["canary".to_owned()]).expect("a certificate");
    let dir = tempfile::tempdir().expect("a directory");
    let (certificate, key, broken) =
        (dir.path().join("cert.pem"), dir.path().join("key.pem"), dir.path().join("broken.pem"));
    let pem = pair.signing_key.serialize_pem();
    let middle = pem.lines().nth(1).expect("a line of the key").to_owned();
    fs::write(&certificate, pair.cert.pem()).expect("it is written");
    fs::write(&key, &pem).expect("it is written");
    fs::write(&broken, pem.replace("PRIVATE", "PUBLIC")).expect("it is written");
    for (key, code) in [(&key, 0), (&broken, 2)] {
        let files = ["--client-certificate", certificate.to_str().expect("a path"), "--client-key"];
        let only = ["--insecure-skip-tls-verify", "--only", "get/*"];
        let run = [&["run"], &server.target()[..], &files, &[key.to_str().expect("a path")], &only]
            .concat();
        assert_hidden(&[&middle, TOKEN], &run).with(code);
    }
}
