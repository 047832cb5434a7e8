//! Which requirements have cases, and why the others have none.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::case::{Edition, Level};
use crate::catalogue::Catalogue;
use crate::ledger::{Requirement, Testability, WithoutKind};

/// The ledger against the cases.
#[derive(Clone, Debug, Serialize)]
pub struct Coverage {
    /// One row per section and level, in the order of the conventions.
    pub rows: Vec<Row>,
    /// Over all of them.
    pub total: Counts,
    /// Those that a server can keep or break as seen from outside: all but the rules for clients and people.
    pub testable: Counts,
    /// The cases of each requirement that has any.
    pub cases: BTreeMap<String, Vec<String>>,
}

/// What one section asks for at one level.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The heading.
    pub section: String,
    /// The level.
    pub level: Level,
    /// How many there are, and how many have cases.
    #[serde(flatten)]
    pub counts: Counts,
}

/// Requirements, counted.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Counts {
    /// All.
    pub requirements: usize,
    /// Those with a case.
    pub with_cases: usize,
    /// The others, by the kind of reason.
    pub without: BTreeMap<WithoutKind, usize>,
}

/// Compares the ledger with the cases.
pub fn compute(catalogue: &Catalogue) -> Coverage {
    compute_in(catalogue, None)
}

/// Compares what an edition asks for with the cases; `None`: what any edition asks for.
pub fn compute_in(catalogue: &Catalogue, edition: Option<Edition>) -> Coverage {
    let asked = |requirement: &&Requirement| edition.is_none_or(|e| requirement.editions.contains(&e));
    let mut cases: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for case in &catalogue.cases {
        for requirement in &case.requirements {
            cases.entry(requirement.clone()).or_default().push(case.id.clone());
        }
    }
    let mut coverage =
        Coverage { rows: Vec::new(), total: Counts::default(), testable: Counts::default(), cases };
    let mut sections: Vec<&str> = Vec::new();
    for requirement in catalogue.requirements.iter().filter(asked) {
        if !sections.contains(&requirement.section.as_str()) {
            sections.push(&requirement.section);
        }
        let has_case = coverage.cases.contains_key(&requirement.id);
        let why = requirement.without.as_ref().map(|without| without.kind);
        coverage.total.count(has_case, why);
        if !matches!(requirement.testability, Testability::Client | Testability::Process) {
            coverage.testable.count(has_case, why);
        }
        let is_row = |row: &&mut Row| row.section == requirement.section && row.level == requirement.level;
        if let Some(row) = coverage.rows.iter_mut().find(is_row) {
            row.counts.count(has_case, why);
        } else {
            let mut counts = Counts::default();
            counts.count(has_case, why);
            coverage.rows.push(Row {
                section: requirement.section.clone(),
                level: requirement.level,
                counts,
            });
        }
    }
    let place = |row: &Row| sections.iter().position(|section| *section == row.section);
    coverage.rows.sort_by_key(|row| (place(row), std::cmp::Reverse(row.level)));
    coverage
}

impl Counts {
    fn count(&mut self, has_case: bool, why: Option<WithoutKind>) {
        self.requirements += 1;
        if has_case {
            self.with_cases += 1;
        } else if let Some(kind) = why {
            *self.without.entry(kind).or_default() += 1;
        }
    }
}
