//! Every report over one fixed run, held against the files in `goldens/`.
//!
//! `KUBEPROOF_BLESS=1 cargo test -p kubeproof-reports` rewrites them; read the difference before it is committed.

mod run;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use kubeproof_reports::console::{Console, Live, Options, Verbosity};
use kubeproof_reports::document::Document;
use kubeproof_reports::file::{FileReport, Format};
use kubeproof_reports::github::Github;
use kubeproof_reports::paint::Paint;
use kubeproof_reports::redact::Redactor;
use kubeproof_reports::trace::Trace;
use kubeproof_reports::{Finished, Report, Reports};
use rstest::rstest;

#[rstest]
#[case(Format::Json, "report.json")]
#[case(Format::Junit, "junit.xml")]
#[case(Format::Html, "report.html")]
#[case(Format::Markdown, "summary.md")]
#[case(Format::Sarif, "report.sarif")]
#[case(Format::Tap, "report.tap")]
fn a_file_report_is_as_its_golden(#[case] format: Format, #[case] golden: &str) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("made/for/it").join(golden);
    let report = FileReport::new(&path, format, &run::requirements()).expect("a place to write");
    assert!(tell(vec![Box::new(report)]).errors.is_empty());
    compare(golden, &fs::read_to_string(&path).expect("a report"));
}

#[rstest]
#[case(Verbosity::Quiet, false, "console-quiet.txt")]
#[case(Verbosity::Normal, false, "console.txt")]
#[case(Verbosity::Normal, true, "console-colour.txt")]
#[case(Verbosity::Passes, false, "console-v.txt")]
#[case(Verbosity::Exchanges, false, "console-vv.txt")]
fn the_console_is_as_its_golden(#[case] verbosity: Verbosity, #[case] colour: bool, #[case] golden: &str) {
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
    assert!(tell(vec![Box::new(console)]).errors.is_empty());
    compare(golden, &format!("--- standard error\n{}--- standard output\n{}", live.text(), out.text()));
}

#[test]
fn annotations_are_as_their_golden() {
    let out = Buffer::default();
    assert!(tell(vec![Box::new(Github::new(out.clone()))]).errors.is_empty());
    compare("github.txt", &out.text());
}

#[test]
fn a_trace_holds_the_exchanges_of_every_case_in_a_file_of_its_own() {
    let dir = tempfile::tempdir().expect("a directory");
    assert!(tell(vec![Box::new(Trace::new(dir.path()).expect("a directory"))]).errors.is_empty());
    let passed = dir.path().join("get/reads-back@configmaps.v1.txt");
    compare("trace.txt", &fs::read_to_string(passed).expect("a case that passed has a trace"));
    assert!(dir.path().join("create/taken-name@secrets.v1.txt").exists());
}

#[test]
fn a_json_report_reads_back_as_what_was_told() {
    let document = Document::load(&goldens().join("report.json")).expect("the golden is a report");
    let told = tell(Vec::new()).document;
    assert_eq!(document.summary, told.summary);
    assert_eq!(Format::Tap.render(&document, &run::requirements()).expect("TAP"), {
        Format::Tap.render(&told, &run::requirements()).expect("TAP")
    });
}

#[test]
fn no_secret_is_in_any_golden() {
    for entry in fs::read_dir(goldens()).expect("the goldens") {
        let path = entry.expect("a golden").path();
        let text = fs::read_to_string(&path).expect("text");
        for secret in run::SECRETS {
            assert!(!text.contains(secret), "{} tells {secret:?}", path.display());
        }
    }
}

#[test]
fn a_report_that_cannot_be_written_leaves_the_others_alone() {
    let out = Buffer::default();
    let reports: Vec<Box<dyn Report>> =
        vec![Box::new(Github::new(Closed)), Box::new(Github::new(out.clone()))];
    let finished = tell(reports);
    assert_eq!(finished.errors.len(), 1);
    assert!(finished.errors[0].to_string().contains("cannot write to the output"), "{}", finished.errors[0]);
    assert!(out.text().contains("::error"));
}

fn tell(reports: Vec<Box<dyn Report>>) -> Finished {
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
    assert!(expected == actual, "{diff}\nwith KUBEPROOF_BLESS=1 the golden becomes what is now");
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
