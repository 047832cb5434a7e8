//! Malicious HTTP/2 servers. An attack on a request does not affect other requests on the same
//! connection. Setup and cleanup of the run survive the loss of any connection.

mod attacks;
mod frames;
mod proxy;

use rstest::rstest;

use self::proxy::Scope;
use super::attacks::{LATE, attack};
use super::bounded_run::{BoundedRun, run};
use super::proxy::{Action, Attack, Proxy};
use super::{AttackedCases, PREREQUISITES, assert_all_used, assert_reported};
use crate::server::TestServer;

const REVIEW: &str = "\
requirements: [general.rest-verbs]
subject: {of: configmaps.v1}
steps:
  - request:
      id: review
      method: POST
      path: /apis/authorization.k8s.io/v1/selfsubjectaccessreviews
      json: |
        {\"apiVersion\": \"authorization.k8s.io/v1\", \"kind\": \"SelfSubjectAccessReview\",
         \"spec\": {\"resourceAttributes\": {
           \"name\": \"MARK\", \"namespace\": \"${ns}\",
           \"resource\": \"configmaps\", \"verb\": \"get\"
         }}}
      expect:
        - id: is-allowed
          status: [200, 201]
          body: {status: {allowed: true}}
";

fn run_over_tls(proxy: &Proxy, options: &[&str]) -> BoundedRun {
    run(&proxy.url, &[&["--insecure-skip-tls-verify"], options].concat())
}

/// Asserts that the cases report all attacks, and that the run cleans up.
#[track_caller]
fn assert_attacks_reported(attacks: &[Attack], scope: Scope, options: &[&str], code: i32) {
    assert_reported_by_case(REVIEW, attacks, scope, options, code);
}

#[track_caller]
fn assert_reported_by_case(
    case: &str,
    attacks: &[Attack],
    scope: Scope,
    options: &[&str],
    code: i32,
) {
    let server = TestServer::start(&[]);
    let proxy = proxy::start(&server.url, attacks.to_vec(), scope);
    let cases = AttackedCases::write(attacks, case);
    let finished = run_over_tls(
        &proxy,
        &[options, &["--only", "attacked/*@configmaps.v1"], &cases.options()].concat(),
    );
    assert_reported(&finished, attacks);
    assert_all_used(&proxy, attacks);
    assert_eq!(finished.code, Some(code), "{}", finished.stderr);
    server.assert_clean();
}

/// A timeout that no attack reaches, even on a slow machine.
const LONG_TIMEOUT: [&str; 2] = ["--case-timeout", "60s"];

/// All attacks use one connection at the same time.
#[test]
fn attacks_on_a_stream_affect_no_other_stream() {
    assert_attacks_reported(&attacks::of_a_stream(), Scope::Stream, &LONG_TIMEOUT, 1);
}

#[test]
fn endless_responses_time_out() {
    assert_attacks_reported(&attacks::without_end(), Scope::Stream, &["--case-timeout", "2s"], 1);
}

#[test]
fn floods_end_at_the_budget() {
    assert_attacks_reported(&attacks::floods(), Scope::Stream, &LONG_TIMEOUT, 5);
}

/// The attacks run in sequence, each on its own connection.
#[test]
fn attacks_on_a_connection_are_reported() {
    assert_attacks_reported(
        &attacks::of_a_connection(),
        Scope::Connection,
        &[&LONG_TIMEOUT[..], &["--jobs", "1"]].concat(),
        1,
    );
}

/// The run removes its namespace afterwards.
#[rstest]
#[case::silence(attacks::silence())]
#[case::settings(attacks::settings_without_end())]
#[case::goaways(attacks::goaways_without_end())]
fn a_hanging_connection_times_out(#[case] script: Vec<Action>) {
    let attack = attack("keeps a connection waiting", script, LATE);
    assert_attacks_reported(&[attack], Scope::Connection, &["--case-timeout", "2s"], 1);
}

/// The server accepts only the bytes of the initial window.
#[test]
fn a_request_without_window_updates_times_out() {
    let attacks = [attack("does not open a window", vec![Action::Hang], LATE)];
    let case =
        REVIEW.replace("\"verb\": \"get\"", "\"verb\": \"get\", \"version\": \"${fill:3000000}\"");
    assert_reported_by_case(&case, &attacks, Scope::Stream, &["--case-timeout", "2s"], 1);
}

/// The attack starts with the first frame, so no case runs.
#[test]
fn a_silent_server_cannot_be_reached() {
    let proxy = proxy::start("", vec![attack("is silent", attacks::silence(), LATE)], Scope::All);
    let finished = run_over_tls(&proxy, &["--case-timeout", "1s"]);
    assert_eq!(finished.code, Some(3), "{}", finished.stderr);
    assert!(finished.stderr.contains(LATE[0]), "{}", finished.stderr);
    assert!(
        finished.report["notices"].to_string().contains("cannot be reached"),
        "{}",
        finished.json
    );
}

/// Connections are lost at any time. Their active cases fail, but the run completes its setup and
/// cleanup.
#[rstest]
#[case::streams(attacks::of_a_stream(), Scope::Stream)]
#[case::connections(attacks::of_a_connection(), Scope::Connection)]
fn lost_connections_fail_only_cases(#[case] attacks: Vec<Attack>, #[case] scope: Scope) {
    let server = TestServer::start(&[]);
    let proxy = proxy::start(&server.url, attacks, scope);
    let options = ["--case-timeout", "5s", "--only", "create/*", "--skip"];
    let borne = run_over_tls(&proxy, &[&options[..], &PREREQUISITES].concat());
    assert_eq!(borne.code, Some(1), "{}", borne.stderr);
    // No result reports that the setup of the run failed.
    assert!(!borne.json.contains("resource-installed"), "{}", borne.json);
    assert!(proxy.used().len() > 10);
    server.assert_clean();
}
