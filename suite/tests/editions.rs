//! The bundled server under every edition: nothing fails, and `--letter` fails exactly the listed
//! checks.
//!
//! `goldens/letter.txt` lists the checks of each edition that deployed servers do not pass.
//! `KUBEPROOF_BLESS=1` rewrites it. The `deviation` of the case gives the reason of each line.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context as _;
use kubeproof::self_test::{Bundled, CASE_TIMEOUT, LONG_HISTORY, explain};
use kubeproof_cases::Catalogue;
use kubeproof_cases::case::Edition;
use kubeproof_harness::event::Verdict;
use kubeproof_harness::plan::{Pattern, RunOptions, Selection};
use kubeproof_reference_server::Config;

/// The worst verdicts of the checks that do not pass, by case and check.
type Verdicts = BTreeMap<(String, String), Verdict>;

async fn verdicts(
    catalogue: &Catalogue,
    edition: Edition,
    letter: bool,
    only: Vec<Pattern>,
) -> anyhow::Result<Verdicts> {
    let server = Bundled::start(Config { history: LONG_HISTORY, ..Config::default() }).await?;
    let selection = Selection { only, ..Selection::default() };
    let options = RunOptions {
        edition,
        letter,
        selection,
        case_timeout: CASE_TIMEOUT,
        ..RunOptions::default()
    };
    let results = server.run(catalogue, &options).await?;
    server.stop().await;
    let failed = if letter { Verdict::Error } else { Verdict::Warn };
    let mut verdicts = Verdicts::new();
    for result in results {
        let explained = explain(&result);
        anyhow::ensure!(
            result.verdict < failed,
            "{} @ {} under {edition}: {explained}",
            result.id,
            result.subject
        );
        for check in result.checks.iter().filter(|check| check.verdict > Verdict::Pass) {
            let worst =
                verdicts.entry((result.id.clone(), check.id.clone())).or_insert(check.verdict);
            *worst = check.verdict.max(*worst);
        }
    }
    Ok(verdicts)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_strict_text_fails_the_listed_checks() -> anyhow::Result<()> {
    let catalogue =
        Catalogue::embedded().map_err(|diagnostics| anyhow::anyhow!("{diagnostics}"))?;
    let mut found = String::new();
    for edition in Edition::ALL {
        let deviations = verdicts(&catalogue, edition, false, Vec::new()).await?;
        // Cases without a deviation have the same verdicts with --letter.
        let cases = deviations.keys().map(|(case, _)| case.parse()).collect::<Result<_, _>>()?;
        let letter = verdicts(&catalogue, edition, true, cases).await?;
        assert!(
            deviations.keys().eq(letter.keys()),
            "{edition}: {deviations:?}, but with --letter {letter:?}"
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
    let golden =
        std::fs::read_to_string(&file).context("no golden; KUBEPROOF_BLESS=1 writes it")?;
    assert_eq!(found, golden, "KUBEPROOF_BLESS=1 rewrites the list");
    Ok(())
}

/// Users look deviations up in this document.
#[test]
fn every_deviation_is_documented() -> anyhow::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let docs = std::fs::read_to_string(root.join("docs/verdicts-and-editions.md"))?;
    let catalogue =
        Catalogue::embedded().map_err(|diagnostics| anyhow::anyhow!("{diagnostics}"))?;
    for case in &catalogue.cases {
        let file = root.join("cases/data").join(format!("{}.yaml", case.id));
        let file = std::fs::read_to_string(file)?;
        let deviates = file.lines().any(|line| line.trim() == "deviation:");
        anyhow::ensure!(
            !deviates || docs.contains(&case.id),
            "{} has a deviation; expected an entry in docs/verdicts-and-editions.md",
            case.id
        );
    }
    Ok(())
}
