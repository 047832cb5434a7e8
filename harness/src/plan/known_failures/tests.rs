use std::sync::Arc;

use rstest::rstest;

use super::*;
use crate::testing::{check_result, result};

fn list(text: &str) -> KnownFailures {
    KnownFailures::parse(Path::new("known.yaml"), text.to_owned()).unwrap()
}

fn day(text: &str) -> Date {
    text.parse().unwrap()
}

fn failed(checks: &[(&str, Verdict)]) -> CaseResult {
    let mut result = result("watch/bookmark-sent", "secrets.v1");
    result.checks = checks.iter().map(|(id, verdict)| check_result(id, *verdict)).collect();
    result.verdict = checks.iter().map(|(_, verdict)| *verdict).max().unwrap();
    result
}

#[rstest]
#[case::as_listed(&[("a", Verdict::Fail), ("b", Verdict::Pass)], None)]
#[case::passes(&[("a", Verdict::Pass)], Some("the case passes; remove the entry"))]
#[case::another_too(
    &[("a", Verdict::Fail), ("b", Verdict::Fail)],
    Some("the check `b` fails, but the entry does not list it")
)]
#[case::another(
    &[("a", Verdict::Pass), ("b", Verdict::Error)],
    Some("the check `b` fails, but the entry does not list it")
)]
#[case::a_warning_beside_it(&[("a", Verdict::Fail), ("b", Verdict::Warn)], None)]
#[case::mended_beside_a_warning(
    &[("a", Verdict::Pass), ("b", Verdict::Warn)],
    Some("the entry lists the check `a`, which does not fail")
)]
fn an_entry_must_stay_accurate(#[case] checks: &[(&str, Verdict)], #[case] surprise: Option<&str>) {
    let list = list("- case: watch/bookmark-sent\n  checks: [a]\n  reason: slow cache\n");
    let known = list.judge(&failed(checks), day("2026-01-01"), false).unwrap();
    assert_eq!(known.surprise.as_deref(), surprise);
    assert_eq!(known.reason, "slow cache");
}

/// An entry with the default keys and these.
fn entry(case: &str, more: &str) -> String {
    format!("- case: {case}\n{more}  reason: r\n")
}

#[rstest]
#[case::glob_passes(&entry("watch/*", ""), Verdict::Pass, "not listed")]
#[case::glob_fails(&entry("watch/*", ""), Verdict::Fail, "known")]
#[case::listed_check(&entry("watch/*", "  checks: [a, b]\n"), Verdict::Fail, "known")]
#[case::other_check(
    &entry("watch/*", "  checks: [b]\n"),
    Verdict::Fail,
    "the check `a` fails, but the entry does not list it",
)]
#[case::flaky_passes(&entry("watch/bookmark-sent", "  flaky: true\n"), Verdict::Pass, "not listed")]
#[case::flaky_fails(&entry("watch/bookmark-sent", "  flaky: true\n"), Verdict::Error, "known")]
fn globs_and_flaky_entries_permit_passes(
    #[case] text: &str,
    #[case] verdict: Verdict,
    #[case] expected: &str,
) {
    let known = list(text).judge(&failed(&[("a", verdict)]), day("2026-01-01"), false);
    let found = match &known {
        None => "not listed",
        Some(known) => known.surprise.as_deref().unwrap_or("known"),
    };
    assert_eq!(found, expected);
}

fn usage(list: &KnownFailures, results: &[CaseResult]) -> EntryUsage {
    let mut usage = EntryUsage::default();
    for result in results {
        list.record(result, &mut usage);
    }
    usage
}

#[test]
fn a_glob_without_a_failing_case_is_stale() {
    let text = [entry("watch/*", ""), entry("get/*", "  flaky: true\n"), entry("list/*", "")];
    let mut list = list(&text.concat());
    let passes = [result("watch/a", ""), result("get/a", "")];
    let today = day("2026-01-01");
    let stale = list.stale(&usage(&list, &passes), today, true);
    assert_eq!(stale, ["known.yaml:1: no case of watch/* fails; remove the entry"]);
    assert_eq!(list.stale(&usage(&list, &passes), today, false), Vec::<String>::new());

    let mut fails = failed(&[("a", Verdict::Fail)]);
    fails.id = "watch/b".to_owned();
    let both = usage(&list, &[passes[0].clone(), fails]);
    assert_eq!(list.stale(&both, today, true), Vec::<String>::new());

    let cases = ["watch/a", "watch/b", "get/a"].map(crate::testing::case);
    list.limit_to(&cases.iter(), |case| case.id != "watch/b");
    assert_eq!(list.stale(&usage(&list, &passes), today, true), Vec::<String>::new());
}

#[test]
fn expired_entries_are_listed() {
    let list = list(&entry("watch/*", "  subject: v1/secrets\n  expires: 2026-01-01\n"));
    let usage = usage(&list, &[failed(&[("a", Verdict::Fail)])]);
    let stale = list.stale(&usage, day("2026-01-02"), false);
    let line = "known.yaml:1: the entry watch/* @ v1/secrets expired on 2026-01-01; fix the \
                failure, or set a new date";
    assert_eq!(stale, [line]);
    assert_eq!(list.stale(&usage, day("2026-01-01"), true), Vec::<String>::new());
}

#[rstest]
#[case("watch/bookmark-sent", false)]
#[case("watch/*", true)]
fn an_expired_entry_without_a_failure_is_to_be_removed(#[case] case: &str, #[case] complete: bool) {
    let list = list(&entry(case, "  expires: 2026-01-01\n"));
    let usage = usage(&list, &[failed(&[("a", Verdict::Pass)])]);
    let stale = list.stale(&usage, day("2026-01-02"), complete);
    let line = format!(
        "known.yaml:1: the entry {case} expired on 2026-01-01, and nothing fails; remove the entry"
    );
    assert_eq!(stale, [line]);
}

#[test]
fn the_last_day_is_the_date_of_the_entry() {
    let list = list("- {case: watch/*, reason: r, expires: 2026-05-01}\n");
    let result = failed(&[("a", Verdict::Fail)]);
    assert_eq!(list.judge(&result, day("2026-05-01"), false).unwrap().surprise, None);
    let known = list.judge(&result, day("2026-05-02"), false).unwrap();
    assert_eq!(known.surprise.as_deref(), Some("the entry expired on 2026-05-01"));
}

#[test]
fn an_entry_for_another_subject_reports_nothing() {
    let list = list("- {case: watch/*, subject: configmaps.v1, reason: r}\n");
    assert_eq!(list.judge(&failed(&[("a", Verdict::Fail)]), day("2026-05-02"), false), None);
}

#[rstest]
#[case(
    "- case: watch/bookmark-snt\n  reason: r\n",
    "known.yaml:1: no case matches \"watch/bookmark-snt\"; did you mean \"watch/bookmark-sent\"?"
)]
#[case(
    "# why\n- reason: r\n  case: watch/*\n  subject: secret.v1\n",
    "known.yaml:3: no subject is named \"secret.v1\"; did you mean \"secrets.v1\"?"
)]
fn typos_are_errors(#[case] text: &str, #[case] message: &str) {
    let error = list(text)
        .check(&["watch/bookmark-sent"].into_iter(), &["secrets.v1"].into_iter())
        .unwrap_err();
    assert_eq!(error.to_string(), message);
}

#[rstest]
#[case("- case: a/b\n")]
#[case("- case: a/b\n  reason: ' '\n")]
#[case("- case: a/b\n  reason: r\n  expiry: 2026-01-01\n")]
#[case("- case: a/b\n  reason: r\n  expires: soon\n")]
#[case("- case: a/b\n  reason: r\n  checks: []\n")]
#[case("- case: a/b@secrets.v1\n  reason: r\n")]
#[case("- case: a/b\n  reason: r\n  flaky: true\n  checks: [a]\n")]
#[case("case: a/b\n")]
fn broken_lists_are_errors(#[case] text: &str) {
    assert!(KnownFailures::parse(Path::new("known.yaml"), text.to_owned()).is_err());
}

fn bad(id: &str, subject: &str) -> Arc<CaseResult> {
    let checks = vec![check_result("a", Verdict::Fail)];
    Arc::new(CaseResult { verdict: Verdict::Fail, checks, ..result(id, subject) })
}

fn good(id: &str, subject: &str) -> Arc<CaseResult> {
    Arc::new(result(id, subject))
}

#[test]
fn an_update_keeps_comments_and_reasons_and_changes_only_what_differs() {
    let text = "\
# Ours.

# the cache
- case: watch/a
  # all subjects
  reason: 'cache: none'
  expires: 2027-01-01

# gone soon
- case: get/a
  reason: g

# Not yet.

- case: not/run
  reason: n # keep
# The end.
";
    let results = [
        bad("watch/a", "secrets.v1"),
        good("watch/a", "configmaps.v1"),
        good("get/a", ""),
        bad("list/a", ""),
    ];
    let updated = list(text).updated(&results, false);
    let expected = "\
# Ours.

# the cache
# all subjects
- case: watch/a
  subject: secrets.v1
  reason: \"cache: none\"
  expires: 2027-01-01


# Not yet.

- case: not/run
  reason: n # keep
# The end.
- case: list/a
  reason: \"not explained yet, added by --update-known-failures\"
";
    assert_eq!(updated, expected);
    assert_eq!(list(&updated).updated(&results, false), updated);
    assert_eq!(list(text).updated(&[bad("watch/a", "secrets.v1")], false), text);
}

#[test]
fn an_update_keeps_globs() {
    let text = "# ours\n- case: watch/*\n  checks: [a]\n  reason: r\n";
    let some = [bad("watch/a", ""), good("watch/b", "")];
    assert_eq!(list(text).updated(&some, false), text);

    // Only the result that the glob does not describe gets its own entry.
    let mut other = CaseResult::clone(&bad("watch/c", ""));
    other.checks = vec![check_result("b", Verdict::Fail)];
    let results = [bad("watch/a", ""), good("watch/b", ""), Arc::new(other)];
    let updated = list(text).updated(&results, false);
    let exact = "- case: watch/c\n  checks: [b]\n  reason: \"r\"\n";
    assert_eq!(updated, format!("{exact}{text}"));
    assert_eq!(list(&updated).updated(&results, false), updated);

    let passes = [good("watch/a", "")];
    assert_eq!(list(text).updated(&passes, false), "");
    let mut limited = list(text);
    limited.limit_to(&[crate::testing::case("watch/b")].iter(), |_| false);
    assert_eq!(limited.updated(&passes, false), text);
}

#[test]
fn an_update_keeps_a_sorted_list_sorted() {
    let text = "- case: get/a\n  reason: r\n- case: watch/a\n  reason: r\n";
    let listed = [bad("get/a", ""), bad("watch/a", "")];
    let new = |id: &str| {
        format!("- case: {id}\n  reason: \"not explained yet, added by --update-known-failures\"\n")
    };
    let results =
        [&listed[..], &[bad("zone/a", ""), bad("list/b", ""), bad("list/a", "")]].concat();
    let updated = list(text).updated(&results, false);
    let (get, watch) = text.split_at(text.find("- case: watch").unwrap());
    assert_eq!(updated, [get, &new("list/a"), &new("list/b"), watch, &new("zone/a")].concat());
    assert_eq!(list(&updated).updated(&results, false), updated);

    let unsorted = "- case: watch/a\n  reason: r\n- case: get/a\n  reason: r\n";
    let results = [&listed[..], &[bad("list/a", "")]].concat();
    assert_eq!(list(unsorted).updated(&results, false), format!("{unsorted}{}", new("list/a")));
}

#[test]
fn an_entry_for_all_subjects_stays_one_if_they_fail_alike() {
    let text = "- case: watch/a\n  checks: [old]\n  reason: r\n";
    let results = [bad("watch/a", "secrets.v1"), bad("watch/a", "configmaps.v1")];
    let expected = "- case: watch/a\n  checks: [a]\n  reason: \"r\"\n";
    assert_eq!(list(text).updated(&results, false), expected);
}
