//! Coverage: the requirements with cases, and the reasons of the others.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Requirement, Requirements, Testability, WithoutKind};
use crate::case::{Case, Edition, Level};

/// The requirements and their cases.
#[derive(Clone, Debug, Serialize)]
pub struct Coverage {
    /// One row per section and level, in the order of the conventions.
    pub rows: Vec<Row>,
    /// Over all of them.
    pub total: Counts,
    /// Requirements for servers: all but those for clients and for API design.
    pub testable: Counts,
    /// Requirements for servers, by testability and edition.
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
    /// The numbers of requirements and of those with cases.
    #[serde(flatten)]
    pub counts: Counts,
}

/// The share of an edition's requirements that have cases, for one testability.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Share {
    /// The kind of evidence.
    pub testability: Testability,
    /// The edition.
    pub edition: Edition,
    /// The number of requirements.
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

impl Coverage {
    /// Counts the requirements of an edition that have cases; `None`: those of any edition.
    pub fn of(requirements: &Requirements, cases: &[Case], edition: Option<Edition>) -> Self {
        compute(requirements, cases, edition)
    }
}

fn compute(requirements: &Requirements, all: &[Case], edition: Option<Edition>) -> Coverage {
    let asked =
        |requirement: &&Requirement| edition.is_none_or(|e| requirement.editions.contains(&e));
    let mut cases: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for case in all {
        for requirement in &case.requirements {
            cases.entry(requirement.clone()).or_default().push(case.id.clone());
        }
    }
    let mut coverage = Coverage {
        rows: Vec::new(),
        total: Counts::default(),
        testable: Counts::default(),
        shares: shares(requirements, edition, &cases),
        cases,
    };
    let mut sections: Vec<&str> = Vec::new();
    for requirement in requirements.iter().filter(asked) {
        if !sections.contains(&requirement.section.as_str()) {
            sections.push(&requirement.section);
        }
        let has_case = coverage.cases.contains_key(&requirement.id);
        let why = requirement.without.as_ref().map(|without| without.kind);
        coverage.total.count(has_case, why);
        if !matches!(requirement.testability, Testability::Client | Testability::Process) {
            coverage.testable.count(has_case, why);
        }
        let is_row =
            |row: &&mut Row| row.section == requirement.section && row.level == requirement.level;
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
    requirements: &Requirements,
    edition: Option<Edition>,
    cases: &BTreeMap<String, Vec<String>>,
) -> Vec<Share> {
    let editions =
        Edition::ALL.into_iter().filter(|one| edition.is_none_or(|edition| edition == *one));
    editions
        .flat_map(|edition| {
            [Testability::Wire, Testability::Schema, Testability::Stream]
                .map(|place| (edition, place))
        })
        .map(|(edition, testability)| {
            let mut counts = Counts::default();
            for requirement in requirements {
                if requirement.testability == testability && requirement.editions.contains(&edition)
                {
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
