//! Example exchanges of a case: one from the bundled server, and one from the bundled server with a
//! fault that the case catches.
//!
//! Both come from runs of the case, so an example is never out of date.

use std::io::Write;
use std::sync::Arc;

use kubeproof_cases::Catalogue;
use kubeproof_cases::case::Case;
use kubeproof_harness::event::{CaseResult, CheckResult, Verdict};
use kubeproof_harness::exchange::{Exchange, Outcome};
use kubeproof_harness::plan::{RunOptions, Selection, plan};
use kubeproof_harness::run;
use kubeproof_harness::transport::{Client, Limits};
use kubeproof_reference_server::{Fault, Faults};
use serde_json::Value;

use super::body::{self, Bodies, shorten};
use super::choice::{Focus, judged};
use crate::commands::run::target::RunTarget;
use crate::error::Error;

/// Maximum exchanges of an example.
const SHOWN: usize = 4;

/// Prints a passing result and a failing result.
pub(super) async fn write(
    case: &Case,
    focus: Option<&Focus<'_>>,
    catalogue: &Catalogue,
    out: &mut dyn Write,
) -> Result<(), Error> {
    write_correct(case, focus, catalogue, out).await?;
    let mut faults: Vec<&String> = case.catches.iter().collect();
    if let Some(focus) = focus {
        focus.order_faults(&mut faults, catalogue);
    }
    for fault in faults.into_iter().filter_map(|name| Fault::from_name(name)) {
        let broken_results = results(case, catalogue, Faults::none().with(fault)).await?;
        let broken =
            |result: &&Arc<CaseResult>| matches!(result.verdict, Verdict::Warn | Verdict::Fail);
        if let Some(result) = broken_results.iter().find(broken) {
            return print_failing(case, fault, (result, focus), out);
        }
    }
    Ok(())
}

/// Prints a passing result.
pub(in crate::commands) async fn write_correct(
    case: &Case,
    focus: Option<&Focus<'_>>,
    catalogue: &Catalogue,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let correct = results(case, catalogue, Faults::none()).await?;
    match correct.iter().find(|result| matches!(result.verdict, Verdict::Pass | Verdict::Deviation))
    {
        Some(result) => print_passing(case, (result, focus), out),
        None => Ok(writeln!(out, "\nNo example: the bundled server does not run this case")?),
    }
}

/// Runs the case under the newest edition that judges it.
async fn results(
    case: &Case,
    catalogue: &Catalogue,
    faults: Faults,
) -> Result<Vec<Arc<CaseResult>>, Error> {
    let Some(edition) = case.editions.iter().copied().max() else { return Ok(Vec::new()) };
    let server = RunTarget::bundled(faults).await?;
    let client = Client::new(&server.config, Limits::default())?;
    let selection = Selection { only: vec![case.id.parse()?], ..Selection::default() };
    let options = RunOptions { selection, edition, seed: 1, ..RunOptions::default() };
    let plan = plan(catalogue, &client, &options).await?;
    let mut results = run::results(plan, client, &options).await;
    drop(server);
    results.sort_by(|a, b| a.subject.cmp(&b.subject));
    Ok(results)
}

fn print_passing(
    case: &Case,
    (result, focus): (&CaseResult, Option<&Focus<'_>>),
    out: &mut dyn Write,
) -> Result<(), Error> {
    if result.exchanges.is_empty() {
        return Ok(());
    }
    let on =
        if result.subject.is_empty() { String::new() } else { format!(" on {}", result.subject) };
    writeln!(out, "\nExample of a correct server{on}:")?;
    write_exchanges(case, result, focus, out)
}

/// Prints the first exchanges that checks of the result judge.
pub(in crate::commands) fn write_exchanges(
    case: &Case,
    result: &CaseResult,
    focus: Option<&Focus<'_>>,
    out: &mut dyn Write,
) -> Result<(), Error> {
    // Checks over several exchanges have a step of their own. All exchanges show what they judge.
    let mut exchanges = judged(result, focus);
    if exchanges.is_empty() {
        exchanges.extend(&result.exchanges);
    }
    let bodies = Bodies::of(case);
    for named in exchanges.iter().take(SHOWN) {
        print_exchange(&named.exchange, bodies, out)?;
    }
    if exchanges.len() > SHOWN {
        writeln!(out, "  and {} more", exchanges.len() - SHOWN)?;
    }
    Ok(())
}

fn print_failing(
    case: &Case,
    fault: Fault,
    (result, focus): (&CaseResult, Option<&Focus<'_>>),
    out: &mut dyn Write,
) -> Result<(), Error> {
    writeln!(
        out,
        "\nExample with the fault {} ({}):",
        fault.name(),
        fault.summary().trim_end_matches('.')
    )?;
    let worst = |check: &&CheckResult| check.verdict == result.verdict;
    let mut worst = result.checks.iter().filter(worst).peekable();
    let first = worst.peek().copied();
    let focused = worst.find(|check| focus.is_some_and(|focus| focus.includes(check)));
    let Some(check) = focused.or(first) else { return Ok(()) };
    if let Some(named) = result.exchanges.iter().find(|named| named.step == check.step) {
        print_exchange(&named.exchange, Bodies::of(case), out)?;
    }
    for line in check.message.lines() {
        writeln!(
            out,
            "  {}: {}: {}",
            super::describe::serialized_name(&check.verdict),
            check.id,
            shorten(line)
        )?;
    }
    Ok(())
}

fn print_exchange(exchange: &Exchange, bodies: Bodies, out: &mut dyn Write) -> Result<(), Error> {
    let request = &exchange.request;
    writeln!(out, "  {} {}", request.method, request.target)?;
    for (name, value) in
        request.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("content-type"))
    {
        writeln!(out, "    {name}: {value}")?;
    }
    print_body(&body::request(&request.body), out)?;
    match &exchange.outcome {
        Outcome::Response(received) => {
            writeln!(out, "  -> {}", received.status)?;
            print_body(&bodies.response(&received.body), out)?;
            for event in received.events.iter().take(SHOWN) {
                let object = bodies.object(Value::clone(&event.object));
                writeln!(out, "    {} {object}", event.kind)?;
            }
        }
        Outcome::Broken(broken) => writeln!(out, "  -> {}", broken.message)?,
    }
    Ok(())
}

fn print_body(body: &str, out: &mut dyn Write) -> Result<(), Error> {
    if body.is_empty() {
        return Ok(());
    }
    Ok(writeln!(out, "    {body}")?)
}
