//! Servers that are right in unusual ways get no failure, and servers that do without a SHOULD get
//! warnings only.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kubeproof::self_test::{Bundled, LONG_HISTORY};
use kubeproof_cases::Catalogue;
use kubeproof_harness::event::{CaseResult, Verdict};
use kubeproof_harness::plan::{RunOptions, Selection};
use kubeproof_reference_server::{
    Capability, Config, DisabledCapabilities, Fault, Faults, Variation, Variations,
};
use rstest::rstest;

/// Time limit of a case.
const CASE_TIMEOUT: Duration = Duration::from_secs(30);

/// Each variation permits a behaviour that some cases once failed.
#[rstest]
#[case::watch_without_newlines(Variation::EventsConcatenated, &["watch/*"])]
#[case::status_without_details(Variation::DetailsOmitted, &["*"])]
#[case::groups_without_version(Variation::ApiVersionOmitted, &["discovery/*"])]
#[case::options_in_text(Variation::OptionsAsText, &["errors/*"])]
#[case::labels_of_admission(Variation::MetadataAtAdmission, &["defaulting/*", "selectors/*"])]
#[tokio::test]
async fn variations_pass(#[case] variation: Variation, #[case] only: &[&str]) {
    let variations = Variations::none().with(variation);
    let results = run(Config { variations, ..config() }, only).await;
    assert_eq!(failures(&results), BTreeSet::new());
}

/// A server may ignore limits, also one that holds too few objects for the probe before the run.
#[tokio::test]
async fn pages_are_probed_with_objects_of_the_run() {
    let disabled_capabilities: DisabledCapabilities =
        [Capability::Paging, Capability::Namespaces].into_iter().collect();
    let config = Config { disabled_capabilities, ..config() };
    let results = run(config, &["list/*@configmaps.v1"]).await;
    assert_eq!(failures(&results), BTreeSet::new());
    let pages = results.iter().find(|result| result.id == "list/pages-cover-everything").unwrap();
    assert!(pages.reason.starts_with("the server ignores limits"), "{}", pages.reason);
    let others = results.iter().filter(|result| result.verdict == Verdict::Pass).count();
    assert!(others > 5, "{others} cases pass");
}

/// A server without compaction returns any version.
#[tokio::test]
async fn all_versions_may_be_kept() {
    let results = run(config(), &["list/expired-version-is-gone", "watch/*version*"]).await;
    assert_eq!(failures(&results), BTreeSet::new());
}

/// The faults, separated by spaces, break a SHOULD or a MAY. They cause warnings, and no failure in
/// any of the cases that list one of them.
#[rstest]
#[case::no_limit_of_bodies("body-limit-missing")]
#[case::any_accept("accept-ignored")]
#[case::any_content_type("content-type-ignored")]
#[case::no_preconditions("uid-precondition-ignored version-precondition-ignored")]
#[case::no_version_precondition("version-precondition-ignored")]
#[case::no_orphans("orphan-dependents-ignored")]
#[case::both_policies("orphan-dependents-beside-policy")]
#[case::no_details("status-without-details")]
#[case::other_watch_values("watch-true-only")]
#[case::watches_in_binary_frames("watch-in-binary-frames")]
#[tokio::test]
async fn a_missing_should_is_a_warning(#[case] names: &str) {
    let catalogue = catalogue();
    let is_one = |fault: &String| names.split(' ').any(|name| name == fault);
    let cases = catalogue.cases.iter().filter(|case| case.catches.iter().any(is_one));
    let only: Vec<&str> = cases.map(|case| case.id.as_str()).collect();
    let faults = names.split(' ').map(|name| Fault::from_name(name).expect("a fault"));
    let faults = faults.fold(Faults::none(), Faults::with);
    let results = run(Config { faults, ..config() }, &only).await;
    assert_eq!(failures(&results), BTreeSet::new());
    assert!(results.iter().any(|result| result.verdict == Verdict::Warn), "no case warns");
}

/// Roles accept each name that is one path segment, and cluster roles are in no namespace. Objects
/// with unusual names are removed, too.
#[rstest]
#[case::namespaced("roles.v1.rbac.authorization.k8s.io")]
#[case::cluster("clusterroles.v1.rbac.authorization.k8s.io")]
#[tokio::test]
async fn subjects_of_the_user_pass(#[case] subject: &str) {
    let only = ["create", "discovery", "errors", "generate-name"];
    let only: Vec<String> = only.iter().map(|area| format!("{area}/*@{subject}")).collect();
    let options = RunOptions {
        subjects: vec![subject.parse().expect("a subject")],
        ..options(&only.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let results = run_with(config(), &options).await;
    assert_eq!(failures(&results), BTreeSet::new());
    let names = results.iter().find(|one| one.id == "create/invalid-names-rejected").unwrap();
    assert_eq!(names.verdict, Verdict::Deviation);
}

/// One case judges that a watch is a stream. The others are blocked, or name the list.
#[tokio::test]
async fn a_list_in_response_to_a_watch_is_one_failure() {
    let faults = Faults::none().with(Fault::WatchReturnsList);
    let results = run(Config { faults, ..config() }, &["watch/*@configmaps.v1"]).await;
    let failed = results.iter().filter(|result| result.verdict == Verdict::Fail);
    let failed: Vec<(&str, &str)> =
        failed.map(|result| (result.id.as_str(), result.reason.as_str())).collect();
    let [(owner, reason)] = failed.as_slice() else { panic!("{failed:?}") };
    assert_eq!(*owner, "watch/is-a-stream-of-events");
    assert!(reason.contains("returned a list (ConfigMapList)"), "{reason}");
}

fn config() -> Config {
    Config { history: LONG_HISTORY, ..Config::default() }
}

fn catalogue() -> Catalogue {
    Catalogue::embedded().unwrap_or_else(|errors| panic!("{errors}"))
}

async fn run(config: Config, only: &[&str]) -> Vec<Arc<CaseResult>> {
    run_with(config, &options(only)).await
}

fn options(only: &[&str]) -> RunOptions {
    let only = only.iter().map(|pattern| pattern.parse().expect("a pattern")).collect();
    let selection = Selection { only, ..Selection::default() };
    RunOptions { selection, case_timeout: CASE_TIMEOUT, ..RunOptions::default() }
}

async fn run_with(config: Config, options: &RunOptions) -> Vec<Arc<CaseResult>> {
    let server = Bundled::start(config).await.expect("a server");
    let results = server.run(&catalogue(), options).await.expect("a run");
    server.stop().await;
    results
}

fn failures(results: &[Arc<CaseResult>]) -> BTreeSet<String> {
    assert!(!results.is_empty(), "nothing ran");
    let failed =
        |result: &&Arc<CaseResult>| matches!(result.verdict, Verdict::Fail | Verdict::Error);
    results.iter().filter(failed).map(|one| format!("{}: {}", one.id, one.reason)).collect()
}
