use super::*;
use crate::compare::testing::{document, on};

fn matrix() -> Matrix {
    let first = document(&[
        ("a/same", Verdict::Pass),
        ("a/broken", Verdict::Fail),
        ("a/only-here", Verdict::Pass),
        ("a/skipped", Verdict::Skip),
    ]);
    let mut second = document(&[("a/same", Verdict::Pass), ("a/broken", Verdict::Fail)]);
    second.head.target.server = "http://b|<b>".to_owned();
    second.head.target.version = Some("v1.33.0".to_owned());
    let results = [("a", Verdict::Pass), ("b", Verdict::Fail), ("c", Verdict::Fail)];
    let first = on(first, "a/subjects", &results);
    let second = on(second, "a/subjects", &[("a", Verdict::Pass), ("b", Verdict::Pass)]);
    Matrix::new(&[("a.json".to_owned(), first), ("b.json".to_owned(), second)])
}

fn console(verbose: bool) -> String {
    let mut out = Vec::new();
    matrix().write(&mut out, Paint::plain(), verbose).expect("memory");
    String::from_utf8(out).expect("UTF-8")
}

#[test]
fn rows_that_differ_come_first() {
    let expected = "\
#1  (unknown version), edition head, a.json: 2 pass, 2 fail, 1 skip
#2 http://b|<b> (v1.33.0), edition head, b.json: 2 pass, 1 fail

different:
               #1        #2
  a/only-here  pass      -
  a/subjects   fail 2/3  pass

the same:
            #1    #2
  a/broken  fail  fail

5 cases: 2 different, 3 the same; 2 of them pass or skip in all reports (-v lists them)
";
    assert_eq!(console(false), expected);
    assert!(console(true).contains("  a/same     pass  pass\n"), "{}", console(true));
}

#[test]
fn text_of_servers_is_escaped() {
    let markdown = matrix().markdown();
    assert!(markdown.contains("- #2: http://b\\|&lt;b&gt; (v1.33.0)"), "{markdown}");
    assert!(markdown.contains("| a/subjects | fail 2/3 | pass |\n"), "{markdown}");
    let html = matrix().html().expect("a page");
    assert!(html.contains("v1.33.0") && !html.contains("<b>"), "{html}");
    assert!(html.find("a/subjects") < html.find("a/same"), "{html}");
}

#[test]
fn other_catalogues_and_editions_are_noted() {
    let mut other = document(&[("a/same", Verdict::Pass)]);
    other.head.catalogue_digest = "sha256:11".to_owned();
    other.head.edition = kubeproof_cases::case::Edition::V1_3;
    let reports = [("a".to_owned(), document(&[])), ("b".to_owned(), other)];
    assert_eq!(Matrix::new(&reports).notices().len(), 2);
}
