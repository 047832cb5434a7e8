//! Prints a table of speed figures of the reference server, and of a kube-apiserver in the same
//! run:
//!
//! ```sh
//! cargo bench --package kubeproof --bench comparison -- --kube-apiserver PATH --etcd PATH
//! ```
//!
//! Without the paths, the table has only the reference server. All requests use TLS and HTTP/2, as
//! those of client-go do. The rounds of the servers alternate, and the table has the median. Both
//! columns depend on the machine, so compare the ratios. `docs/comparison.md` has a run.

mod load;
mod servers;

use std::io;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use reqwest::Client;

use self::load::{creates, lists, reads};
use self::servers::{Kind, Server, TOKEN};

/// Rounds of each measurement.
const ROUNDS: usize = 5;

/// Starts of each server.
const STARTS: usize = 3;

/// How long a server is idle before its memory is read.
const IDLE: Duration = Duration::from_secs(5);

/// One row of the table: the values of all servers.
struct Row {
    name: &'static str,
    unit: Unit,
    values: Vec<f64>,
}

#[derive(Clone, Copy)]
enum Unit {
    Seconds,
    Mebibytes,
    PerSecond,
}

#[tokio::main]
async fn main() -> ExitCode {
    match measure().await {
        Ok(table) => {
            print(&table);
            ExitCode::SUCCESS
        }
        Err(error) => {
            print(&format!("error: {error}"));
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stdout, reason = "the table is the output of this program")]
fn print(text: &str) {
    println!("{text}");
}

async fn measure() -> io::Result<String> {
    let kinds = kinds(std::env::args().skip(1))?;
    let client = client()?;
    let mut rows = vec![Row::new("ready after", Unit::Seconds)];
    let mut running = Vec::new();
    for kind in &kinds {
        let mut times = Vec::new();
        for _ in 1..STARTS {
            times.push(Server::start(kind, &client).await?.ready_after.as_secs_f64());
        }
        let server = Server::start(kind, &client).await?;
        times.push(server.ready_after.as_secs_f64());
        rows[0].values.push(median(times));
        running.push(server);
    }

    tokio::time::sleep(IDLE).await;
    let mut memory = Row::new("memory when idle", Unit::Mebibytes);
    for server in &running {
        #[expect(clippy::cast_precision_loss, reason = "memory has less than 2^52 bytes")]
        memory.values.push(server.memory()? as f64 / f64::from(1 << 20));
    }
    rows.push(memory);

    let mut suite = Row::new("`kubeproof run`, all cases", Unit::Seconds);
    for server in &running {
        suite.values.push(run_cases(server)?.as_secs_f64());
    }
    rows.push(suite);

    let mut rates: [Vec<Vec<f64>>; 3] = std::array::from_fn(|_| vec![Vec::new(); running.len()]);
    for round in 0..ROUNDS {
        for (index, server) in running.iter().enumerate() {
            rates[0][index].push(creates(&client, server, round).await?);
            rates[1][index].push(reads(&client, server).await?);
            rates[2][index].push(lists(&client, server).await?);
        }
    }
    let names = ["POST of a ConfigMap", "GET of a ConfigMap", "LIST of 500 ConfigMaps"];
    for (name, rates) in names.into_iter().zip(rates) {
        let mut row = Row::new(name, Unit::PerSecond);
        row.values = rates.into_iter().map(median).collect();
        rows.push(row);
    }
    Ok(format!("{}\n\n{}", conditions(&kinds)?, table(&kinds, &rows)))
}

/// Parses the command line. cargo adds `--bench`.
fn kinds(arguments: impl Iterator<Item = String>) -> io::Result<Vec<Kind>> {
    let (mut apiserver, mut etcd) = (None, None);
    let mut arguments = arguments.filter(|argument| argument != "--bench");
    while let Some(argument) = arguments.next() {
        let value = match argument.as_str() {
            "--kube-apiserver" => &mut apiserver,
            "--etcd" => &mut etcd,
            _ => return Err(io::Error::other(format!("unknown argument {argument}"))),
        };
        *value = arguments.next();
    }
    let mut kinds = vec![Kind::ReferenceServer];
    match (apiserver, etcd) {
        (Some(apiserver), Some(etcd)) => {
            kinds.push(Kind::KubeApiserver { apiserver: apiserver.into(), etcd: etcd.into() });
        }
        (None, None) => {}
        _ => return Err(io::Error::other("expected --kube-apiserver PATH and --etcd PATH")),
    }
    Ok(kinds)
}

fn client() -> io::Result<Client> {
    // Both servers have certificates of their own.
    let client = Client::builder().danger_accept_invalid_certs(true).no_proxy();
    client.build().map_err(io::Error::other)
}

/// Runs all cases. Their verdicts have no influence on the comparison.
fn run_cases(server: &Server) -> io::Result<Duration> {
    let started = Instant::now();
    let status = Command::new(env!("CARGO_BIN_EXE_kubeproof"))
        .args(["run", "--quiet", "--server", &server.url, "--token", TOKEN])
        .arg("--insecure-skip-tls-verify")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    match status.code() {
        Some(0 | 1) => Ok(started.elapsed()),
        _ => Err(io::Error::other(format!("kubeproof run ended with {status}"))),
    }
}

/// Describes the machine and the programs.
fn conditions(kinds: &[Kind]) -> io::Result<String> {
    let processor = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let processor = processor.lines().find_map(|line| line.strip_prefix("model name"));
    let processor = processor.unwrap_or_default().trim_start_matches(['\t', ' ', ':']);
    let cores = std::thread::available_parallelism()?;
    let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
    let mut versions = Vec::new();
    for kind in kinds {
        versions.extend(kind.versions()?);
    }
    Ok(format!("{cores} cores, {processor}; {profile} build; {}", versions.join(", ")))
}

fn table(kinds: &[Kind], rows: &[Row]) -> String {
    let names = kinds.iter().map(|kind| kind.name().to_owned());
    let ratio = (kinds.len() > 1).then(|| "ratio".to_owned());
    let head: Vec<String> =
        std::iter::once("figure".to_owned()).chain(names).chain(ratio).collect();
    let mut alignment = vec!["--:"; head.len()];
    alignment[0] = "---";
    let lines = [head.join(" | "), alignment.join(" | ")];
    let rows = rows.iter().map(|row| {
        let mut cells = vec![row.name.to_owned()];
        cells.extend(row.values.iter().map(|value| row.unit.show(*value)));
        if let [ours, theirs] = row.values[..] {
            cells.push(format!("{:.1}", ours.max(theirs) / ours.min(theirs)));
        }
        cells.join(" | ")
    });
    let lines = lines.into_iter().chain(rows).map(|line| format!("| {line} |"));
    lines.collect::<Vec<_>>().join("\n")
}

impl Row {
    fn new(name: &'static str, unit: Unit) -> Self {
        Self { name, unit, values: Vec::new() }
    }
}

impl Unit {
    fn show(self, value: f64) -> String {
        match self {
            Self::Seconds if value < 1.0 => format!("{:.0} ms", value * 1000.0),
            Self::Seconds => format!("{value:.1} s"),
            Self::Mebibytes => format!("{value:.0} MiB"),
            Self::PerSecond => format!("{value:.0}/s"),
        }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}
