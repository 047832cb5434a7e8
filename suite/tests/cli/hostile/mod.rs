//! Servers that mean harm: whatever they do, a run ends in time, within its memory, with its reports, and says what was done.

mod front;
mod hostilities;
mod measured;

use rstest::rstest;

use self::front::{Front, Hostility};
use self::measured::{Measured, run};
use crate::served::Served;

/// Fails unless every hostility was met, and the report says what they did. Which case meets which is chance, and some look at
/// nothing that would tell; so of a few it may be silent. What is said of each alone, the tests of the transports show.
#[track_caller]
fn assert_told(told: &Measured, front: &Front, hostilities: &[Hostility]) {
    let met = front.met();
    let unmet: Vec<_> = hostilities.iter().map(|one| one.name).filter(|name| !met.contains(name)).collect();
    assert!(unmet.is_empty(), "nothing met {unmet:?}");
    let is_told = |hostility: &&Hostility| {
        hostility.says.is_empty() || hostility.says.iter().any(|words| told.json.contains(words))
    };
    let silent: Vec<_> = hostilities.iter().filter(|one| !is_told(one)).map(|one| one.name).collect();
    assert!(silent.len() <= hostilities.len() / 3, "{silent:?} are not told in {:#?}", told.reasons());
}

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
    let told = run(
        &front.url,
        &[
            "--case-timeout",
            "2s",
            "--only",
            "list/*@configmaps.v1",
            "get/*@configmaps.v1",
            "patch/*@configmaps.v1",
        ],
    );
    assert_eq!(told.code, Some(1), "{}", told.stderr);
    assert_told(&told, &front, &hostilities);
    server.assert_clean();
}

/// Everything that is read is more than fits, in all cases at once.
#[test]
fn floods_end_at_the_budget() {
    let (server, hostilities) = (Served::start(&[]), hostilities::floods());
    let front = Front::start(&server.url, hostilities.clone(), is_list);
    let only = ["--only", "list/*@configmaps.v1", "get/*@configmaps.v1"];
    let told = run(&front.url, &[&["--case-timeout", "2s"], &only[..]].concat());
    // Longer than is read is not wrong by that alone.
    assert!(told.report["summary"]["error"].as_u64() > Some(0), "{}", told.report["summary"]);
    assert_told(&told, &front, &hostilities);
}

#[test]
fn watches_of_every_harmful_kind_fail_cases_and_no_more() {
    let (server, hostilities) = (Served::start(&[]), hostilities::watches());
    let front = Front::start(&server.url, hostilities.clone(), |line| {
        line.contains("/configmaps?") && line.contains("watch=true")
    });
    let told = run(&front.url, &["--case-timeout", "2s", "--only", "watch/*@configmaps.v1"]);
    assert_eq!(told.code, Some(1), "{}", told.stderr);
    assert_told(&told, &front, &hostilities);
    server.assert_clean();
}

#[rstest]
#[case::websocket(hostilities::websocket(), "exec/*@websocket/v5.channel.k8s.io")]
#[case::spdy(hostilities::spdy(), "exec/*@spdy/v4.channel.k8s.io")]
fn streams_of_every_harmful_kind_fail_cases_and_no_more(
    #[case] hostilities: Vec<Hostility>,
    #[case] only: &str,
) {
    let server = Served::start(&[]);
    let front = Front::start(&server.url, hostilities.clone(), |line| line.contains("/exec?"));
    let told = run(&front.url, &["--case-timeout", "2s", "--repeat", "2", "--only", only]);
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
