use rstest::rstest;

use super::testing::document;
use super::*;

#[test]
fn shards_are_merged() {
    let merged = merge([
        document(&[("b/2", Verdict::Pass), ("b/1", Verdict::Fail)]),
        document(&[("a/1", Verdict::Skip)]),
    ])
    .expect("parts of one run");
    let ids: Vec<_> = merged.results.iter().map(|record| record.id.as_str()).collect();
    assert_eq!(ids, ["a/1", "b/1", "b/2"]);
    assert_eq!((merged.summary.pass, merged.summary.fail, merged.summary.skip), (1, 1, 1));
    assert_eq!(merged.head.planned, 3);
    assert!(!merged.interrupted);
}

#[test]
fn reports_of_different_catalogues_cannot_be_merged() {
    let mut other = document(&[]);
    other.head.catalogue_digest = "sha256:11".to_owned();
    let error = merge([document(&[]), other]).expect_err("they differ");
    assert!(error.to_string().contains("different catalogues"), "{error}");
    assert_eq!(merge([]).expect_err("none"), MergeError::Nothing);
}

fn shard(index: usize, count: usize, results: &[(&str, Verdict)]) -> Document {
    let mut document = document(results);
    document.head.shard = Some(Shard { index, count });
    document
}

#[test]
fn all_shards_of_one_target_are_needed() {
    let part = |index| shard(index, 2, &[(["a/1", "a/2"][index - 1], Verdict::Pass)]);
    let merged = merge([part(2), part(1)]).expect("all shards");
    assert_eq!((merged.head.shard, merged.results.len()), (None, 2));
    let failed = |documents: Vec<Document>| merge(documents).expect_err("rejected");
    assert_eq!(failed(vec![part(2)]), MergeError::MissingShard { index: 1, count: 2 });
    let twice = vec![part(1), part(1)];
    assert_eq!(failed(twice), MergeError::DuplicateShard { index: 1, count: 2 });
    let other_count = failed(vec![part(1), shard(2, 3, &[])]).to_string();
    assert!(other_count.contains("numbers of shards"), "{other_count}");
    let mut other_target = part(2);
    other_target.head.target.server = "https://other".to_owned();
    let other_target = failed(vec![part(1), other_target]).to_string();
    assert!(other_target.contains("different targets"), "{other_target}");
}

#[test]
fn a_result_is_in_one_report_only() {
    let whole = || document(&[("a/1", Verdict::Pass)]);
    let error = merge([whole(), whole()]).expect_err("the same result");
    assert_eq!(error, MergeError::DuplicateResult { title: "a/1".to_owned() });
}

#[test]
fn of_a_required_feature_the_worst_result_stays() {
    let part = |index, verdict| shard(index, 2, &[("required/crds", verdict)]);
    let merged = merge([part(1, Verdict::Pass), part(2, Verdict::Fail)]).expect("shards");
    assert_eq!((merged.summary.fail, merged.summary.total()), (1, 1));
    assert_eq!(merged.head.planned, 1);
}

#[test]
fn runs_of_different_selections_are_compared_where_both_have_results() {
    let mut before = document(&[("a/same", Verdict::Pass), ("b/gone", Verdict::Pass)]);
    let mut after = document(&[("a/same", Verdict::Fail), ("a/new", Verdict::Fail)]);
    // Older reports do not name their selection.
    assert!(diff(&before, &after).iter().any(|change| change.after.is_none()));
    before.head.selection = Some(String::new());
    after.head.selection = Some("--area a".to_owned());
    let changes = diff(&before, &after);
    let found: Vec<_> = changes.iter().map(ToString::to_string).collect();
    assert_eq!(found, ["a/same: pass -> fail"]);
    let note = changes.selections.expect("they differ").to_string();
    assert_eq!(
        note,
        "the first run has all cases, the second has the cases of --area a; 2 results of only one \
         run are not compared"
    );
    before.head.selection = after.head.selection.clone();
    before.head.shard = Some(Shard { index: 1, count: 2 });
    assert_eq!(diff(&before, &after).selections.map(|both| both.not_compared), Some(2));
}

#[test]
fn a_diff_lists_the_changed_results() {
    let before = document(&[
        ("a/same", Verdict::Pass),
        ("a/broke", Verdict::Pass),
        ("a/gone", Verdict::Pass),
    ]);
    let after = document(&[
        ("a/same", Verdict::Pass),
        ("a/broke", Verdict::Fail),
        ("a/new", Verdict::Pass),
    ]);
    let changes: Vec<_> = diff(&before, &after).iter().map(ToString::to_string).collect();
    assert_eq!(changes, ["a/broke: pass -> fail", "a/gone: pass -> none", "a/new: none -> pass"]);
}

#[rstest]
#[case(Some(Verdict::Pass), Some(Verdict::Fail), true)]
#[case(Some(Verdict::Pass), Some(Verdict::Skip), true)]
#[case(Some(Verdict::Pass), None, true)]
#[case(Some(Verdict::Skip), Some(Verdict::Pass), false)]
#[case(Some(Verdict::Fail), Some(Verdict::Pass), false)]
#[case(None, Some(Verdict::Fail), true)]
#[case(None, Some(Verdict::Pass), false)]
fn a_worse_removed_or_skipped_result_is_a_regression(
    #[case] before: Option<Verdict>,
    #[case] after: Option<Verdict>,
    #[case] regression: bool,
) {
    let change = Change { title: String::new(), before, after, reason: String::new() };
    assert_eq!(change.is_regression(), regression);
}
