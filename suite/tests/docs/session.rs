//! Runs the commands of a page.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use libtest_mimic::Failed;
use tempfile::TempDir;

use crate::commands;
use crate::page::Item;

/// The directory and the background processes of a page.
pub(crate) struct Session {
    directory: TempDir,
    /// Free ports by the ports of the page.
    ports: BTreeMap<String, String>,
    background: Vec<Child>,
}

impl Session {
    /// Creates the directory, and reserves a port for each background server.
    pub(crate) fn new(items: &[Item]) -> Result<Self, Failed> {
        let words = commands(items).flat_map(str::split_whitespace).collect::<Vec<_>>();
        let listen = words.windows(2).filter(|pair| pair[0] == "--listen");
        let mut ports = BTreeMap::new();
        for address in listen.map(|pair| pair[1]).filter(|address| !address.ends_with(":0")) {
            // Closing the socket frees the port for the server of the page.
            let free = TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
            ports.insert(address.to_owned(), free);
        }
        Ok(Self { directory: TempDir::new()?, ports, background: Vec::new() })
    }

    /// Runs a command and compares its output, or writes a file.
    pub(crate) fn run(&mut self, item: &Item) -> Result<(), Failed> {
        match item {
            Item::File { path, content } => {
                let path = self.directory.path().join(path);
                fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
                Ok(fs::write(path, content)?)
            }
            Item::Command { command, .. } if command.starts_with("kubectl ") && !has_kubectl() => {
                Ok(())
            }
            Item::Command { line, command, exit_code, output } => {
                let (actual, code) = match command.strip_suffix('&') {
                    Some(command) => (self.start(command)?, 0),
                    None => self.finish(command)?,
                };
                let matches = output.is_empty() || matches(output, &lines(&actual));
                if matches && code == *exit_code {
                    return Ok(());
                }
                let expected = output.join("\n");
                Err(format!(
                    "line {line}: {command}\nexpected exit code {exit_code}, got {code}\n\
                     --- expected\n{expected}\n--- actual\n{actual}"
                )
                .into())
            }
        }
    }

    /// Starts a background process. Returns its first line of output.
    fn start(&mut self, command: &str) -> Result<String, Failed> {
        // The shell is replaced, so that the process itself can be killed.
        let mut shell = self.shell(&format!("exec {command}"));
        let mut process = shell.stdout(Stdio::piped()).spawn()?;
        let stdout = process.stdout.take().ok_or("no output")?;
        self.background.push(process);
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        Ok(self.with_page_ports(line))
    }

    fn finish(&self, command: &str) -> Result<(String, i32), Failed> {
        let output = self.shell(&format!("exec 2>&1\n{command}")).output()?;
        let code = output.status.code().ok_or("the command was killed")?;
        Ok((self.with_page_ports(String::from_utf8(output.stdout)?), code))
    }

    fn shell(&self, script: &str) -> Command {
        let mut script = script.to_owned();
        for (of_page, free) in &self.ports {
            script = script.replace(of_page, free);
        }
        let program = Path::new(env!("CARGO_BIN_EXE_kubeproof"));
        let directory = program.parent().unwrap_or(Path::new("/")).display().to_string();
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("sh");
        command.args(["-c", &script]).current_dir(self.directory.path()).stdin(Stdio::null());
        command.env("PATH", format!("{directory}:{path}")).env("HOME", self.directory.path());
        for name in ["KUBECONFIG", "NO_COLOR", "COLUMNS", "http_proxy", "https_proxy"] {
            command.env_remove(name);
        }
        command.process_group(0);
        command
    }

    fn with_page_ports(&self, text: String) -> String {
        self.ports.iter().fold(text, |text, (of_page, free)| text.replace(free, of_page))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        for process in &mut self.background {
            // Both fail if the process has ended already.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// Returns whether kubectl is installed, or required by `KUBEPROOF_REQUIRE_KUBECTL=1`.
fn has_kubectl() -> bool {
    let is_required = std::env::var("KUBEPROOF_REQUIRE_KUBECTL").is_ok_and(|value| value == "1");
    is_required || Command::new("kubectl").args(["version", "--client"]).output().is_ok()
}

fn lines(text: &str) -> Vec<&str> {
    text.lines().map(str::trim_end).collect()
}

/// Returns whether lines match patterns. A pattern `...` matches any number of lines.
fn matches(patterns: &[String], lines: &[&str]) -> bool {
    match (patterns.split_first(), lines.split_first()) {
        (None, _) => lines.is_empty(),
        (Some((pattern, rest)), _) if pattern == "..." => {
            (0..=lines.len()).any(|skipped| matches(rest, &lines[skipped..]))
        }
        (Some(_), None) => false,
        (Some((pattern, rest)), Some((line, others))) => {
            matches_line(pattern.trim_end(), line) && matches(rest, others)
        }
    }
}

/// Returns whether a line matches a pattern. `[..]` matches any text.
fn matches_line(pattern: &str, line: &str) -> bool {
    match pattern.split_once("[..]") {
        None => pattern == line,
        Some((start, rest)) => line.strip_prefix(start).is_some_and(|line| {
            let ends = line.char_indices().map(|(at, _)| at).chain([line.len()]);
            ends.into_iter().any(|at| matches_line(rest, &line[at..]))
        }),
    }
}
