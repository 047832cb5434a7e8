//! `kubeproof explore` finds the faults of its list, and nothing on servers that vary as the
//! conventions permit.

use std::sync::Arc;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use kubeproof::self_test::explore::{FAULTS, row, variation};
use kubeproof_cases::Catalogue;
use kubeproof_reference_server::{Fault, Variations};
use rstest::rstest;

/// Concurrent servers.
const AT_ONCE: usize = 4;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn explore_finds_the_faults_of_its_list() {
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
}

/// Prints what an exploration finds on each faulty server, to keep the list complete.
#[expect(clippy::print_stderr, reason = "developers read its output")]
#[ignore = "takes minutes; run it after changes to faults or properties"]
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sweep() {
    let catalogue = Catalogue::embedded().expect("the embedded catalogue");
    let rows = stream::iter(Fault::all()).map(|fault| {
        let catalogue = &catalogue;
        async move {
            let start = std::time::Instant::now();
            let found = match row(catalogue, fault).await {
                Ok(Some(failure)) => {
                    format!("{}: {}", failure.violation.property.name(), failure.violation.message)
                }
                Ok(None) => "-".to_owned(),
                Err(error) => format!("- {error}"),
            };
            format!("{:?} {} {found}", start.elapsed(), fault.name())
        }
    });
    let mut rows = rows.buffered(AT_ONCE);
    while let Some(row) = rows.next().await {
        eprintln!("{row}");
    }
}

#[rstest]
#[case(1)]
#[case(2)]
#[case(3)]
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn explore_accepts_permitted_variations(#[case] seed: u64) {
    let catalogue = Catalogue::embedded().expect("the embedded catalogue");
    let found = variation(&catalogue, Variations::from_seed(seed), 1_000).await.expect("a run");
    let message = found.map(|failure| failure.violation.message);
    assert_eq!(message, None);
}
