//! The bundled server under every edition: nothing fails, and by the letter exactly what the list says.
//!
//! `goldens/letter.txt` names each check that the letter of an edition fails and deployed servers break all the same;
//! `KUBEPROOF_BLESS=1` writes it anew. Each line has its reason in the `deviation` of the case.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context as _;
use kubeproof::self_test::{Bundled, MINDFUL, PATIENCE, explain};
use kubeproof_cases::Catalogue;
use kubeproof_cases::case::Edition;
use kubeproof_harness::event::Verdict;
use kubeproof_harness::run::RunOptions;
use kubeproof_harness::selection::{Pattern, Selection};
use kubeproof_reference_server::Config;

/// What does not pass under an edition: for each check the worst verdict, by case and check.
type Marks = BTreeMap<(String, String), Verdict>;

async fn marks(
    catalogue: &Catalogue,
    edition: Edition,
    letter: bool,
    only: Vec<Pattern>,
) -> anyhow::Result<Marks> {
    let server = Bundled::start(Config { history: MINDFUL, ..Config::default() }).await?;
    let selection = Selection { only, ..Selection::default() };
    let options = RunOptions { edition, letter, selection, case_timeout: PATIENCE, ..RunOptions::default() };
    let results = server.run(catalogue, &options).await?;
    server.stop().await;
    let failed = if letter { Verdict::Error } else { Verdict::Warn };
    let mut marks = Marks::new();
    for result in results {
        let explained = explain(&result);
        anyhow::ensure!(
            result.verdict < failed,
            "{} @ {} under {edition}: {explained}",
            result.id,
            result.subject
        );
        for check in result.checks.iter().filter(|check| check.verdict > Verdict::Pass) {
            let worst = marks.entry((result.id.clone(), check.id.clone())).or_insert(check.verdict);
            *worst = check.verdict.max(*worst);
        }
    }
    Ok(marks)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_letter_fails_what_the_list_says() -> anyhow::Result<()> {
    let catalogue = Catalogue::embedded().map_err(|diagnostics| anyhow::anyhow!("{diagnostics}"))?;
    let mut found = String::new();
    for edition in Edition::ALL {
        let deviations = marks(&catalogue, edition, false, Vec::new()).await?;
        // What passes without a deviation passes by the letter too.
        let cases = deviations.keys().map(|(case, _)| case.parse()).collect::<Result<_, _>>()?;
        let letter = marks(&catalogue, edition, true, cases).await?;
        assert!(
            deviations.keys().eq(letter.keys()),
            "{edition}: {deviations:?} are, by the letter, {letter:?}"
        );
        for ((case, check), verdict) in letter {
            let verdict = if verdict == Verdict::Fail { "fail" } else { "warn" };
            writeln!(found, "{edition} {case} {check}: {verdict}")?;
        }
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens/letter.txt");
    if std::env::var_os("KUBEPROOF_BLESS").is_some_and(|value| value == "1") {
        std::fs::write(&file, &found)?;
    }
    let golden = std::fs::read_to_string(&file).context("no golden; KUBEPROOF_BLESS=1 writes it")?;
    assert_eq!(found, golden, "KUBEPROOF_BLESS=1 writes the list anew");
    Ok(())
}

/// People look a deviation up there.
#[test]
fn every_case_with_a_deviation_stands_in_the_docs() -> anyhow::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cases");
    let docs = std::fs::read_to_string(root.join("EDITIONS.md"))?;
    let catalogue = Catalogue::embedded().map_err(|diagnostics| anyhow::anyhow!("{diagnostics}"))?;
    for case in &catalogue.cases {
        let file = std::fs::read_to_string(root.join("data").join(format!("{}.yaml", case.id)))?;
        let deviates = file.lines().any(|line| line.trim() == "deviation:");
        anyhow::ensure!(
            !deviates || docs.contains(&case.id),
            "{} has a deviation, and no line in cases/EDITIONS.md",
            case.id
        );
    }
    Ok(())
}
