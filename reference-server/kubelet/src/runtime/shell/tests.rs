use std::sync::Arc;

use rstest::rstest;

use super::*;
use crate::runtime::files::Files;
use crate::runtime::io::{Input, Io, Output};
use crate::runtime::machine::{Environment, Machine};
use crate::runtime::network::Network;

/// Returns the output of a script on both streams, and its exit code.
async fn run(script: &str, stdin: &str) -> (String, String, i32) {
    let machine = Machine {
        hostname: "h".to_owned(),
        environment: Environment::new(),
        directory: "/".to_owned(),
        files: Arc::new(Files::new()),
        network: Arc::<Network>::default(),
    };
    let (stdout, stderr) = (Output::memory(), Output::memory());
    let input = stdin.to_owned();
    let program = Program {
        args: ["sh", "-c", script, "sh", "one", "two words"].map(str::to_owned).to_vec(),
        environment: Environment::from([("SET".to_owned(), "a  b".to_owned())]),
        directory: "/".to_owned(),
        io: Io { stdin: Input::bytes(input), stdout: stdout.clone(), stderr: stderr.clone() },
        terminal: None,
        machine: Arc::new(machine),
    };
    let code = program.run().await.unwrap();
    let text = |bytes: bytes::Bytes| String::from_utf8(bytes.to_vec()).unwrap();
    (text(stdout.taken().await), text(stderr.taken().await), code)
}

#[rstest]
#[case::sequence("echo a; echo b", "a\nb\n")]
#[case::and_or("false && echo a || echo b; true || echo c; ! false && echo d", "b\nd\n")]
#[case::pipeline("seq 1 10000 | head -n 3 | wc -l", "3\n")]
#[case::quoting(r#"echo 'a  "b"' "c  $SET" \$SET $SET"#, "a  \"b\" c  a  b $SET a b\n")]
#[case::empty_words(r#"for x in "" '' $NO "$NO"; do echo "[$x]"; done"#, "[]\n[]\n[]\n")]
#[case::arguments(
    r#"for x in "$@"; do echo "[$x]"; done; echo $# $1 ${2}"#,
    "[one]\n[two words]\n2 one two words\n"
)]
#[case::assignment("a=1 b=$SET; echo \"$a$b\"; a=2 printenv a; echo $a", "1a  b\n2\n1\n")]
#[case::export("X=1; printenv X || echo no; export X; printenv X", "no\n1\n")]
#[case::default("echo ${NO:-x y} ${SET:-z} ${#SET}", "x y a b 4\n")]
#[case::translated(r"printf 'a-b\r\n' | tr -d '\r' | tr a-b x-y", "x-y\n")]
#[case::trimmed("x=a.b; echo ${x%.b} ${x#a.} ${x%c}", "a b a.b\n")]
#[case::numbers("i=1; while [ $i -le 3 ]; do echo $i; i=$((i + 1)); done", "1\n2\n3\n")]
#[case::conditions(
    "if false; then echo a; elif [ -z \"$NO\" ]; then echo b; else echo c; fi",
    "b\n"
)]
#[case::loops(
    "for i in 1 2 3 4; do [ $i = 2 ] && continue; [ $i = 4 ] && break; echo $i; done",
    "1\n3\n"
)]
#[case::output("echo \"<$(echo a; echo b | cat)>\" $(seq 3)", "<a\nb> 1 2 3\n")]
#[case::files(
    "echo a > /tmp/f; echo b >> /tmp/f; cat < /tmp/f | sha256sum | head -c 8",
    "911169dd"
)]
#[case::groups("{ echo a; echo b; } | wc -l; (cd /tmp; pwd); pwd", "2\n/tmp\n/\n")]
#[case::errors("{ echo a; echo b >&2; } 2>&1 | wc -l; echo c 2>/dev/null >&2", "2\n")]
#[case::status("(exit 7); echo $?; false; echo $?", "7\n1\n")]
#[case::input("read a b; echo \"$b-$a\"; cat", "2 3-1\nrest\n")]
#[case::comments("echo a # b\n# c\necho 'd#' #e", "a\nd#\n")]
#[case::binary(r"printf 'a\000b\377' | wc -c", "4\n")]
#[case::tail(
    "seq 5 | tail -n 2; seq 5 | tail -n +4; printf abcdef | tail -c +3",
    "4\n5\n4\n5\ncdef"
)]
#[case::background("sleep infinity & echo a; { echo b & wait; } | cat", "a\nb\n")]
#[case::background_has_no_input("cat & wait; read a b; echo $a", "1\n")]
#[case::broken_pipe("yes | head -n 1", "y\n")]
#[tokio::test]
async fn scripts(#[case] script: &str, #[case] expected: &str) {
    let (out, err, code) = run(script, "1 2 3\nrest\n").await;
    assert_eq!((out.as_str(), err.as_str(), code), (expected, "", 0));
}

#[rstest]
#[case("exit 42", 42)]
#[case("echo a; false", 1)]
#[case("set -e; false; exit 3", 1)]
#[case("set -e; false || true; if false; then :; fi; ! true; exit 3", 3)]
#[case("nope", 127)]
#[case("if true", 2)]
#[case("& echo a", 2)]
#[case("false & true", 0)]
#[case("echo $((1 +))", 2)]
#[case("cat < /no", 1)]
#[case("test -d /tmp", 0)]
#[case("test -d /no", 1)]
#[tokio::test]
async fn codes(#[case] script: &str, #[case] expected: i32) {
    assert_eq!(run(script, "").await.2, expected);
}

#[rstest]
#[case("nope x", "sh: nope: not found\n")]
#[case("echo `date`", "sh: a command in backticks is not supported by this shell\n")]
#[case("echo a; fi", "sh: syntax error: unexpected \"fi\"\n")]
#[tokio::test]
async fn unsupported_syntax_is_an_error(#[case] script: &str, #[case] expected: &str) {
    assert_eq!(run(script, "").await.1, expected);
}

// A loop that yields at every turn would take minutes on a busy machine.
#[rstest]
#[case::over_words("for i in $(seq 300); do :; done")]
#[case::while_it_holds("i=0; while [ $i -lt 300 ]; do i=$((i + 1)); done")]
#[tokio::test]
async fn a_loop_yields_to_other_tasks_now_and_then(#[case] script: &str) {
    let mut turns = 0;
    let others = async {
        loop {
            turns += 1;
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        biased;
        (_, _, code) = run(script, "") => assert_eq!(code, 0),
        () = others => {}
    }
    assert!((1..30).contains(&turns), "{turns}");
}
