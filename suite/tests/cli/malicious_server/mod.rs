//! Malicious servers: each run ends in time, within its memory limit, and reports what happened.

mod attacks;
mod bounded_run;
mod http2;
mod proxy;

use std::fs;

use rstest::rstest;
use tempfile::TempDir;

use self::bounded_run::{BoundedRun, run};
use self::proxy::{Attack, Proxy, mark};
use crate::server::TestServer;

/// A case for each attack. Its request gets exactly this attack, so its result must report it. The
/// cases of the suite get random attacks.
struct AttackedCases(TempDir);

impl AttackedCases {
    /// Writes a case file per attack. `MARK` in the text selects the request to attack.
    fn write(attacks: &[Attack], case: &str) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        fs::create_dir(dir.path().join("attacked")).expect("made");
        for (index, attack) in attacks.iter().enumerate() {
            let text = format!("summary: A server that {}\n{case}", attack.name);
            let file = dir.path().join(format!("attacked/case-{index}.yaml"));
            fs::write(file, text.replace("MARK", &mark(index))).expect("written");
        }
        Self(dir)
    }

    /// Returns the options of `run` that add the cases.
    fn options(&self) -> [&str; 2] {
        ["--cases", self.0.path().to_str().expect("a name in UTF-8")]
    }
}

/// Asserts that every attack was used.
#[track_caller]
fn assert_all_used(proxy: &Proxy, attacks: &[Attack]) {
    let used = proxy.used();
    let unused: Vec<_> =
        attacks.iter().map(|one| one.name).filter(|name| !used.contains(name)).collect();
    assert!(unused.is_empty(), "no request got {unused:?}");
}

/// Asserts that the result of each case reports its attack.
#[track_caller]
fn assert_reported(run: &BoundedRun, attacks: &[Attack]) {
    for (index, Attack { name, messages, .. }) in attacks.iter().enumerate() {
        let results = run.results(&format!("attacked/case-{index}"));
        assert!(!results.is_empty(), "{name:?} has no result");
        for result in results {
            assert_ne!(result["verdict"], "skip", "{result:#}");
            let text = result.to_string();
            let is_reported =
                messages.is_empty() || messages.iter().any(|words| text.contains(words));
            assert!(is_reported, "{name:?}: expected one of {messages:?} in {result:#}");
        }
    }
}

/// The cases of prerequisites. If one fails, the run blocks the cases that an attack should reach.
const PREREQUISITES: [&str; 16] = [
    "apply/creates-then-updates",
    "create/stores-the-object",
    "deletion/finalizer-postpones",
    "discovery/custom-subresources-listed",
    "discovery/group-list",
    "discovery/resource-list",
    "generate-name/prefix-kept-and-suffix-added",
    "get/returns-the-object",
    "list/kind-ends-in-list",
    "list/pages-cover-everything",
    "list/states-a-resource-version",
    "namespaces/created-active",
    "selectors/equality",
    "selectors/field-name",
    "watch/is-a-stream-of-events",
    "watch/streams-changes-after-version",
];

/// Attacks one case each, and then cases of the suite at random. Both runs clean up.
#[track_caller]
fn assert_only_cases_fail(
    attacks: &[Attack],
    is_attacked: fn(&str) -> bool,
    (attacked_case, protocol): (&str, &str),
    suite_cases: &[&str],
) {
    let server = TestServer::start(&[]);
    let proxy = Proxy::start(&server.url, attacks.to_vec(), is_attacked);
    let cases = AttackedCases::write(attacks, attacked_case);
    let only = format!("attacked/*@{protocol}");
    let options = ["--case-timeout", "5s", "--only", &only];
    let finished = run(&proxy.url, &[&options, &cases.options()[..]].concat());
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    assert_reported(&finished, attacks);
    assert_all_used(&proxy, attacks);

    let selected: Vec<String> =
        suite_cases.iter().map(|case| format!("{case}@{protocol}")).collect();
    let selected = selected.iter().map(String::as_str);
    let options = ["--case-timeout", "2s", "--only"].into_iter().chain(selected);
    let options: Vec<&str> = options.chain(["--skip"]).chain(PREREQUISITES).collect();
    let borne = run(&proxy.url, &options);
    let (stopped, summary) = (&borne.report["stopped"], &borne.report["summary"]);
    assert_eq!(borne.code, Some(1), "{}stopped: {stopped}, {summary}", borne.stderr);
    assert_all_used(&proxy, attacks);
    server.assert_clean();
}

const LIST: &str = "\
requirements: [list.items-required]
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
fn malicious_responses_fail_only_cases() {
    let mut attacks = attacks::responses();
    // Floods take all the memory, so the results of other attacks would only report that.
    attacks.retain(|attack| !attacks::floods().iter().any(|flood| flood.name == attack.name));
    let attacked_case = (LIST, "configmaps.v1");
    assert_only_cases_fail(&attacks, is_list, attacked_case, &["list/*", "get/*", "patch/*"]);
}

/// All cases receive floods at the same time.
#[test]
fn floods_end_at_the_budget() {
    let (server, attacks) = (TestServer::start(&[]), attacks::floods());
    let proxy = Proxy::start(&server.url, attacks.clone(), is_list);
    let cases = AttackedCases::write(&attacks, LIST);
    // A flood must end by its size, even on a slow machine.
    let options = ["--case-timeout", "60s", "--repeat", "4", "--only", "attacked/*"];
    let finished = run(&proxy.url, &[&options, &cases.options()[..]].concat());
    let results = finished.report["results"].as_array().expect("results");
    assert_eq!(results.len(), 4 * attacks.len());
    for result in results {
        assert_eq!(result["verdict"], "error", "{result:#}");
    }
    assert_reported(&finished, &attacks);
    assert_all_used(&proxy, &attacks);
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
        object: {kind: ConfigMap}
";

fn is_watch(line: &str) -> bool {
    line.contains("/configmaps?") && line.contains("watch=")
}

#[test]
fn malicious_watches_fail_only_cases() {
    let mut attacks = attacks::watches();
    // These take all the memory, too.
    attacks.retain(|attack| attack.name != attacks::ENDLESS);
    assert_only_cases_fail(&attacks, is_watch, (WATCH, "configmaps.v1"), &["watch/*"]);
}

#[rstest]
#[case::events(attacks::ENDLESS, "2s", 5)]
// The line must end by its length, even on a slow machine.
#[case::lines("a line without end", "60s", 1)]
fn endless_watches_share_one_memory_budget(
    #[case] name: &str,
    #[case] time: &str,
    #[case] code: i32,
) {
    let (server, mut attacks) = (TestServer::start(&[]), attacks::watches());
    attacks.retain(|attack| attack.name == name);
    let proxy = Proxy::start(&server.url, attacks.clone(), is_watch);
    let cases = AttackedCases::write(&attacks, WATCH);
    let options = ["--case-timeout", time, "--repeat", "24", "--only", "attacked/*"];
    let finished = run(&proxy.url, &[&options, &cases.options()[..]].concat());
    assert_eq!(finished.code, Some(code), "{}", finished.stderr);
    assert_reported(&finished, &attacks);
    assert_all_used(&proxy, &attacks);
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
#[case::websocket(attacks::websocket(), "websocket/v5.channel.k8s.io")]
#[case::spdy(attacks::spdy(), "spdy/v4.channel.k8s.io")]
fn malicious_streams_fail_only_cases(#[case] attacks: Vec<Attack>, #[case] protocol: &str) {
    assert_only_cases_fail(&attacks, |line| line.contains("/exec?"), (EXEC, protocol), &["exec/*"]);
}

/// The attack starts with the first request, so no case runs.
#[rstest]
#[case("hangs before the head")]
#[case("10 GB in chunks")]
#[case("headers without end")]
#[case("interim responses without end")]
#[case("no HTTP")]
fn a_server_that_attacks_the_first_request_cannot_be_reached(#[case] name: &str) {
    let mut attacks = attacks::responses();
    attacks.retain(|attack| attack.name == name);
    let proxy = Proxy::start("", attacks.clone(), |_| true);
    let finished = run(&proxy.url, &["--case-timeout", "1s"]);
    assert_eq!(finished.code, Some(3), "{}", finished.stderr);
    let cause = attacks[0].messages.iter().any(|words| finished.stderr.contains(words));
    assert!(cause, "{}", finished.stderr);
    assert_eq!(finished.report["results"], serde_json::json!([]));
    assert!(
        finished.report["notices"].to_string().contains("cannot be reached"),
        "{}",
        finished.json
    );
}
