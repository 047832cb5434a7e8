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
    /// Those that a server can be seen to keep or break, by where they show and by edition.
    pub shares: Vec<Share>,
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

/// How much of what an edition asks for, and shows in one place, has cases.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Share {
    /// Where it shows.
    pub testability: Testability,
    /// The edition.
    pub edition: Edition,
    /// How many there are.
    pub total: usize,
    /// Those with a case.
    pub with_case: usize,
    /// Those for which cases are yet to come.
    pub planned: usize,
    /// Those with a case, in percent, to one decimal place; 100 of none.
    pub percent: f64,
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
    let mut coverage = Coverage {
        rows: Vec::new(),
        total: Counts::default(),
        testable: Counts::default(),
        shares: shares(catalogue, edition, &cases),
        cases,
    };
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

fn shares(
    catalogue: &Catalogue,
    edition: Option<Edition>,
    cases: &BTreeMap<String, Vec<String>>,
) -> Vec<Share> {
    let editions = Edition::ALL.into_iter().filter(|one| edition.is_none_or(|edition| edition == *one));
    editions
        .flat_map(|edition| {
            [Testability::Wire, Testability::Schema, Testability::Stream].map(|place| (edition, place))
        })
        .map(|(edition, testability)| {
            let mut counts = Counts::default();
            for requirement in &catalogue.requirements {
                if requirement.testability == testability && requirement.editions.contains(&edition) {
                    let why = requirement.without.as_ref().map(|without| without.kind);
                    counts.count(cases.contains_key(&requirement.id), why);
                }
            }
            Share {
                testability,
                edition,
                total: counts.requirements,
                with_case: counts.with_cases,
                planned: counts.without.get(&WithoutKind::Planned).copied().unwrap_or_default(),
                percent: percent(counts.with_cases, counts.requirements),
            }
        })
        .collect()
}

/// To one decimal place.
fn percent(part: usize, whole: usize) -> f64 {
    if whole == 0 {
        return 100.0;
    }
    let per_mille = u32::try_from(part * 1000 / whole).unwrap_or(1000);
    f64::from(per_mille) / 10.0
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
