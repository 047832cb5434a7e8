//! What a case sends and gets: from the bundled server as it is, and as it is with a fault that the case catches.
//!
//! Both are made on the spot, so no example is older than the case and the server.

use std::io::Write;
use std::sync::Arc;

use kubeproof_cases::Catalogue;
use kubeproof_cases::case::Case;
use kubeproof_harness::event::{CaseResult, CheckResult, NamedExchange, Verdict};
use kubeproof_harness::exchange::{Exchange, Outcome};
use kubeproof_harness::plan::plan;
use kubeproof_harness::run::{self, RunOptions};
use kubeproof_harness::selection::Selection;
use kubeproof_harness::transport::{Client, Limits};
use kubeproof_reference_server::{Fault, Faults};

use crate::commands::run::target::Opened;
use crate::error::Error;

/// How many exchanges a person will read.
const SHOWN: usize = 4;

/// Characters of a body, of which the rest is cut.
const BODY: usize = 600;

/// Writes one result that is as it should be, and one that is not.
pub(super) async fn write(case: &Case, catalogue: &Catalogue, out: &mut dyn Write) -> Result<(), Error> {
    let good = results(case, catalogue, Faults::none()).await?;
    match good.iter().find(|result| matches!(result.verdict, Verdict::Pass | Verdict::Deviation)) {
        Some(result) => as_it_should_be(result, out)?,
        None => writeln!(out, "\nNo example: the bundled server does not run this case")?,
    }
    for fault in case.catches.iter().filter_map(|name| Fault::from_name(name)) {
        let bad = results(case, catalogue, Faults::none().with(fault)).await?;
        let broken = |result: &&Arc<CaseResult>| matches!(result.verdict, Verdict::Warn | Verdict::Fail);
        if let Some(result) = bad.iter().find(broken) {
            return broken_by(fault, result, out);
        }
    }
    Ok(())
}

/// Judged by the newest edition that knows the case.
async fn results(case: &Case, catalogue: &Catalogue, faults: Faults) -> Result<Vec<Arc<CaseResult>>, Error> {
    let Some(edition) = case.editions.iter().copied().max() else { return Ok(Vec::new()) };
    let server = Opened::bundled(faults).await?;
    let client = Client::new(&server.config, Limits::default())?;
    let selection = Selection { only: vec![case.id.parse()?], ..Selection::default() };
    let options = RunOptions { selection, edition, seed: 1, ..RunOptions::default() };
    let plan = plan(catalogue, &client, &options).await?;
    let mut results = run::results(plan, client, &options).await;
    drop(server);
    results.sort_by(|a, b| a.subject.cmp(&b.subject));
    Ok(results)
}

fn as_it_should_be(result: &CaseResult, out: &mut dyn Write) -> Result<(), Error> {
    let judged = |named: &&NamedExchange| result.checks.iter().any(|check| check.step == named.step);
    let judged: Vec<_> = result.exchanges.iter().filter(judged).collect();
    if judged.is_empty() {
        return Ok(());
    }
    let on = if result.subject.is_empty() { String::new() } else { format!(" on {}", result.subject) };
    writeln!(out, "\nExample, as it should be{on}:")?;
    judged.iter().take(SHOWN).try_for_each(|named| exchange(&named.exchange, out))?;
    if judged.len() > SHOWN {
        writeln!(out, "  and {} more", judged.len() - SHOWN)?;
    }
    Ok(())
}

fn broken_by(fault: Fault, result: &CaseResult, out: &mut dyn Write) -> Result<(), Error> {
    writeln!(out, "\nExample, broken by {} ({}):", fault.name(), fault.summary().trim_end_matches('.'))?;
    let worst = |check: &&CheckResult| check.verdict == result.verdict;
    let Some(check) = result.checks.iter().find(worst) else { return Ok(()) };
    if let Some(named) = result.exchanges.iter().find(|named| named.step == check.step) {
        exchange(&named.exchange, out)?;
    }
    for line in check.message.lines() {
        writeln!(out, "  {}: {}: {}", super::words::plain(&check.verdict), check.id, cut(line))?;
    }
    Ok(())
}

fn exchange(exchange: &Exchange, out: &mut dyn Write) -> Result<(), Error> {
    let request = &exchange.request;
    writeln!(out, "  {} {}", request.method, request.target)?;
    for (name, value) in request.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("content-type"))
    {
        writeln!(out, "    {name}: {value}")?;
    }
    body(&request.body, out)?;
    match &exchange.outcome {
        Outcome::Answered(received) => {
            writeln!(out, "  -> {}", received.status)?;
            body(&received.body, out)?;
            for event in received.events.iter().take(SHOWN) {
                writeln!(out, "    {} {}", event.kind, cut(&event.object.to_string()))?;
            }
        }
        Outcome::Broken(broken) => writeln!(out, "  -> {}", broken.message)?,
    }
    Ok(())
}

fn body(bytes: &[u8], out: &mut dyn Write) -> Result<(), Error> {
    if bytes.is_empty() {
        return Ok(());
    }
    Ok(writeln!(out, "    {}", cut(String::from_utf8_lossy(bytes).trim_end()))?)
}

/// The beginning of a text, on one line.
fn cut(text: &str) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(BODY) {
        Some((end, _)) => format!("{} ..", &line[..end]),
        None => line,
    }
}
