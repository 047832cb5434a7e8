//! The embedded catalogue: every file is valid, and every requirement has a case or a reason.

use std::path::Path;

use kubeproof_cases::case::{Case, Prerequisite};
use kubeproof_cases::requirements::{Testability, WithoutKind};

use crate::bless;
use kubeproof_cases::{Catalogue, Diagnostics, Loader, Profile};

fn embedded() -> Catalogue {
    Catalogue::embedded().unwrap_or_else(|errors| panic!("{errors}"))
}

#[test]
fn all_files_are_valid() {
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
fn cases_that_are_left_out_keep_their_ids() {
    let all = embedded();
    let id = "create/taken-name-rejected";
    let path = format!("{id}.yaml");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("data").join(&path);
    let text = std::fs::read_to_string(file).expect("a case");
    let loaders = [
        Loader::embedded().only(|other| other == id),
        // A file that is added later is read.
        Loader::embedded().only(|_| false).file(&path, &format!("cases/data/{path}"), &text),
    ];
    for loader in loaders {
        let few = loader.load().unwrap_or_else(|errors| panic!("{errors}"));
        assert_eq!(few.cases.iter().map(|case| case.id.as_str()).collect::<Vec<_>>(), [id]);
        assert_eq!(few.ids, all.ids);
        assert_eq!(few.digest(), all.digest());
    }
    assert!(all.ids.is_sorted() && all.ids.len() == all.cases.len());
}

#[test]
fn every_requirement_has_a_case_or_a_reason() {
    let catalogue = embedded();
    if bless::is_asked_for() {
        remove_stale_reasons(&catalogue);
        return;
    }
    let errors = catalogue.requirement_errors();
    assert!(errors.is_empty(), "{errors}");
}

/// Removes the `without` lines of requirements that have a case.
fn remove_stale_reasons(catalogue: &Catalogue) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/requirements.yaml");
    let text = std::fs::read_to_string(&path).expect("the ledger can be read");
    let covered = catalogue.coverage(None).cases;
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
fn rules_for_clients_and_people_have_that_reason() {
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

#[test]
fn every_requirement_for_servers_has_why_and_legal() {
    let people = [Testability::Client, Testability::Process];
    for requirement in
        embedded().requirements.iter().filter(|one| !people.contains(&one.testability))
    {
        for (what, text) in [("why", &requirement.why), ("legal", &requirement.legal)] {
            let said = text.as_ref().is_some_and(|text| !text.trim().is_empty());
            assert!(said, "the `{what}` of {} is missing", requirement.id);
        }
    }
}

#[test]
fn shares_count_the_requirements_of_an_edition() {
    let coverage = embedded().coverage(None);
    assert_eq!(coverage.shares.len(), 15);
    for share in &coverage.shares {
        assert!(share.with_case + share.planned <= share.total, "{share:?}");
        assert_eq!(share.percent > 99.9, share.with_case == share.total, "{share:?}");
    }
}

#[test]
fn the_rows_hold_every_requirement_once() {
    let catalogue = embedded();
    let coverage = catalogue.coverage(None);
    let in_rows: usize = coverage.rows.iter().map(|row| row.counts.requirements).sum();
    assert_eq!(in_rows, catalogue.requirements.len());
    for counts in
        coverage.rows.iter().map(|row| &row.counts).chain([&coverage.total, &coverage.testable])
    {
        assert_eq!(
            counts.with_cases + counts.without.values().sum::<usize>(),
            counts.requirements,
            "{counts:?}"
        );
    }
}

/// One requirement has a case and a reason, the other has neither.
#[test]
fn requirements_without_case_or_reason_are_reported() {
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
    let errors: Diagnostics = catalogue.requirement_errors();
    let found: Vec<(&str, u32)> =
        errors.iter().map(|error| (error.code, error.span.line)).collect();
    assert_eq!(found, [("stale-reason", 1), ("no-case", 8)]);
}

#[test]
fn every_case_has_one_profile() {
    let catalogue = embedded();
    let errors = catalogue.profile_errors();
    assert!(errors.is_empty(), "{errors}");
    let of_profiles = Profile::ALL.map(|profile| catalogue.cases_of(profile).count());
    assert!(of_profiles.iter().all(|count| *count > 5), "{of_profiles:?}");
    assert_eq!(of_profiles.iter().sum::<usize>(), catalogue.cases.len());
}

/// A server without watches must reach the profiles before them.
#[test]
fn profiles_before_watches_need_none() {
    let catalogue = embedded();
    let watches = |case: &&Case| {
        let verbs = case.subject.as_ref().map(|subject| subject.verbs.as_slice());
        verbs.unwrap_or_default().iter().any(|verb| verb == "watch")
    };
    let is_early = |case: &&Case| case.profile < Some(Profile::Watch);
    let early: Vec<&str> =
        catalogue.cases.iter().filter(watches).filter(is_early).map(|case| &*case.id).collect();
    assert_eq!(early, [""; 0]);
}

#[test]
fn each_prerequisite_has_one_case() {
    let catalogue = embedded();
    for prerequisite in Prerequisite::ALL {
        let provides = |case: &&Case| case.provides == Some(prerequisite);
        assert_eq!(catalogue.cases.iter().filter(provides).count(), 1, "{prerequisite}");
    }
}

#[test]
fn gaps_between_profiles_and_cases_are_reported() {
    let ledger = "\
- id: a.proven
  section: A
  level: must
  testability: wire
  editions: [head]
  statement: A
";
    let case = "\
summary: A
requirements: [a.proven]
steps: [{get: {id: got, path: /api, expect: [{id: found, status: 200}]}}]
";
    let load = |profiles: &str| {
        Loader::without_cases()
            .file("requirements.yaml", "requirements.yaml", ledger)
            .file("profiles.yaml", "profiles.yaml", profiles)
            .file("a/one.yaml", "a/one.yaml", case)
            .file("b/two.yaml", "b/two.yaml", case)
            .load()
    };
    let catalogue =
        load("- {profile: crud, areas: [a, c]}\n- {profile: read, cases: [a/one, d/*]}")
            .unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(catalogue.cases[0].profile, Some(Profile::Read));
    let errors = catalogue.profile_errors();
    let found: Vec<(&str, &str)> =
        errors.iter().map(|error| (error.code, error.message.as_str())).collect();
    assert_eq!(
        found,
        [
            ("no-profile", "`b/two` belongs to no profile"),
            ("no-case", "no area is `c`"),
            ("no-case", "no case matches `d/*`")
        ]
    );
    let errors = load("- {profile: crud, areas: [a, b]}\n- {profile: read, areas: [b]}")
        .expect_err("two profiles");
    let message = "`b/two` belongs to two profiles, `crud` and `read`";
    assert_eq!(errors.iter().map(|error| error.message.as_str()).collect::<Vec<_>>(), [message]);
}

#[test]
fn the_digest_depends_on_the_files() {
    let digest = embedded().digest().to_owned();
    assert!(digest.starts_with("sha256:") && digest.len() == 71, "{digest}");
    assert_ne!(Loader::without_cases().load().expect("these files are right").digest(), digest);
}
