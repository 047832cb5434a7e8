//! `kubeproof self-test`: the suite against servers of which it is known whether they are right.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::sync::Arc;
use std::thread::available_parallelism;

use futures_util::{StreamExt as _, stream};
use kubeproof::self_test::cuts::{self, Lack};
use kubeproof::self_test::faults::{self, Breadth, Finding, Row};
use kubeproof::self_test::{SelfTestError, matrix, variations};
use kubeproof_cases::Catalogue;
use kubeproof_reference_server::{Fault, Variation, Variations};

use crate::args::{high, low};
use crate::error::Error;
use crate::exit_code::Exit;

/// Servers at once, for each core, with few cases each: most of the time of a case is waiting.
const SERVERS_PER_CORE: usize = 24;

/// Tests the suite.
pub(super) async fn self_test(asked: &low::SelfTest, out: &mut dyn Write) -> Result<Exit, Error> {
    let catalogue = Arc::new(high::catalogue(&asked.cases.directories)?);
    let takes = |part| asked.parts.is_empty() || asked.parts.contains(&part);
    let mut findings: Vec<String> = Vec::new();
    if takes(low::Part::Faults) {
        findings.extend(against_faults(asked, &catalogue, out).await?.iter().map(ToString::to_string));
    }
    if takes(low::Part::Variations) {
        findings.extend(against_variations(asked, &catalogue, out).await?);
    }
    if takes(low::Part::Cuts) {
        findings.extend(against_cuts(asked, &catalogue, out).await?);
    }
    if findings.is_empty() {
        return Ok(Exit::CONFORMANT);
    }
    writeln!(out, "\n{} findings:", findings.len())?;
    for finding in &findings {
        writeln!(out, "  {finding}")?;
    }
    Ok(Exit::FAILURES)
}

async fn against_faults(
    asked: &low::SelfTest,
    catalogue: &Arc<Catalogue>,
    out: &mut dyn Write,
) -> Result<BTreeSet<Finding>, Error> {
    let chosen: Vec<Fault> =
        if asked.fault.is_empty() { Fault::all().collect() } else { super::serve::named(&asked.fault)? };
    let breadth = if asked.full { Breadth::Full } else { Breadth::Claimed };
    let width = chosen.iter().map(|fault| fault.name().len()).max().unwrap_or_default();
    let mut findings = if asked.fault.is_empty() { matrix::on_paper(catalogue) } else { BTreeSet::new() };
    let cores = available_parallelism().map_or(1, usize::from);
    let at_once = match breadth {
        Breadth::Claimed => SERVERS_PER_CORE * cores,
        // The whole suite keeps a core busy.
        Breadth::Full => cores,
    };
    // In the order of the table, so that two outputs can be compared line by line.
    let mut rows = stream::iter(chosen.clone())
        .map(|fault| {
            on_its_own(
                catalogue,
                move |catalogue| async move { faults::row(&catalogue, fault, breadth).await },
            )
        })
        .buffered(at_once);
    let mut by_case: BTreeMap<String, Vec<&'static str>> = BTreeMap::new();
    while let Some(row) = rows.next().await {
        let row: Row = row?;
        let caught: Vec<&str> = row.caught_by().collect();
        writeln!(out, "{:width$}  {}", row.fault.name(), caught.join(" "))?;
        out.flush()?;
        for case in caught {
            by_case.entry(case.to_owned()).or_default().push(row.fault.name());
        }
        findings.extend(faults::judge(catalogue, &row));
    }
    if asked.by_case {
        writeln!(out)?;
        let width = by_case.keys().map(String::len).max().unwrap_or_default();
        for (case, faults) in &by_case {
            writeln!(out, "{case:width$}  {}", faults.join(" "))?;
        }
    }
    writeln!(out, "\n{} faults, seen by {} cases", chosen.len(), by_case.len())?;
    Ok(findings)
}

async fn against_variations(
    asked: &low::SelfTest,
    catalogue: &Arc<Catalogue>,
    out: &mut dyn Write,
) -> Result<Vec<String>, Error> {
    let seeds: Vec<u64> =
        if asked.seed.is_empty() { (1..=asked.seeds).collect() } else { asked.seed.clone() };
    let selection = asked.cases.selection();
    let usual = Arc::new(variations::usual_skips(catalogue, &selection).await?);
    let mut runs = stream::iter(&seeds)
        .map(|seed| {
            let (variations, usual, selection) =
                (Variations::from_seed(*seed), usual.clone(), selection.clone());
            on_its_own(catalogue, move |catalogue| async move {
                variations::row(&catalogue, variations, &usual, &selection).await
            })
        })
        .buffered(available_parallelism().map_or(1, usize::from));
    let mut findings = Vec::new();
    while let Some(row) = runs.next().await {
        let row = row?;
        let chosen: Vec<&str> = row.variations.iter().map(Variation::name).collect();
        let seed = row.variations.seed();
        writeln!(
            out,
            "seed {seed:<4} {} results, {} findings: {}",
            row.results,
            row.findings.len(),
            chosen.join(" ")
        )?;
        out.flush()?;
        findings.extend(row.findings.iter().map(|finding| format!("with seed {seed}: {finding}")));
    }
    Ok(findings)
}

async fn against_cuts(
    asked: &low::SelfTest,
    catalogue: &Arc<Catalogue>,
    out: &mut dyn Write,
) -> Result<Vec<String>, Error> {
    let known = |name: &String| {
        Lack::from_name(name).ok_or_else(|| Error::unknown("capability", name, Lack::all().map(Lack::name)))
    };
    let lacks: Vec<Lack> = match asked.cut.as_slice() {
        [] => Lack::all().collect(),
        names => names.iter().map(known).collect::<Result<_, _>>()?,
    };
    let selection = asked.cases.selection();
    let usual = Arc::new(cuts::usual(catalogue, &selection).await?);
    let width = lacks.iter().map(|lack| lack.name().len()).max().unwrap_or_default();
    let mut rows = stream::iter(lacks)
        .map(|lack| {
            let (usual, selection) = (usual.clone(), selection.clone());
            on_its_own(catalogue, move |catalogue| async move {
                cuts::row(&catalogue, lack, &usual, &selection).await
            })
        })
        .buffered(available_parallelism().map_or(1, usize::from));
    let mut findings = Vec::new();
    while let Some(row) = rows.next().await {
        let cuts::Row { lack, ran, skipped, findings: found } = row?;
        writeln!(
            out,
            "without {:width$}  {ran} results, {skipped} skips, {} findings",
            lack.name(),
            found.len()
        )?;
        out.flush()?;
        findings.extend(found.iter().map(|finding| format!("without {lack}: {finding}")));
    }
    Ok(findings)
}

/// Does work on a task of its own, so that all cores share it.
async fn on_its_own<T, W>(
    catalogue: &Arc<Catalogue>,
    work: impl FnOnce(Arc<Catalogue>) -> W,
) -> Result<T, Error>
where
    T: Send + 'static,
    W: Future<Output = Result<T, SelfTestError>> + Send + 'static,
{
    let done = tokio::spawn(work(Arc::clone(catalogue))).await;
    Ok(done.map_err(|error| Error::Died(error.to_string()))??)
}
