//! The tutorial for authors of cases: its files and commands work as printed.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn tutorial() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/write-cases.md");
    fs::read_to_string(page).expect("the tutorial")
}

/// Writes the files of the tutorial: a fenced block below the path of its file.
fn write_files(page: &str, folder: &Path) -> usize {
    let blocks = page.split("\n`my-cases/").skip(1).filter_map(|rest| {
        let (path, rest) = rest.split_once("`\n\n```yaml\n")?;
        let (text, _) = rest.split_once("```\n")?;
        (!path.contains('\n')).then_some((path, text))
    });
    let mut count = 0;
    for (path, text) in blocks {
        let path = folder.join("my-cases").join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a new folder");
        fs::write(path, text).expect("a new file");
        count += 1;
    }
    count
}

/// Runs a command line of the tutorial.
fn run(line: &str, folder: &Path) -> Output {
    Command::new("sh")
        .args([
            "-c",
            &line.replacen("kubeproof", &format!("'{}'", env!("CARGO_BIN_EXE_kubeproof")), 1),
        ])
        .current_dir(folder)
        .output()
        .expect("a shell")
}

#[test]
fn the_files_and_commands_of_the_tutorial_work() {
    let page = tutorial();
    let folder = tempfile::tempdir().expect("a folder");
    assert_eq!(write_files(&page, folder.path()), 4);
    // A server of the reader is not there. A backslash continues a command on the next line.
    let commands = page.replace("\\\n", "");
    let lines = commands.lines().filter_map(|line| line.strip_prefix("    kubeproof "));
    let lines: Vec<String> = lines
        .filter(|line| !line.contains("--server"))
        .map(|line| format!("kubeproof {line}"))
        .collect();
    assert_eq!(lines.len(), 4, "{lines:?}");
    for line in lines {
        let output = run(&line, folder.path());
        let text = format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        assert_eq!(output.status.code(), Some(0), "{line}\n{text}");
    }
}

#[test]
fn the_cases_of_the_tutorial_run_and_pass() {
    let folder = tempfile::tempdir().expect("a folder");
    write_files(&tutorial(), folder.path());
    let line = "kubeproof run --cases my-cases --only 'gates/*' --json report.json";
    assert_eq!(run(line, folder.path()).status.code(), Some(0));
    let report = fs::read_to_string(folder.path().join("report.json")).expect("a report");
    let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
    assert_eq!(report["summary"]["pass"], 2, "{}", report["summary"]);
    assert_eq!(report["results"].as_array().map(Vec::len), Some(2));
}
