use super::*;
use crate::testing::case;

fn selection(only: &[&str], skip: &[&str]) -> Selection {
    let patterns = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
    Selection { only: patterns(only), skip: patterns(skip), ..Selection::default() }
}

fn ids(ids: &[&str]) -> Vec<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}

#[test]
fn patterns_reach_ids_and_subjects() {
    let selection = selection(&["watch/*@secrets.v1", "*bookmark*"], &["watch/old"]);
    assert!(selection.takes("watch/adds", "secrets.v1"));
    assert!(!selection.takes("watch/adds", "configmaps.v1"));
    assert!(selection.takes("list/bookmarks", "configmaps.v1"));
    assert!(!selection.takes("watch/old", "secrets.v1"));
    assert!(selection.takes_case(&case("watch/adds")));
    assert!(!selection.takes_case(&case("watch/old")));
    assert!(!selection.takes_case(&case("get/reads")));
}

#[test]
fn subjects_have_two_notations() {
    let selection = selection(&["get/*@apps/v1/*", "watch/*@v1/secrets"], &[]);
    assert!(selection.takes("get/reads", "deployments.v1.apps"));
    assert!(!selection.takes("get/reads", "secrets.v1"));
    assert!(selection.takes("watch/adds", "secrets.v1"));
}

#[test]
fn a_whole_case_runs_on_all_subjects() {
    assert!(selection(&["watch/*"], &["get/*"]).takes_whole(&case("watch/adds")));
    assert!(!selection(&["watch/*@secrets.v1"], &[]).takes_whole(&case("watch/adds")));
    assert!(!selection(&[], &["watch/*@secrets.v1"]).takes_whole(&case("watch/adds")));
    let shard = Selection { shard: "1/2".parse().ok(), ..Selection::default() };
    assert!(!shard.takes_whole(&case("watch/adds")));
}

#[test]
fn a_pattern_without_a_match_names_the_nearest_id() {
    let ids = ids(&["create/name-taken", "watch/bookmarks"]);
    let error = selection(&["create/name-token"], &[]).check(&ids).unwrap_err();
    assert_eq!(
        error.to_string(),
        "--only \"create/name-token\" matches nothing; did you mean \"create/name-taken\"?"
    );
    let error = selection(&[], &["bookmark"]).check(&ids).unwrap_err();
    assert!(error.to_string().ends_with("did you mean \"watch/bookmarks\"?"), "{error}");
    selection(&["watch/*@nothing.v1"], &[]).check(&ids).unwrap();
    for unrelated in ["xyzzy", "c", "apply/*"] {
        let error = selection(&[unrelated], &[]).check(&ids).unwrap_err().to_string();
        let expected = "matches nothing; `kubeproof list` prints all cases";
        assert!(error.ends_with(expected), "{error}");
    }
}

#[test]
fn a_pattern_that_is_an_area_names_its_option() {
    let ids = ids(&["create/name-taken"]);
    let error = selection(&["create"], &[]).check(&ids).unwrap_err().to_string();
    assert_eq!(error, "--only: \"create\" is an area; use --area create");
    let error = selection(&[], &["create"]).check(&ids).unwrap_err().to_string();
    assert_eq!(error, "--skip: \"create\" is an area; use --skip 'create/*'");
}

#[test]
fn an_unknown_area_is_an_error() {
    let selection = Selection { areas: vec!["creat".into()], ..Selection::default() };
    let error = selection.check(&ids(&["create/name-taken"])).unwrap_err();
    assert_eq!(error.to_string(), "--area \"creat\" matches nothing; did you mean \"create\"?");
}

#[test]
fn profiles_take_their_cases() {
    let selection = Selection { profiles: vec![Profile::Crud], ..Selection::default() };
    let of_profile = |profile| Case { profile, ..case("a/b") };
    assert!(selection.takes_case(&of_profile(Some(Profile::Crud))));
    assert!(!selection.takes_case(&of_profile(Some(Profile::Lists))));
    assert!(!selection.takes_case(&of_profile(None)));
}

#[test]
fn levels_take_the_stronger_too() {
    let should = Selection { level: Some(Level::Should), ..Selection::default() };
    let of_level = |level| Case { level, ..case("a/b") };
    assert!(should.takes_case(&of_level(Level::Must)));
    assert!(should.takes_case(&of_level(Level::Should)));
    assert!(!should.takes_case(&of_level(Level::May)));
}

#[test]
fn shards_are_disjoint_and_complete() {
    let shards: Vec<Shard> =
        ["1/3", "2/3", "3/3"].iter().map(|text| text.parse().unwrap()).collect();
    assert!((0..10).all(|n| shards.iter().filter(|shard| shard.takes(n)).count() == 1));
    for bad in ["0/3", "4/3", "1", "a/b", "1/0"] {
        assert!(bad.parse::<Shard>().is_err(), "{bad}");
    }
}

#[test]
fn a_rerun_takes_what_failed_or_errored() {
    let rerun = Rerun::parse(
        r#"{"results": [
            {"id": "a/b", "subject": "configmaps.v1", "verdict": "fail", "more": 1},
            {"id": "a/c", "subject": "", "verdict": "error"},
            {"id": "a/d", "subject": "", "verdict": "warn"}]}"#,
    )
    .unwrap();
    let selection = Selection { rerun: Some(rerun), ..Selection::default() };
    assert!(selection.takes("a/b", "configmaps.v1"));
    assert!(!selection.takes("a/b", "secrets.v1"));
    assert!(selection.takes("a/c", ""));
    assert!(!selection.takes("a/d", ""));
    assert!(!selection.takes_case(&case("a/d")));
}
