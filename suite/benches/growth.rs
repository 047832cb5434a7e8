//! Prints the memory of a long-lived server after runs of the suite against it:
//!
//! ```sh
//! cargo bench --package kubeproof --bench growth -- --runs 1000
//! ```
//!
//! The memory depends on the objects that exist now. So the last value is at most twice that after
//! ten runs. `--only PATTERN` runs a part of the suite.

use std::fs;
use std::io::{self, BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

/// The bearer token of the administrator.
const TOKEN: &str = "growth";

fn main() -> anyhow::Result<()> {
    let options = Options::parse(std::env::args().skip(1))?;
    let server = Server::start()?;
    print("| runs | memory |\n| --: | --: |");
    print(&format!("| 0 | {} MiB |", server.memory()? >> 20));
    let (mut after_ten, mut last) = (None, 0);
    for run in 1..=options.runs {
        server.run_cases(&options.only)?;
        last = server.memory()?;
        if run == 10 {
            after_ten = Some(last);
        }
        if is_shown(run) || run == options.runs {
            print(&format!("| {run} | {} MiB |", last >> 20));
        }
    }
    if let Some(after_ten) = after_ten {
        print(&format!("\nratio to the memory after 10 runs: {}.{:02}", last / after_ten, {
            last % after_ten * 100 / after_ten
        }));
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the table is the output of this program")]
fn print(text: &str) {
    println!("{text}");
}

/// Shows 1, 2, 5, 10, 20, 50 and so on.
fn is_shown(run: u64) -> bool {
    let mut power = 1;
    while power * 10 <= run {
        power *= 10;
    }
    [1, 2, 5].contains(&(run / power)) && run.is_multiple_of(power)
}

struct Options {
    runs: u64,
    only: Vec<String>,
}

impl Options {
    /// Parses the command line. cargo adds `--bench`.
    fn parse(arguments: impl Iterator<Item = String>) -> io::Result<Self> {
        let mut options = Self { runs: 20, only: Vec::new() };
        let mut arguments = arguments.filter(|argument| argument != "--bench");
        while let Some(argument) = arguments.next() {
            let value = arguments.next().unwrap_or_default();
            match argument.as_str() {
                "--runs" => options.runs = value.parse().map_err(io::Error::other)?,
                "--only" => options.only.push(value),
                _ => return Err(io::Error::other(format!("unknown argument {argument}"))),
            }
        }
        Ok(options)
    }
}

/// A running `kubeproof serve`. Dropping it stops the process.
struct Server {
    process: Child,
    url: String,
}

impl Server {
    fn start() -> io::Result<Self> {
        let mut process = Command::new(env!("CARGO_BIN_EXE_kubeproof"))
            .args(["serve", "--listen", "127.0.0.1:0", "--token", TOKEN])
            .stdout(Stdio::piped())
            .spawn()?;
        let output = process.stdout.take().ok_or_else(|| io::Error::other("no output"))?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        let url = line.trim().trim_start_matches("listening on ").to_owned();
        Ok(Self { process, url })
    }

    fn run_cases(&self, only: &[String]) -> io::Result<()> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kubeproof"));
        command.args(["run", "--quiet", "--no-progress", "--server", &self.url, "--token", TOKEN]);
        for pattern in only {
            command.args(["--only", pattern]);
        }
        let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status()?;
        match status.code() {
            Some(0) => Ok(()),
            _ => Err(io::Error::other(format!("kubeproof run ended with {status}"))),
        }
    }

    /// Returns the resident memory on Linux, in bytes.
    fn memory(&self) -> io::Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
        kilobytes.map(|count: u64| count * 1024).ok_or_else(|| io::Error::other("no VmRSS"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
