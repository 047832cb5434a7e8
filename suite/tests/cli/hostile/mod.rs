//! Servers that mean harm: whatever they do, a run ends in time, within its memory, with its reports, and says what was done.

mod front;
mod hostilities;
mod http2;
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

/// Fails unless every hostility was met.
#[track_caller]
fn assert_met(front: &Front, hostilities: &[Hostility]) {
    let met = front.met();
    let unmet: Vec<_> = hostilities.iter().map(|one| one.name).filter(|name| !met.contains(name)).collect();
    assert!(unmet.is_empty(), "nothing met {unmet:?}");
}

/// Fails unless each result of each witness says what was done to it.
#[track_caller]
fn assert_told(told: &Measured, hostilities: &[Hostility]) {
    for (index, Hostility { name, says, .. }) in hostilities.iter().enumerate() {
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

/// The witnesses tell of everything; then cases of the suite meet it all at once, as chance has it. Nothing stays behind.
#[track_caller]
fn fail_cases_and_no_more(
    hostilities: &[Hostility],
    is_met: fn(&str) -> bool,
    (witness, protocol): (&str, &str),
    cases: &[&str],
) {
    let server = Served::start(&[]);
    let front = Front::start(&server.url, hostilities.to_vec(), is_met);
    let witnesses = Witnesses::of(hostilities, witness);
    let ours = format!("hostile/*@{protocol}");
    let options = ["--case-timeout", "5s", "--only", &ours];
    let told = run(&front.url, &[&options, &witnesses.place()[..]].concat());
    assert_eq!(told.code, Some(1), "{}", told.stderr);
    assert_told(&told, hostilities);
    assert_met(&front, hostilities);

    let theirs: Vec<String> = cases.iter().map(|case| format!("{case}@{protocol}")).collect();
    let theirs = theirs.iter().map(String::as_str);
    let options: Vec<&str> = ["--case-timeout", "2s", "--only"].into_iter().chain(theirs).collect();
    let borne = run(&front.url, &options);
    assert_eq!(borne.code, Some(1), "{}", borne.stderr);
    assert_met(&front, hostilities);
    server.assert_clean();
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

#[test]
fn answers_of_every_harmful_kind_fail_cases_and_no_more() {
    let mut hostilities = hostilities::answers();
    // Beside what takes all the memory, of others no more can be said than that there was none left.
    hostilities.retain(|hostility| !hostilities::floods().iter().any(|flood| flood.name == hostility.name));
    let witness = (LIST, "configmaps.v1");
    fail_cases_and_no_more(&hostilities, is_list, witness, &["list/*", "get/*", "patch/*"]);
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
    assert_told(&told, &hostilities);
    assert_met(&front, &hostilities);
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
    let mut hostilities = hostilities::watches();
    // As with answers, these leave no room for others.
    hostilities.retain(|hostility| hostility.name != hostilities::ENDLESS);
    fail_cases_and_no_more(&hostilities, is_watch, (WATCH, "configmaps.v1"), &["watch/*"]);
}

#[rstest]
#[case::events(hostilities::ENDLESS, "2s", 5)]
// However slow the machine, each ends by its length, not by its time.
#[case::lines("a line without end", "60s", 1)]
fn watches_that_never_end_do_not_take_more_together_than_one(
    #[case] name: &str,
    #[case] time: &str,
    #[case] code: i32,
) {
    let (server, mut hostilities) = (Served::start(&[]), hostilities::watches());
    hostilities.retain(|hostility| hostility.name == name);
    let front = Front::start(&server.url, hostilities.clone(), is_watch);
    let witnesses = Witnesses::of(&hostilities, WATCH);
    let options = ["--case-timeout", time, "--repeat", "24", "--only", "hostile/*"];
    let told = run(&front.url, &[&options, &witnesses.place()[..]].concat());
    assert_eq!(told.code, Some(code), "{}", told.stderr);
    assert_told(&told, &hostilities);
    assert_met(&front, &hostilities);
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
    fail_cases_and_no_more(&hostilities, |line| line.contains("/exec?"), (EXEC, protocol), &["exec/*"]);
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
