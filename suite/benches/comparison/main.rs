//! Prints a table of speed figures of the reference server, and of a kube-apiserver in the same
//! run:
//!
//! ```sh
//! cargo bench --package kubeproof --bench comparison -- --kube-apiserver PATH --etcd PATH
//! ```
//!
//! Without the paths, the table has only the reference server, in memory and on disk. All requests
//! use TLS and HTTP/1.1. The rounds of the servers alternate, and the table has the median. All
//! columns depend on the machine, so compare the ratios. The client uses the same cores, and it can
//! need more time than the reference server. So the table also has the requests for each second of
//! CPU time of the server's processes. `docs/comparison.md` has a run.

mod client;
mod load;
mod servers;
mod table;

use std::io;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use tokio_rustls::rustls::crypto::ring;

use self::client::Client;
use self::load::{Load, Sample};
use self::servers::{Identity, Kind, Server, TOKEN};
use self::table::{Row, Unit, conditions, median, table};

/// Rounds of each measurement.
const ROUNDS: usize = 5;

/// Starts of each server.
const STARTS: usize = 3;

/// How long a server is idle before its memory is read.
const IDLE: Duration = Duration::from_secs(5);

// The servers get the other cores.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    // Only a second call fails.
    let _ = ring::default_provider().install_default();
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
    let identity = Identity::new()?;
    let client = Client::new(&identity.certificate)?;
    let mut ready = Row::new("ready after", Unit::Seconds);
    let mut running = Vec::new();
    for kind in &kinds {
        let mut times = Vec::new();
        for _ in 1..STARTS {
            times.push(Server::start(kind, &identity, &client).await?.ready_after.as_secs_f64());
        }
        let server = Server::start(kind, &identity, &client).await?;
        times.push(server.ready_after.as_secs_f64());
        ready.values.push(median(times));
        running.push(server);
    }

    tokio::time::sleep(IDLE).await;
    let mut memory = Row::new("memory when idle", Unit::Mebibytes);
    for server in &running {
        #[expect(clippy::cast_precision_loss, reason = "memory has less than 2^52 bytes")]
        memory.values.push(server.memory()? as f64 / f64::from(1 << 20));
    }

    let mut suite = Row::new("`kubeproof run`, all cases", Unit::Seconds);
    for server in &running {
        suite.values.push(run_cases(server, &identity)?.as_secs_f64());
    }

    let mut rows = vec![ready, memory, suite];
    rows.extend(loads(&client, &running).await?);
    Ok(format!("{}\n\n{}", conditions(&kinds)?, table(&kinds, &rows)))
}

/// Measures each load on all servers in turn.
async fn loads(client: &Client, servers: &[Server]) -> io::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for load in Load::ALL {
        let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); servers.len()];
        for server in servers {
            load.prepare(client, server).await?;
        }
        for round in 0..ROUNDS {
            for (server, samples) in servers.iter().zip(&mut samples) {
                samples.push(load.run(client, server, round).await?);
            }
        }
        let median_of = |value: fn(&Sample) -> f64| {
            samples.iter().map(|samples| median(samples.iter().map(value).collect())).collect()
        };
        let rate = Row::new(load.name(), Unit::PerSecond);
        let of_cpu = Row::new("… per second of its CPU", Unit::PerSecond);
        rows.push(rate.with(median_of(|sample| sample.per_second)));
        rows.push(of_cpu.with(median_of(|sample| sample.per_cpu_second)));
    }
    Ok(rows)
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
    let mut kinds = vec![Kind::InMemory, Kind::OnDisk];
    match (apiserver, etcd) {
        (Some(apiserver), Some(etcd)) => {
            kinds.push(Kind::OnEtcd { etcd: etcd.clone().into() });
            kinds.push(Kind::KubeApiserver { apiserver: apiserver.into(), etcd: etcd.into() });
        }
        (None, None) => {}
        _ => return Err(io::Error::other("expected --kube-apiserver PATH and --etcd PATH")),
    }
    Ok(kinds)
}

/// Runs all cases. Their verdicts have no influence on the comparison.
fn run_cases(server: &Server, identity: &Identity) -> io::Result<Duration> {
    let started = Instant::now();
    let status = Command::new(env!("CARGO_BIN_EXE_kubeproof"))
        .args(["run", "--quiet", "--server", &server.url(), "--token", TOKEN])
        .arg("--certificate-authority")
        .arg(identity.certificate_file())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    match status.code() {
        Some(0 | 1) => Ok(started.elapsed()),
        _ => Err(io::Error::other(format!("kubeproof run ended with {status}"))),
    }
}
