//! Compares every report of one fixed run with its golden file in `goldens/`.
//!
//! `KUBEPROOF_BLESS=1 cargo test -p kubeproof-reports` rewrites the files. Read the diff before you
//! commit it.

mod run;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use kubeproof_reports::console::{Console, Live, Options, Verbosity, describe};
use kubeproof_reports::document::Document;
use kubeproof_reports::formats::{FileReport, Format, load};
use kubeproof_reports::paint::Paint;
use kubeproof_reports::redact::Redactor;
use kubeproof_reports::{Finished, Github, Report, Reports, Trace, causes};
use rstest::rstest;

/// Texts that no report may contain: tokens, the data of Secrets in both forms, and credentials
/// that a case sent.
const SECRETS: [&str; 5] =
    ["token-of-the-admin", "token-of-the-user", "czNjcjN0", "session-cookie", "review-me"];

#[rstest]
#[case(Format::Json, "report.json")]
#[case(Format::Junit, "junit.xml")]
#[case(Format::Html, "report.html")]
#[case(Format::Markdown, "summary.md")]
#[case(Format::Sarif, "report.sarif")]
#[case(Format::Tap, "report.tap")]
fn a_file_report_matches_its_golden(#[case] format: Format, #[case] golden: &str) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("missing/directories").join(golden);
    let file = FileReport::new(&path, format, &run::requirements()).expect("a writable path");
    assert!(report(vec![Box::new(file)]).errors.is_empty());
    compare(golden, &fs::read_to_string(&path).expect("a report"));
}

#[rstest]
#[case(Verbosity::Quiet, false, "console-quiet.txt")]
#[case(Verbosity::Normal, false, "console.txt")]
#[case(Verbosity::Normal, true, "console-colour.txt")]
#[case(Verbosity::Passes, false, "console-v.txt")]
#[case(Verbosity::Exchanges, false, "console-vv.txt")]
fn the_console_matches_its_golden(
    #[case] verbosity: Verbosity,
    #[case] colour: bool,
    #[case] golden: &str,
) {
    let (out, live) = (Buffer::default(), Buffer::default());
    let options = Options {
        verbosity,
        paint: Paint::new(colour),
        command: "kubeproof run --server https://example.test".to_owned(),
        json: None,
        strict: false,
    };
    let live_lines = Live::lines(live.clone(), Paint::plain());
    let console = Console::new(out.clone(), live_lines, options, &run::requirements());
    assert!(report(vec![Box::new(console)]).errors.is_empty());
    compare(
        golden,
        &format!("--- standard error\n{}--- standard output\n{}", live.text(), out.text()),
    );
}

#[test]
fn annotations_match_their_golden() {
    let out = Buffer::default();
    assert!(
        report(vec![Box::new(Github::new(out.clone(), &run::requirements(), None))])
            .errors
            .is_empty()
    );
    compare("github.txt", &out.text());
}

#[test]
fn the_job_summary_is_appended() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("summary.md");
    fs::write(&path, "an earlier step\n").expect("a file");
    let github = Github::new(io::sink(), &run::requirements(), Some(path.clone()));
    assert!(report(vec![Box::new(github)]).errors.is_empty());
    let markdown = fs::read_to_string(goldens().join("summary.md")).expect("a golden");
    let summary = fs::read_to_string(&path).expect("a summary");
    assert_eq!(summary, format!("an earlier step\n{markdown}"));
}

#[test]
fn a_trace_has_a_file_with_the_exchanges_of_each_case() {
    let dir = tempfile::tempdir().expect("a directory");
    assert!(report(vec![Box::new(Trace::new(dir.path()).expect("a directory"))]).errors.is_empty());
    let passed = dir.path().join("get/reads-back@configmaps.v1.txt");
    compare("trace.txt", &fs::read_to_string(passed).expect("a passed case has a trace"));
    assert!(dir.path().join("create/taken-name-rejected@secrets.v1.txt").exists());
}

#[test]
fn a_json_report_can_be_read_again() {
    let document = load(&goldens().join("report.json")).expect("the golden is a report");
    let written = report(Vec::new()).document;
    assert_eq!(document.summary, written.summary);
    assert_eq!(Format::Tap.render(&document, &run::requirements()).expect("TAP"), {
        Format::Tap.render(&written, &run::requirements()).expect("TAP")
    });
    let shown = |document: &Document| {
        let causes = causes(&document.results, false);
        let text = |cause| describe(cause, &run::requirements(), Paint::plain());
        causes.iter().map(text).collect::<Vec<_>>()
    };
    assert_eq!(shown(&document), shown(&written));
}

#[test]
fn no_secret_is_in_any_golden() {
    for entry in fs::read_dir(goldens()).expect("the goldens") {
        let path = entry.expect("a golden").path();
        let text = fs::read_to_string(&path).expect("text");
        for secret in SECRETS {
            assert!(!text.contains(secret), "{} contains {secret:?}", path.display());
        }
    }
}

#[test]
fn a_failing_report_does_not_affect_the_others() {
    let out = Buffer::default();
    let reports: Vec<Box<dyn Report>> = vec![
        Box::new(Github::new(Closed, &run::requirements(), None)),
        Box::new(Github::new(out.clone(), &run::requirements(), None)),
    ];
    let finished = report(reports);
    assert_eq!(finished.errors.len(), 1);
    assert!(
        finished.errors[0].to_string().contains("cannot write to the output"),
        "{}",
        finished.errors[0]
    );
    assert!(out.text().contains("::error"));
}

fn report(reports: Vec<Box<dyn Report>>) -> Finished {
    let redactor = Redactor::new(run::TOKENS.map(str::to_owned).into_iter().collect());
    let mut reports = Reports::new(redactor, reports);
    for event in run::events() {
        reports.event(&event);
    }
    reports.finish()
}

fn goldens() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens")
}

fn compare(name: &str, actual: &str) {
    let path = goldens().join(name);
    if std::env::var_os("KUBEPROOF_BLESS").is_some() {
        fs::write(&path, actual).expect("blessed");
        return;
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    let diff = similar::TextDiff::from_lines(&expected, actual);
    let diff = diff.unified_diff().header(name, "now").to_string();
    assert!(expected == actual, "{diff}\nKUBEPROOF_BLESS=1 rewrites the golden");
}

#[derive(Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Buffer {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().expect("no panic").clone()).expect("text")
    }
}

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Closed;

impl Write for Closed {
    fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
