//! `kubeproof self-test`: tests the suite itself against servers whose verdict is known.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::pin::Pin;
use std::sync::Arc;
use std::thread::available_parallelism;

use futures_util::{FutureExt as _, Stream, StreamExt as _, stream};
use kubeproof::self_test::capabilities::{self, MissingCapability};
use kubeproof::self_test::degraded::{self, Degraded};
use kubeproof::self_test::faults::{self, Breadth, Finding};
use kubeproof::self_test::modes::{self, Mode};
use kubeproof::self_test::{SelfTestError, explore, matrix, stress, variations};
use kubeproof_cases::{Catalogue, plural};
use kubeproof_harness::plan::Selection;
use kubeproof_reference_server::{Fault, Variation, Variations};

use crate::args::high::{FaultOptions, SelfTest};
use crate::error::Error;
use crate::exit_code::Exit;

/// Concurrent servers per core if each gets a few cases, which mostly wait.
const SERVERS_PER_CORE: usize = 24;

/// Concurrent degraded servers per core. Their cases wait for what a defect prevents.
const DEGRADED_PER_CORE: usize = 2;

pub(super) async fn self_test(test: SelfTest, out: &mut dyn Write) -> Result<Exit, Error> {
    let catalogue = Arc::new(test.catalogue.load()?);
    if test.matrix {
        write!(out, "{}", matrix::render(&catalogue))?;
        return Ok(Exit::CONFORMANT);
    }
    let mut findings: Vec<String> = Vec::new();
    if let Some(options) = test.faults {
        let found = test_faults(options, &catalogue, out).await?;
        findings.extend(found.iter().map(ToString::to_string));
    }
    if !test.seeds.is_empty() {
        findings.extend(test_variations(&test.seeds, &test.selection, &catalogue, out).await?);
    }
    if !test.capabilities.is_empty() {
        let missing = test.capabilities;
        findings.extend(test_capabilities(missing, &test.selection, &catalogue, out).await?);
    }
    if !test.modes.is_empty() {
        findings.extend(test_modes(test.modes, &test.selection, &catalogue, out).await?);
    }
    if !test.degraded.is_empty() {
        findings.extend(test_degraded(test.degraded, &test.selection, &catalogue, out).await?);
    }
    if !test.stress.is_empty() {
        let row = |catalogue: Arc<Catalogue>, fault| async move {
            let failure = stress::row(&catalogue, fault).await?;
            Ok(failure.and_then(|failure| Some(failure.violations.first()?.rule.name())))
        };
        findings.extend(test_generated("stress", test.stress, row, (&catalogue, out)).await?);
    }
    if !test.explore.is_empty() {
        let row = |catalogue: Arc<Catalogue>, fault| async move {
            let failure = explore::row(&catalogue, fault).await?;
            Ok(failure.map(|failure| failure.violation.property.name()))
        };
        findings.extend(test_generated("explore", test.explore, row, (&catalogue, out)).await?);
    }
    if findings.is_empty() {
        return Ok(Exit::CONFORMANT);
    }
    writeln!(out, "\n{}:", plural(findings.len(), "finding"))?;
    for finding in &findings {
        writeln!(out, "  {finding}")?;
    }
    Ok(Exit::FAILURES)
}

async fn test_faults(
    options: FaultOptions,
    catalogue: &Arc<Catalogue>,
    out: &mut dyn Write,
) -> Result<BTreeSet<Finding>, Error> {
    let FaultOptions { faults, are_all, breadth, by_case } = options;
    let count = faults.len();
    let width = faults.iter().map(|fault| fault.name().len()).max().unwrap_or_default();
    let mut findings = if are_all { matrix::check(catalogue) } else { BTreeSet::new() };
    let concurrent = match breadth {
        Breadth::Claimed => SERVERS_PER_CORE * cores(),
        // All cases together keep a core busy.
        Breadth::Full => cores(),
    };
    // Rows are printed in the order of the faults, so that two outputs can be compared.
    let rows = faults.into_iter().map(|fault| {
        spawn(
            catalogue,
            move |catalogue| async move { faults::row(&catalogue, fault, breadth).await },
        )
    });
    let mut rows = in_order(rows, concurrent);
    let mut catches: BTreeMap<String, Vec<&'static str>> = BTreeMap::new();
    while let Some(row) = rows.next().await {
        let row = row?;
        let caught_by: Vec<&str> = row.caught_by().collect();
        writeln!(out, "{:width$}  {}", row.fault.name(), caught_by.join(" "))?;
        out.flush()?;
        for case in caught_by {
            catches.entry(case.to_owned()).or_default().push(row.fault.name());
        }
        findings.extend(faults::judge(catalogue, &row));
    }
    if by_case {
        print_by_case(&catches, out)?;
    }
    let (faults, cases) = (plural(count, "fault"), plural(catches.len(), "case"));
    writeln!(out, "\n{faults}, caught by {cases}")?;
    Ok(findings)
}

fn print_by_case(
    catches: &BTreeMap<String, Vec<&'static str>>,
    out: &mut dyn Write,
) -> Result<(), Error> {
    writeln!(out)?;
    let width = catches.keys().map(String::len).max().unwrap_or_default();
    for (case, faults) in catches {
        writeln!(out, "{case:width$}  {}", faults.join(" "))?;
    }
    Ok(())
}

async fn test_variations(
    seeds: &[u64],
    selection: &Selection,
    catalogue: &Arc<Catalogue>,
    out: &mut dyn Write,
) -> Result<Vec<String>, Error> {
    let baseline = Arc::new(variations::baseline_skips(catalogue, selection).await?);
    let rows = seeds.iter().map(|seed| {
        let variations = Variations::from_seed(*seed);
        let (baseline, selection) = (Arc::clone(&baseline), selection.clone());
        spawn(catalogue, move |catalogue| async move {
            variations::row(&catalogue, variations, &baseline, &selection).await
        })
    });
    let mut rows = in_order(rows, cores());
    let mut findings = Vec::new();
    while let Some(row) = rows.next().await {
        let row = row?;
        let (results, found) =
            (plural(row.results, "result"), plural(row.findings.len(), "finding"));
        let seed = row.variations.seed();
        let names: Vec<&str> = row.variations.iter().map(Variation::name).collect();
        let names = names.join(" ");
        writeln!(out, "seed {seed:<4} {results}, {found}: {names}")?;
        out.flush()?;
        findings.extend(row.findings.iter().map(|finding| format!("with seed {seed}: {finding}")));
    }
    Ok(findings)
}

async fn test_capabilities(
    missing: Vec<MissingCapability>,
    selection: &Selection,
    catalogue: &Arc<Catalogue>,
    out: &mut dyn Write,
) -> Result<Vec<String>, Error> {
    let baseline = Arc::new(capabilities::baseline(catalogue, selection).await?);
    let width = missing.iter().map(|missing| missing.name().len()).max().unwrap_or_default();
    let rows = missing.into_iter().map(|missing| {
        let (baseline, selection) = (Arc::clone(&baseline), selection.clone());
        spawn(catalogue, move |catalogue| async move {
            capabilities::row(&catalogue, missing, &baseline, &selection).await
        })
    });
    let mut rows = in_order(rows, cores());
    let mut findings = Vec::new();
    while let Some(row) = rows.next().await {
        let capabilities::Row { capability, ran, skipped, findings: found } = row?;
        let name = capability.name();
        let (results, skips) = (plural(ran, "result"), plural(skipped, "skip"));
        let findings_of_row = plural(found.len(), "finding");
        writeln!(out, "without {name:width$}  {results}, {skips}, {findings_of_row}")?;
        out.flush()?;
        findings.extend(found.iter().map(|finding| format!("without {name}: {finding}")));
    }
    Ok(findings)
}

async fn test_modes(
    modes: Vec<Mode>,
    selection: &Selection,
    catalogue: &Arc<Catalogue>,
    out: &mut dyn Write,
) -> Result<Vec<String>, Error> {
    let rows = modes.into_iter().map(|mode| {
        let selection = selection.clone();
        spawn(
            catalogue,
            move |catalogue| async move { modes::row(&catalogue, mode, &selection).await },
        )
    });
    let mut rows = in_order(rows, cores());
    let mut findings = Vec::new();
    while let Some(row) = rows.next().await {
        let modes::Row { mode, ran, skipped, findings: found } = row?;
        let count = found.len();
        writeln!(out, "mode {mode:17}  {ran} results, {skipped} skips, {count} findings")?;
        out.flush()?;
        findings.extend(found.iter().map(|finding| format!("in mode {mode}: {finding}")));
    }
    Ok(findings)
}

async fn test_degraded(
    servers: Vec<Degraded>,
    selection: &Selection,
    catalogue: &Arc<Catalogue>,
    out: &mut dyn Write,
) -> Result<Vec<String>, Error> {
    let width = servers.iter().map(|one| one.fault.name().len()).max().unwrap_or_default();
    let expected = degraded::expected(catalogue, selection).await?;
    let rows = servers.into_iter().map(|server| {
        let selection = selection.clone();
        spawn(catalogue, move |catalogue| async move {
            degraded::row(&catalogue, server, expected, &selection).await
        })
    });
    let mut rows = in_order(rows, DEGRADED_PER_CORE * cores());
    let mut findings = Vec::new();
    while let Some(row) = rows.next().await {
        let row = row?;
        writeln!(out, "{:width$}  {row}", row.server.fault.name())?;
        out.flush()?;
        findings.extend(row.findings());
    }
    Ok(findings)
}

/// Prints the rule that each fault breaks. `row` tests a server with one fault.
async fn test_generated<W>(
    command: &str,
    faults: Vec<Fault>,
    row: impl Fn(Arc<Catalogue>, Fault) -> W + Copy,
    (catalogue, out): (&Arc<Catalogue>, &mut dyn Write),
) -> Result<Vec<String>, Error>
where
    W: Future<Output = Result<Option<&'static str>, SelfTestError>> + Send + 'static,
{
    let width = faults.iter().map(|fault| fault.name().len()).max().unwrap_or_default();
    let rows = faults.into_iter().map(|fault| async move {
        let broken = spawn(catalogue, move |catalogue| row(catalogue, fault));
        broken.await.map(|broken| (fault.name(), broken))
    });
    let mut rows = in_order(rows, cores());
    let mut findings = Vec::new();
    while let Some(row) = rows.next().await {
        let (name, broken) = row?;
        writeln!(out, "{command} with {name:width$}  {}", broken.unwrap_or("no violation"))?;
        out.flush()?;
        if broken.is_none() {
            findings.push(format!("{command} does not find {name}"));
        }
    }
    Ok(findings)
}

/// Runs tasks concurrently, and returns their results in the order of the tasks. A slow task does
/// not keep later ones from starting.
fn in_order<F: Future>(
    tasks: impl Iterator<Item = F>,
    concurrent: usize,
) -> Pin<Box<impl Stream<Item = F::Output>>> {
    let numbered = tasks.enumerate().map(|(nth, task)| task.map(move |result| (nth, result)));
    let mut waiting = BTreeMap::new();
    let mut next = 0;
    let ordered = move |(nth, result)| {
        waiting.insert(nth, result);
        let mut ready = Vec::new();
        while let Some(result) = waiting.remove(&next) {
            ready.push(result);
            next += 1;
        }
        stream::iter(ready)
    };
    Box::pin(stream::iter(numbered).buffer_unordered(concurrent).flat_map(ordered))
}

fn cores() -> usize {
    available_parallelism().map_or(1, usize::from)
}

/// Runs work on a task of its own, so that all cores share the work.
async fn spawn<T, W>(
    catalogue: &Arc<Catalogue>,
    work: impl FnOnce(Arc<Catalogue>) -> W,
) -> Result<T, Error>
where
    T: Send + 'static,
    W: Future<Output = Result<T, SelfTestError>> + Send + 'static,
{
    let done = tokio::spawn(work(Arc::clone(catalogue))).await;
    Ok(done.map_err(|error| Error::Panicked(error.to_string()))??)
}

#[cfg(test)]
mod tests {
    use futures_util::future::BoxFuture;
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn a_slow_task_keeps_no_other_from_starting() {
        let (send, receive) = oneshot::channel();
        let tasks: [BoxFuture<'_, usize>; 3] = [
            receive.map(|sent| sent.expect("the last task sends")).boxed(),
            async { 1 }.boxed(),
            async move {
                send.send(0).expect("the first task waits");
                2
            }
            .boxed(),
        ];
        let results: Vec<usize> = in_order(tasks.into_iter(), 2).collect().await;
        assert_eq!(results, [0, 1, 2]);
    }
}
