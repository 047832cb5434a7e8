//! Servers that mean harm: whatever they do, a run ends in time, within its memory, with its reports, and says what was done.

mod front;
mod hostilities;
mod measured;

use std::fs;

use rstest::rstest;
use tempfile::TempDir;

use self::front::{Front, Hostility, mark};
use self::measured::{Measured, run};
use crate::served::Served;

/// A case of the test's own for each hostility, which meets that one and nothing else, so that its result tells of it. What the
/// cases of the suite meet beside it is chance, and so is what they make of it.
struct Witnesses(TempDir);

impl Witnesses {
    /// Writes the cases: all of one text, that holds `MARK` where a request is to be met.
    fn of(hostilities: &[Hostility], case: &str) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        fs::create_dir(dir.path().join("hostile")).expect("made");
        for (index, hostility) in hostilities.iter().enumerate() {
            let text = format!("summary: A server that {}\n{case}", hostility.name);
            let file = dir.path().join(format!("hostile/witness-{index}.yaml"));
            fs::write(file, text.replace("MARK", &mark(index))).expect("written");
        }
        Self(dir)
    }

    /// The options of `run` that add them.
    fn place(&self) -> [&str; 2] {
        ["--cases", self.0.path().to_str().expect("a name in UTF-8")]
    }
}

/// Fails unless every hostility was met, and each result of its witness says what it did.
#[track_caller]
fn assert_told(told: &Measured, front: &Front, hostilities: &[Hostility]) {
    let met = front.met();
    for (index, Hostility { name, says, .. }) in hostilities.iter().enumerate() {
        assert!(met.contains(name), "nothing met {name:?}: {met:?}");
        let results = told.results(&format!("hostile/witness-{index}"));
        assert!(!results.is_empty(), "{name:?} has no witness");
        for result in results {
            assert_ne!(result["verdict"], "skip", "{result:#}");
            let text = result.to_string();
            let is_told = says.is_empty() || says.iter().any(|words| text.contains(words));
            assert!(is_told, "{name:?}: none of {says:?} is told in {result:#}");
        }
    }
}

const LIST: &str = "\
requirements: [verbs.list]
subject: {of: configmaps.v1}
steps:
  - request:
      id: list
      method: GET
      path: ${collection}
      query: {labelSelector: MARK}
      expect:
        - id: is-a-list
          status: 200
          body: |
            {\"items\": []}
";

fn is_list(line: &str) -> bool {
    line.starts_with("GET ") && !line.contains("watch=") && line.contains("/configmaps")
}

/// All of them at once, as chance has it.
#[test]
fn answers_of_every_harmful_kind_fail_cases_and_no_more() {
    let (server, mut hostilities) = (Served::start(&[]), hostilities::answers());
    // Beside what takes all the memory, of others no more can be said than that there was none left.
    hostilities.retain(|hostility| !hostilities::floods().iter().any(|flood| flood.name == hostility.name));
    let front = Front::start(&server.url, hostilities.clone(), is_list);
    let witnesses = Witnesses::of(&hostilities, LIST);
    let only =
        ["--only", "hostile/*", "list/*@configmaps.v1", "get/*@configmaps.v1", "patch/*@configmaps.v1"];
    let told = run(&front.url, &[&["--case-timeout", "2s"], &witnesses.place()[..], &only].concat());
    assert_eq!(told.code, Some(1), "{}", told.stderr);
    assert_told(&told, &front, &hostilities);
    server.assert_clean();
}

/// Everything that is read is more than fits, in all cases at once.
#[test]
fn floods_end_at_the_budget() {
    let (server, hostilities) = (Served::start(&[]), hostilities::floods());
    let front = Front::start(&server.url, hostilities.clone(), is_list);
    let witnesses = Witnesses::of(&hostilities, LIST);
    // However slow the machine, a flood ends by what it takes, not by its time.
    let options = ["--case-timeout", "60s", "--repeat", "4", "--only", "hostile/*"];
    let told = run(&front.url, &[&options, &witnesses.place()[..]].concat());
    let results = told.report["results"].as_array().expect("results");
    assert_eq!(results.len(), 4 * hostilities.len());
    for result in results {
        assert_eq!(result["verdict"], "error", "{result:#}");
    }
    assert_told(&told, &front, &hostilities);
    server.assert_clean();
}

const WATCH: &str = "\
requirements: [watch.covers-all-changes]
subject: {of: configmaps.v1}
steps:
  - watch:
      id: changes
      path: ${collection}
      query: {labelSelector: MARK}
      expect:
        - id: accepted
          status: 200
  - await:
      watch: changes
      id: event
      until:
        type: ADDED
        object: |
          {\"kind\": \"ConfigMap\"}
";

fn is_watch(line: &str) -> bool {
    line.contains("/configmaps?") && line.contains("watch=")
}

#[test]
fn watches_of_every_harmful_kind_fail_cases_and_no_more() {
    let (server, mut hostilities) = (Served::start(&[]), hostilities::watches());
    // As with answers, these leave no room for others.
    hostilities.retain(|hostility| hostility.name != hostilities::ENDLESS);
    let front = Front::start(&server.url, hostilities.clone(), is_watch);
    let witnesses = Witnesses::of(&hostilities, WATCH);
    let only = ["--only", "hostile/*", "watch/*@configmaps.v1"];
    let told = run(&front.url, &[&["--case-timeout", "2s"], &witnesses.place()[..], &only].concat());
    assert_eq!(told.code, Some(1), "{}", told.stderr);
    assert_told(&told, &front, &hostilities);
    server.assert_clean();
}

#[rstest]
#[case::events(hostilities::ENDLESS, 5)]
#[case::lines("a line without end", 1)]
fn watches_that_never_end_do_not_take_more_together_than_one(#[case] name: &str, #[case] code: i32) {
    let (server, mut hostilities) = (Served::start(&[]), hostilities::watches());
    hostilities.retain(|hostility| hostility.name == name);
    let front = Front::start(&server.url, hostilities.clone(), is_watch);
    let witnesses = Witnesses::of(&hostilities, WATCH);
    let options = ["--case-timeout", "2s", "--repeat", "24", "--only", "hostile/*"];
    let told = run(&front.url, &[&options, &witnesses.place()[..]].concat());
    assert_eq!(told.code, Some(code), "{}", told.stderr);
    assert_told(&told, &front, &hostilities);
    server.assert_clean();
}

const EXEC: &str = "\
requirements: [ws.channel-prefix-byte]
needs: [running-pods]
protocols: [command]
steps:
  - stream:
      id: exec
      path: ${pod.path}/exec
      query: {command: [echo, MARK], stdout: true}
  - finish:
      stream: exec
      expect:
        - id: stdout
          cel: exec.stdout.text == \"MARK\\n\"
";

#[rstest]
#[case::websocket(hostilities::websocket(), "websocket/v5.channel.k8s.io")]
#[case::spdy(hostilities::spdy(), "spdy/v4.channel.k8s.io")]
fn streams_of_every_harmful_kind_fail_cases_and_no_more(
    #[case] hostilities: Vec<Hostility>,
    #[case] protocol: &str,
) {
    let server = Served::start(&[]);
    let front = Front::start(&server.url, hostilities.clone(), |line| line.contains("/exec?"));
    let witnesses = Witnesses::of(&hostilities, EXEC);
    let (ours, theirs) = (format!("hostile/*@{protocol}"), format!("exec/*@{protocol}"));
    let only = ["--only", &ours, &theirs];
    let told = run(&front.url, &[&["--case-timeout", "2s"], &witnesses.place()[..], &only].concat());
    assert_eq!(told.code, Some(1), "{}", told.stderr);
    assert_told(&told, &front, &hostilities);
    server.assert_clean();
}

/// From the first request on, so that there is nothing to test.
#[rstest]
#[case("hangs before the head")]
#[case("10 GB in chunks")]
#[case("headers without end")]
#[case("interim answers without end")]
#[case("no HTTP")]
fn a_server_that_harms_from_the_beginning_cannot_be_reached(#[case] name: &str) {
    let mut hostilities = hostilities::answers();
    hostilities.retain(|hostility| hostility.name == name);
    let front = Front::start("", hostilities.clone(), |_| true);
    let told = run(&front.url, &["--case-timeout", "1s"]);
    assert_eq!(told.code, Some(3), "{}", told.stderr);
    let cause = hostilities[0].says.iter().any(|words| told.stderr.contains(words));
    assert!(cause, "{}", told.stderr);
    assert_eq!(told.report["results"], serde_json::json!([]));
    assert!(told.report["notices"].to_string().contains("cannot be reached"), "{}", told.json);
}
