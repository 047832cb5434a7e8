//! The catalogue that the program carries is right: every file, and the ledger against the cases.

use std::path::Path;

use kubeproof_cases::ledger::{Testability, WithoutKind};

use crate::bless;
use kubeproof_cases::{Catalogue, Diagnostics, Loader, coverage};

fn embedded() -> Catalogue {
    Catalogue::embedded().unwrap_or_else(|errors| panic!("{errors}"))
}

#[test]
fn all_files_are_right() {
    let catalogue = embedded();
    assert_eq!(catalogue.requirements.len(), 439, "the conventions hold 439 requirements");
    let standard: Vec<String> = catalogue
        .subjects
        .iter()
        .filter(|subject| subject.standard)
        .map(|subject| subject.name.to_string())
        .collect();
    assert_eq!(
        standard,
        ["configmaps.v1", "gauges.v1.kubeproof.dev", "secrets.v1", "widgets.v1.kubeproof.dev"]
    );
}

#[test]
fn every_requirement_has_a_case_or_a_reason() {
    let catalogue = embedded();
    if bless::is_asked_for() {
        remove_stale_reasons(&catalogue);
        return;
    }
    let errors = catalogue.ledger_errors();
    assert!(errors.is_empty(), "{errors}");
}

/// A reason that a case made untrue is a line of its own in the ledger.
fn remove_stale_reasons(catalogue: &Catalogue) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/requirements.yaml");
    let text = std::fs::read_to_string(&path).expect("the ledger can be read");
    let covered = coverage::compute(catalogue).cases;
    let mut current = "";
    let kept: Vec<&str> = text
        .lines()
        .filter(|line| {
            current = line.strip_prefix("- id: ").unwrap_or(current);
            !(line.starts_with("  without: ") && covered.contains_key(current))
        })
        .collect();
    std::fs::write(&path, kept.join("\n") + "\n").expect("the ledger can be written");
}

#[test]
fn rules_for_clients_and_people_are_left_out_as_such() {
    for requirement in &embedded().requirements {
        let Some(without) = &requirement.without else { continue };
        let expected = match requirement.testability {
            Testability::Client => vec![WithoutKind::Client],
            Testability::Process => vec![WithoutKind::Process],
            _ => vec![WithoutKind::Planned, WithoutKind::Unseen],
        };
        assert!(expected.contains(&without.kind), "{}: {:?}", requirement.id, without.kind);
        assert!(!without.reason.trim().is_empty(), "{} gives no reason", requirement.id);
    }
}

/// All but the rules for clients and people, which have no cases.
#[test]
fn every_requirement_for_servers_says_why_and_what_is_legal() {
    let people = [Testability::Client, Testability::Process];
    for requirement in embedded().requirements.iter().filter(|one| !people.contains(&one.testability)) {
        for (what, text) in [("why", &requirement.why), ("legal", &requirement.legal)] {
            let said = text.as_ref().is_some_and(|text| !text.trim().is_empty());
            assert!(said, "the `{what}` of {} is missing", requirement.id);
        }
    }
}

#[test]
fn shares_are_those_of_the_requirements_that_an_edition_has() {
    let coverage = coverage::compute(&embedded());
    assert_eq!(coverage.shares.len(), 15);
    for share in &coverage.shares {
        assert!(share.with_case + share.planned <= share.total, "{share:?}");
        assert_eq!(share.percent > 99.9, share.with_case == share.total, "{share:?}");
    }
}

#[test]
fn the_rows_hold_every_requirement_once() {
    let catalogue = embedded();
    let coverage = coverage::compute(&catalogue);
    let in_rows: usize = coverage.rows.iter().map(|row| row.counts.requirements).sum();
    assert_eq!(in_rows, catalogue.requirements.len());
    for counts in coverage.rows.iter().map(|row| &row.counts).chain([&coverage.total, &coverage.testable]) {
        assert_eq!(
            counts.with_cases + counts.without.values().sum::<usize>(),
            counts.requirements,
            "{counts:?}"
        );
    }
}

/// Two requirements: one that a case proves although it gives a reason, one with neither.
#[test]
fn the_ledger_is_held_against_the_cases() {
    let ledger = "\
- id: a.proven
  section: A
  level: must
  testability: wire
  editions: [head]
  statement: A
  without: {kind: planned, reason: later}
- id: a.lost
  section: A
  level: must
  testability: wire
  editions: [head]
  statement: B
";
    let case = "\
summary: A
requirements: [a.proven]
steps:
  - request:
      id: got
      method: GET
      path: /api
      expect: [{id: found, status: 200}]
";
    let catalogue = Loader::without_cases()
        .file("requirements.yaml", "requirements.yaml", ledger)
        .file("a/case.yaml", "a/case.yaml", case)
        .load()
        .unwrap_or_else(|errors| panic!("{errors}"));
    let errors: Diagnostics = catalogue.ledger_errors();
    let found: Vec<(&str, u32)> = errors.iter().map(|error| (error.code, error.span.line)).collect();
    assert_eq!(found, [("stale-reason", 1), ("no-row", 8)]);
}

#[test]
fn the_digest_names_the_files() {
    let digest = embedded().digest().to_owned();
    assert!(digest.starts_with("sha256:") && digest.len() == 71, "{digest}");
    assert_ne!(Loader::without_cases().load().expect("these files are right").digest(), digest);
}
