//! `kubeproof stress` finds the faults of its list, and nothing on servers that vary as the
//! conventions permit.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use kubeproof::self_test::stress::{FAULTS, row, subject_alone, variation};
use kubeproof_cases::Catalogue;
use kubeproof_harness::generated::stress::check::Rule;
use kubeproof_reference_server::{Variation, Variations};
use rstest::rstest;

/// Concurrent servers. Most of their time is waiting.
const AT_ONCE: usize = 4;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn stress_finds_the_faults_of_its_list() {
    let catalogue = Arc::new(Catalogue::embedded().expect("the embedded catalogue"));
    let rows = stream::iter(FAULTS).map(|fault| {
        let catalogue = Arc::clone(&catalogue);
        // Each server has a task of its own, which uses any core.
        tokio::spawn(async move { (fault.name(), row(&catalogue, fault).await.expect("a run")) })
    });
    let rows: Vec<_> = rows.buffer_unordered(AT_ONCE).try_collect().await.expect("no panic");
    let missed: Vec<&str> =
        rows.iter().filter(|(_, found)| found.is_none()).map(|(name, _)| *name).collect();
    assert_eq!(missed, [""; 0]);
    let rules = |name: &str| -> Vec<Rule> {
        let (_, found) = rows.iter().find(|(fault, _)| *fault == name).expect("a row");
        let violations = found.iter().flat_map(|failure| &failure.violations);
        violations.map(|violation| violation.rule).collect()
    };
    for (fault, rule) in [
        ("lost-update", Rule::LostUpdate),
        ("get-lags", Rule::StaleRead),
        ("watch-loses-under-load", Rule::LostEvent),
        ("versions-shared", Rule::SharedVersion),
        ("continue-reads-latest", Rule::MixedList),
    ] {
        assert!(rules(fault).contains(&rule), "{fault}: {:?}", rules(fault));
    }
}

#[rstest]
#[case::whole_templates_are_applied("deployments.v1.apps")]
#[case::pods_go_without_grace("pods.v1")]
#[case::put_creates_leases("leases.v1.coordination.k8s.io")]
#[case::services_have_addresses("services.v1")]
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn stress_accepts_correct_servers_of_other_kinds(#[case] subject: &str) {
    let catalogue = Catalogue::embedded().expect("the embedded catalogue");
    let subject = subject.parse().expect("a resource");
    let found = subject_alone(&catalogue, subject, Duration::from_secs(2)).await.expect("a run");
    let violations = found.map(|failure| failure.violations).unwrap_or_default();
    assert!(violations.is_empty(), "{violations:#?}");
}

#[rstest]
#[case::opaque_versions(Variation::OpaqueVersions)]
#[case::short_history(Variation::ShortHistory)]
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn stress_accepts_permitted_variations(#[case] variation_of: Variation) {
    let catalogue = Catalogue::embedded().expect("the embedded catalogue");
    let variations = Variations::none().with(variation_of);
    let found = variation(&catalogue, variations, Duration::from_secs(4)).await.expect("a run");
    let violations = found.map(|failure| failure.violations).unwrap_or_default();
    assert!(violations.is_empty(), "{violations:#?}");
}
