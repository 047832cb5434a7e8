//! `kubeproof coverage`: which requirements have cases.

use std::io::Write;

use kubeproof_cases::coverage::{Counts, compute_in};
use kubeproof_cases::ledger::WithoutKind;

use super::write_json;
use crate::args::{high, low};
use crate::error::Error;
use crate::exit_code::Exit;
use crate::table;

/// Prints the ledger against the cases.
pub(super) fn coverage(asked: &low::Coverage, out: &mut dyn Write) -> Result<Exit, Error> {
    let catalogue = high::catalogue(&asked.directories)?;
    let coverage = compute_in(&catalogue, asked.edition.map(Into::into));
    if asked.json {
        write_json(out, &coverage)?;
        return Ok(Exit::CONFORMANT);
    }
    let mut rows: Vec<_> =
        coverage.rows.iter().map(|row| cells(&row.section, &row.level.to_string(), &row.counts)).collect();
    rows.push(cells("in all", "", &coverage.total));
    rows.push(cells("that a server can be seen to keep or break", "", &coverage.testable));
    let headings =
        ["SECTION", "LEVEL", "REQUIREMENTS", "WITH CASES", "PLANNED", "CLIENT", "PROCESS", "UNSEEN"];
    table::write(out, headings, &rows)?;
    Ok(Exit::CONFORMANT)
}

fn cells(section: &str, level: &str, counts: &Counts) -> [String; 8] {
    let without = |kind| match counts.without.get(&kind) {
        None => String::new(),
        Some(count) => count.to_string(),
    };
    [
        section.to_owned(),
        level.to_owned(),
        counts.requirements.to_string(),
        counts.with_cases.to_string(),
        without(WithoutKind::Planned),
        without(WithoutKind::Client),
        without(WithoutKind::Process),
        without(WithoutKind::Unseen),
    ]
}
