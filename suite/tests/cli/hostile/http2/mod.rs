//! Servers that mean harm and speak HTTP/2, where requests share a connection: what harms one leaves the others alone as far as
//! it can, and the run, its setting up and its cleaning up, gets over the loss of any connection.

mod frames;
mod front;
mod hostilities;

use rstest::rstest;

use self::front::Scope;
use super::front::{Act, Front, Hostility};
use super::hostilities::{LATE, hostility};
use super::measured::{Measured, run};
use super::{Witnesses, assert_met, assert_told};
use crate::served::Served;

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
         \"spec\": {\"resourceAttributes\": {\"name\": \"MARK\", \"namespace\": \"${ns}\", \"resource\": \"configmaps\",
                                             \"verb\": \"get\"}}}
      expect:
        - id: is-allowed
          status: [200, 201]
          body: |
            {\"status\": {\"allowed\": true}}
";

fn run_over_tls(front: &Front, options: &[&str]) -> Measured {
    run(&front.url, &[&["--insecure-skip-tls-verify"], options].concat())
}

/// The witnesses tell of everything, and nothing stays behind.
#[track_caller]
fn are_told(hostilities: &[Hostility], scope: Scope, options: &[&str], code: i32) {
    are_told_by(REVIEW, hostilities, scope, options, code);
}

#[track_caller]
fn are_told_by(case: &str, hostilities: &[Hostility], scope: Scope, options: &[&str], code: i32) {
    let server = Served::start(&[]);
    let front = front::start(&server.url, hostilities.to_vec(), scope);
    let witnesses = Witnesses::of(hostilities, case);
    let told =
        run_over_tls(&front, &[options, &["--only", "hostile/*@configmaps.v1"], &witnesses.place()].concat());
    assert_told(&told, hostilities);
    assert_met(&front, hostilities);
    assert_eq!(told.code, Some(code), "{}", told.stderr);
    server.assert_clean();
}

/// However slow the machine, what is done here is over by itself.
const NO_HURRY: [&str; 2] = ["--case-timeout", "60s"];

/// All at once over one connection.
#[test]
fn what_harms_a_request_harms_no_other() {
    are_told(&hostilities::of_a_stream(), Scope::Stream, &NO_HURRY, 1);
}

#[test]
fn what_never_ends_is_left_in_time() {
    are_told(&hostilities::without_end(), Scope::Stream, &["--case-timeout", "2s"], 1);
}

#[test]
fn floods_end_at_the_budget() {
    are_told(&hostilities::floods(), Scope::Stream, &NO_HURRY, 5);
}

/// One after the other, each over a connection of its own.
#[test]
fn what_harms_a_connection_is_told() {
    are_told(
        &hostilities::of_a_connection(),
        Scope::Connection,
        &[&NO_HURRY[..], &["--jobs", "1"]].concat(),
        1,
    );
}

/// The run has to remove its namespace after it.
#[rstest]
#[case::silence(hostilities::silence())]
#[case::settings(hostilities::settings_without_end())]
#[case::goodbyes(hostilities::goodbyes_without_end())]
fn a_connection_that_hangs_is_left_in_time(#[case] script: Vec<Act>) {
    let hostility = hostility("keeps a connection waiting", script, LATE);
    are_told(&[hostility], Scope::Connection, &["--case-timeout", "2s"], 1);
}

/// It takes no more of a request than its windows let through at first.
#[test]
fn a_request_that_is_not_taken_is_given_up() {
    let hostilities = [hostility("does not open a window", vec![Act::Hang], LATE)];
    let case = REVIEW.replace("\"verb\": \"get\"", "\"verb\": \"get\", \"version\": \"${fill:3000000}\"");
    are_told_by(&case, &hostilities, Scope::Stream, &["--case-timeout", "2s"], 1);
}

/// From the first frame on, so that there is nothing to test.
#[test]
fn a_server_that_never_says_anything_cannot_be_reached() {
    let front = front::start("", vec![hostility("is silent", hostilities::silence(), LATE)], Scope::All);
    let told = run_over_tls(&front, &["--case-timeout", "1s"]);
    assert_eq!(told.code, Some(3), "{}", told.stderr);
    assert!(told.stderr.contains(LATE[0]), "{}", told.stderr);
    assert!(told.report["notices"].to_string().contains("cannot be reached"), "{}", told.json);
}

/// Cases of the suite lose their connection at any time. Those that were under way on it fail; what the run has to do for all of
/// them it does.
#[rstest]
#[case::streams(hostilities::of_a_stream(), Scope::Stream)]
#[case::connections(hostilities::of_a_connection(), Scope::Connection)]
fn the_loss_of_connections_fails_cases_and_no_more(
    #[case] hostilities: Vec<Hostility>,
    #[case] scope: Scope,
) {
    let server = Served::start(&[]);
    let front = front::start(&server.url, hostilities, scope);
    let borne = run_over_tls(&front, &["--case-timeout", "5s", "--only", "create/*"]);
    assert_eq!(borne.code, Some(1), "{}", borne.stderr);
    // That the run has what all cases share is told by none of them.
    assert!(!borne.json.contains("resource-installed"), "{}", borne.json);
    assert!(front.met().len() > 10);
    server.assert_clean();
}
