//! `kubeproof coverage`: shows which requirements have cases.

use std::io::Write;

use kubeproof_cases::requirements::Counts;
use kubeproof_cases::requirements::WithoutKind;

use super::write_json;
use crate::args::high;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::table;

pub(super) fn coverage(options: &high::Coverage, out: &mut dyn Write) -> Result<Exit, Error> {
    let catalogue = options.catalogue.load()?;
    let coverage = catalogue.coverage(options.edition);
    if options.json {
        write_json(out, &coverage)?;
        return Ok(Exit::CONFORMANT);
    }
    let mut rows: Vec<_> = coverage
        .rows
        .iter()
        .map(|row| cells(&row.section, &row.level.to_string(), &row.counts))
        .collect();
    rows.push(cells("all", "", &coverage.total));
    rows.push(cells("testable against a server", "", &coverage.testable));
    let headings = [
        "SECTION",
        "LEVEL",
        "REQUIREMENTS",
        "WITH CASES",
        "PLANNED",
        "CLIENT",
        "PROCESS",
        "UNSEEN",
    ];
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
