//! Sessions of kubectl: every command of `sessions/*.console` has the listed exit code and output.
//!
//! `$ COMMAND` runs in a shell, in a copy of `sessions/files`. `? CODE` is its exit code, 0 if
//! absent. The lines below must be among those of the output, in this order. `[..]` stands for
//! any text, and the number of spaces is free. `(1.24)` limits a command to kubectl 1.24 and later,
//! `(<1.24)` to earlier versions.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Output;

use regex::Regex;
use rstest::rstest;

use crate::support::Kubectl;

const DIRECTORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/kubectl/sessions");

/// All sessions together have at least this number of commands for every kubectl.
const COMMANDS: usize = 80;

#[derive(Debug)]
struct Step {
    command: String,
    code: i32,
    lines: Vec<String>,
    versions: Versions,
}

#[derive(Debug)]
enum Versions {
    All,
    From(u32),
    Before(u32),
}

impl Step {
    fn runs_with(&self, minor: u32) -> bool {
        match self.versions {
            Versions::All => true,
            Versions::From(first) => minor >= first,
            Versions::Before(last) => minor < last,
        }
    }

    /// Returns what is wrong with the result of the command.
    fn judge(&self, output: &Output) -> Result<(), String> {
        let out = String::from_utf8_lossy(&output.stdout);
        let err = String::from_utf8_lossy(&output.stderr);
        let shown = || format!("$ {}\n{out}{err}", self.command);
        if output.status.code() != Some(self.code) {
            let status = output.status;
            return Err(format!("expected exit code {}, got {status}\n{}", self.code, shown()));
        }
        let mut lines = out.lines().chain(err.lines()).map(one_space);
        for line in &self.lines {
            if !lines.any(|shown| matches(line, &shown)) {
                return Err(format!("expected the line {line:?}\n{}", shown()));
            }
        }
        Ok(())
    }
}

fn matches(pattern: &str, line: &str) -> bool {
    let pieces: Vec<String> = pattern.split("[..]").map(regex::escape).collect();
    let pattern = format!("^{}$", pieces.join(".*"));
    Regex::new(&pattern).expect("escaped text is a pattern").is_match(line)
}

fn one_space(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn parse(text: &str) -> Vec<Step> {
    let head = Regex::new(r"^(?:\((<?)1\.(\d+)\) )?\$ (.+)$").expect("a pattern");
    let mut steps: Vec<Step> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        if let Some(parts) = head.captures(line) {
            let minor = parts.get(2).map(|minor| minor.as_str().parse().expect("a number"));
            let versions = match minor {
                None => Versions::All,
                Some(minor) if &parts[1] == "<" => Versions::Before(minor),
                Some(minor) => Versions::From(minor),
            };
            let command = parts[3].to_owned();
            steps.push(Step { command, code: 0, lines: Vec::new(), versions });
        } else if let Some(step) = steps.last_mut() {
            match line.strip_prefix("? ") {
                Some(code) => step.code = code.parse().expect("an exit code"),
                None => step.lines.push(one_space(line)),
            }
        }
    }
    steps
}

fn read(name: &str) -> Vec<Step> {
    let path = format!("{DIRECTORY}/{name}.console");
    parse(&fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}")))
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() { copy(&from, &to)? } else { fs::copy(&from, &to).map(drop)? }
    }
    Ok(())
}

#[rstest]
#[case::objects("objects")]
#[case::output("output")]
#[case::workloads("workloads")]
#[case::access("access")]
#[case::nodes("nodes")]
#[tokio::test]
async fn commands_of_a_session_succeed(#[case] name: &str) {
    let steps = read(name);
    for kubectl in Kubectl::start_oldest_and_newest().await {
        let minor = kubectl.minor().await;
        copy(Path::new(&format!("{DIRECTORY}/files")), kubectl.home()).expect("files are copied");
        let mut wrong = Vec::new();
        for step in steps.iter().filter(|step| step.runs_with(minor)) {
            let output = kubectl.shell(&step.command).await;
            wrong.extend(step.judge(&output).err());
        }
        assert!(wrong.is_empty(), "{}:\n{}", kubectl.name(), wrong.join("\n"));
    }
}

#[test]
fn every_version_runs_many_commands() {
    let steps: Vec<Step> =
        ["objects", "output", "workloads", "access", "nodes"].into_iter().flat_map(read).collect();
    for minor in [20, 33] {
        let count = steps.iter().filter(|step| step.runs_with(minor)).count();
        assert!(count >= COMMANDS, "1.{minor}: {count} commands");
    }
}
