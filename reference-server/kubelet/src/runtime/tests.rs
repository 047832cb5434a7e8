use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::process::{Exit, TerminalSize};
use super::*;

/// The limit for a hanging test.
const DEADLINE: Duration = Duration::from_secs(20);

fn pod(fields: &Value) -> Value {
    let mut pod = json!({
        "metadata": {"namespace": "n", "name": "p", "uid": "u"},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]},
    });
    for (name, value) in fields.as_object().unwrap() {
        pod["spec"]["containers"][0][name] = value.clone();
    }
    pod
}

/// Starts one pod, and waits until its container has this state.
async fn with(fields: Value, state: impl Fn(&View) -> bool) -> (Runtime, PodKey, View) {
    let runtime = Runtime::default();
    let pod = runtime.run(PodSpec::parse(&pod(&fields)));
    let mut changes = pod.containers[0].changes();
    let view =
        tokio::time::timeout(DEADLINE, changes.wait_for(state)).await.unwrap().unwrap().clone();
    (runtime, pod.key.clone(), view)
}

fn running(view: &View) -> bool {
    matches!(view.state, State::Running { .. })
}

fn ended(view: &View) -> bool {
    matches!(view.state, State::Terminated(_))
}

/// Returns both outputs of a process, and its exit.
async fn exec(command: &[&str], stdin: &[u8], tty: bool) -> (String, String, Exit) {
    let (runtime, key, _) = with(json!({}), running).await;
    let request = ExecRequest {
        command: command.iter().map(|word| (*word).to_owned()).collect(),
        stdin: true,
        stdout: true,
        stderr: !tty,
        tty,
    };
    let mut process = runtime.exec(&key, "c", request).await.unwrap();
    let (mut out, mut err) = (String::new(), String::new());
    let work = async {
        let mut input = process.stdin.take().unwrap();
        let write = async {
            // The process may end before it has read all input.
            let _ = input.write_all(stdin).await;
            drop(input);
        };
        let read_err = async {
            match &mut process.stderr {
                Some(stderr) => stderr.read_to_string(&mut err).await.unwrap(),
                None => 0,
            }
        };
        tokio::join!(write, process.stdout.as_mut().unwrap().read_to_string(&mut out), read_err)
            .1
            .unwrap();
        process.exit.await.unwrap()
    };
    let exit = tokio::time::timeout(DEADLINE, work).await.unwrap();
    (out, err, exit)
}

#[tokio::test]
async fn a_process_reads_all_input_and_writes_all_output() {
    let text = "x".repeat(1 << 20);
    let (out, err, exit) = exec(&["cat"], text.as_bytes(), false).await;
    assert_eq!((out.len(), err.as_str(), exit), (text.len(), "", Exit::Code(0)));
}

#[tokio::test]
async fn an_unknown_program_does_not_start() {
    let (runtime, key, _) = with(json!({}), running).await;
    let request = ExecRequest { command: vec!["nope".to_owned()], ..ExecRequest::default() };
    let error = runtime.exec(&key, "c", request).await.unwrap_err();
    assert_eq!(error, StartError::NoSuchCommand("nope".to_owned()));
}

#[tokio::test]
async fn a_process_ends_when_its_exit_is_dropped() {
    let (runtime, key, _) = with(json!({}), running).await;
    let request =
        ExecRequest { command: vec!["yes".to_owned()], stdout: true, ..ExecRequest::default() };
    let mut process = runtime.exec(&key, "c", request).await.unwrap();
    drop(process.exit);
    let mut rest = Vec::new();
    tokio::time::timeout(DEADLINE, process.stdout.as_mut().unwrap().read_to_end(&mut rest))
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn a_terminal_echoes_edits_and_sends_carriage_returns() {
    let (out, _, exit) = exec(&["cat"], b"ax\x7fb\r\x04", true).await;
    assert_eq!((out.as_str(), exit), ("ax\x08 \x08b\r\nab\r\n", Exit::Code(0)));
    let (out, _, exit) = exec(&["cat"], b"a\x03", true).await;
    assert_eq!((out.as_str(), exit), ("a^C", Exit::Code(130)));
}

#[tokio::test]
async fn a_terminal_has_its_latest_size() {
    let (runtime, key, _) = with(json!({}), running).await;
    let command = ["sh", "-c", "read line; stty size"].map(str::to_owned).to_vec();
    let request = ExecRequest { command, stdin: true, stdout: true, stderr: false, tty: true };
    let mut process = runtime.exec(&key, "c", request).await.unwrap();
    process.resize.send(TerminalSize { width: 120, height: 40 }).await.unwrap();
    // Sending the next size shows that the process received the previous one.
    while process.resize.capacity() < process.resize.max_capacity() {
        tokio::task::yield_now().await;
    }
    tokio::task::yield_now().await;
    process.stdin.as_mut().unwrap().write_all(b"\n").await.unwrap();
    let mut out = String::new();
    process.stdout.as_mut().unwrap().read_to_string(&mut out).await.unwrap();
    assert_eq!(out, "\r\n40 120\r\n");
}

#[tokio::test]
async fn a_container_has_the_exit_code_and_the_log_of_its_command() {
    let (runtime, key, view) =
        with(json!({"command": ["sh", "-c", "echo out; echo err >&2; exit 3"]}), ended).await;
    let State::Terminated(ended) = view.state else { unreachable!() };
    assert_eq!((ended.code, ended.reason), (3, "Error"));
    let mut log = runtime.logs(&key, "c", LogOptions::default()).unwrap();
    let lines = [log.next().await.unwrap(), log.next().await.unwrap()];
    assert!(lines.iter().any(|line| line == "out\n") && lines.iter().any(|line| line == "err\n"));
    assert_eq!(log.next().await, None);
}

#[tokio::test]
async fn attach_sends_input_to_the_main_process() {
    let fields = json!({"command": ["sh", "-c", "read a; echo got $a"], "stdin": true});
    let (runtime, key, _) = with(fields, running).await;
    let request = ExecRequest { stdin: true, stdout: true, ..ExecRequest::default() };
    let mut process = runtime.attach(&key, "c", request).await.unwrap();
    process.stdin.as_mut().unwrap().write_all(b"x\n").await.unwrap();
    let mut out = String::new();
    process.stdout.as_mut().unwrap().read_to_string(&mut out).await.unwrap();
    assert_eq!((out.as_str(), process.exit.await.unwrap()), ("got x\n", Exit::Code(0)));
}

#[tokio::test]
async fn declared_ports_and_listening_programs_accept_connections() {
    let command = json!(["nc", "-l", "-k", "-p", "9", "-e", "sh", "-c", "echo hello"]);
    let fields = json!({"command": command, "ports": [{"containerPort": 7}]});
    let (runtime, key, _) = with(fields, running).await;
    let mut echo = runtime.connect(&key, 7).await.unwrap();
    echo.write_all(b"abc").await.unwrap();
    echo.shutdown().await.unwrap();
    let mut text = String::new();
    echo.read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "abc");
    assert_eq!(runtime.connect(&key, 8).await.unwrap_err(), PortError::Refused { port: 8 });
    let connected = async {
        loop {
            match runtime.connect(&key, 9).await {
                Ok(connection) => return connection,
                Err(_) => tokio::task::yield_now().await,
            }
        }
    };
    let mut hello = tokio::time::timeout(DEADLINE, connected).await.unwrap();
    text.clear();
    hello.read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "hello\n");
}

#[tokio::test]
async fn a_failed_container_restarts_and_keeps_its_previous_log() {
    let mut fields = pod(&json!({"command": ["sh", "-c", "echo once; exit 1"]}));
    fields["spec"]["restartPolicy"] = "Always".into();
    let runtime = Runtime::default();
    let pod = runtime.run(PodSpec::parse(&fields));
    let mut changes = pod.containers[0].changes();
    let again = changes.wait_for(|view| view.restarts == 1 && !running(view));
    tokio::time::timeout(DEADLINE, again).await.unwrap().unwrap();
    let options = LogOptions { previous: true, ..LogOptions::default() };
    let mut log = runtime.logs(&pod.key, "c", options).unwrap();
    assert_eq!(log.next().await.unwrap(), "once\n");
}

#[tokio::test]
async fn attach_ends_with_its_instance_although_the_container_restarts() {
    let mut fields =
        pod(&json!({"command": ["sh", "-c", "read a; echo got $a; exit 1"], "stdin": true}));
    let runtime = Runtime::default();
    fields["spec"]["restartPolicy"] = "Always".into();
    let pod = runtime.run(PodSpec::parse(&fields));
    let mut changes = pod.containers[0].changes();
    tokio::time::timeout(DEADLINE, changes.wait_for(running)).await.unwrap().unwrap();
    let request = ExecRequest { stdin: true, stdout: true, ..ExecRequest::default() };
    let mut process = runtime.attach(&pod.key, "c", request).await.unwrap();
    process.stdin.as_mut().unwrap().write_all(b"x\n").await.unwrap();
    let mut out = String::new();
    process.stdout.as_mut().unwrap().read_to_string(&mut out).await.unwrap();
    let exit = tokio::time::timeout(DEADLINE, process.exit).await.unwrap().unwrap();
    assert_eq!((out.as_str(), exit), ("got x\n", Exit::Code(0)));
}
