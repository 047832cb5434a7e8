//! Starts the servers that the comparison measures, and reads their memory.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::client::{Client, HOST, get};

/// The bearer token of the administrator of both servers.
pub(crate) const TOKEN: &str = "comparison";

/// How long a server may take to be ready.
const START_TIMEOUT: Duration = Duration::from_mins(2);

/// The pause between two requests to a server that is not ready.
const POLL: Duration = Duration::from_millis(2);

/// The certificate of all servers, in files.
pub(crate) struct Identity {
    /// The certificate in PEM format.
    pub(crate) certificate: String,
    directory: tempfile::TempDir,
}

impl Identity {
    /// Writes a new certificate and its key.
    pub(crate) fn new() -> io::Result<Self> {
        let pair = rcgen::generate_simple_self_signed([HOST.to_owned()]);
        let pair = pair.map_err(io::Error::other)?;
        let identity = Self { certificate: pair.cert.pem(), directory: tempfile::tempdir()? };
        fs::write(identity.certificate_file(), &identity.certificate)?;
        fs::write(identity.key_file(), pair.signing_key.serialize_pem())?;
        Ok(identity)
    }

    /// Returns the path of the certificate.
    pub(crate) fn certificate_file(&self) -> PathBuf {
        self.directory.path().join("server.crt")
    }

    fn key_file(&self) -> PathBuf {
        self.directory.path().join("server.key")
    }

    /// Returns the flags that all servers share.
    fn flags(&self) -> [OsString; 2] {
        let flag = |name: &str, path: PathBuf| {
            let mut flag = OsString::from(format!("--{name}="));
            flag.push(path);
            flag
        };
        [
            flag("tls-cert-file", self.certificate_file()),
            flag("tls-private-key-file", self.key_file()),
        ]
    }
}

/// A server that the comparison can start.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// `kubeproof serve`.
    InMemory,
    /// `kubeproof serve --data-dir`.
    OnDisk,
    /// `kubeproof serve --etcd-servers`.
    OnEtcd {
        /// The path of etcd.
        etcd: PathBuf,
    },
    /// The programs that envtest starts.
    KubeApiserver {
        /// The path of kube-apiserver.
        apiserver: PathBuf,
        /// The path of etcd.
        etcd: PathBuf,
    },
}

impl Kind {
    /// Returns the heading of the column.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::InMemory => "in memory",
            Self::OnDisk => "on disk",
            Self::OnEtcd { .. } => "on etcd",
            Self::KubeApiserver { .. } => "kube-apiserver and etcd",
        }
    }

    /// Returns the versions of the programs.
    pub(crate) fn versions(&self) -> io::Result<Vec<String>> {
        let kubeproof = || PathBuf::from(env!("CARGO_BIN_EXE_kubeproof"));
        let programs = match self {
            Self::InMemory | Self::OnDisk => vec![kubeproof()],
            Self::OnEtcd { etcd } => vec![kubeproof(), etcd.clone()],
            Self::KubeApiserver { apiserver, etcd } => vec![apiserver.clone(), etcd.clone()],
        };
        let versions = programs.iter().map(|program| {
            let output = Command::new(program).arg("--version").output()?;
            let text = String::from_utf8_lossy(&output.stdout);
            Ok(text.lines().next().unwrap_or_default().to_owned())
        });
        versions.collect()
    }
}

/// A running server. Dropping it stops its processes.
pub(crate) struct Server {
    /// The port on this host.
    pub(crate) port: u16,
    /// The time from the start of its first process to its first response to a client that is
    /// ready.
    pub(crate) ready_after: Duration,
    processes: Vec<Child>,
    /// Exists as long as the processes.
    directory: tempfile::TempDir,
}

impl Server {
    /// Starts a server and waits until it is ready.
    pub(crate) async fn start(
        kind: &Kind,
        identity: &Identity,
        client: &Client,
    ) -> io::Result<Self> {
        let port = free_port()?;
        let mut server = Self {
            port,
            ready_after: Duration::ZERO,
            processes: Vec::new(),
            directory: tempfile::tempdir()?,
        };
        let path = server.directory.path().to_owned();
        let mut commands = commands(kind, &path, port)?;
        if let Some(server) = commands.last_mut() {
            server.args(identity.flags());
        }
        let started = Instant::now();
        for (index, command) in commands.iter_mut().enumerate() {
            let log = fs::File::create(path.join(format!("{index}.log")))?;
            command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
            server.processes.push(command.spawn()?);
        }
        while !server.is_ready(client).await {
            if started.elapsed() > START_TIMEOUT {
                let log = path.join(format!("{}.log", commands.len() - 1));
                let log = fs::read_to_string(log).unwrap_or_default();
                return Err(io::Error::other(format!("{} is not ready:\n{log}", kind.name())));
            }
            tokio::time::sleep(POLL).await;
        }
        server.ready_after = started.elapsed();
        Ok(server)
    }

    async fn is_ready(&self, client: &Client) -> bool {
        let respond = async || client.connect(self.port).await?.send(get("/readyz")?).await;
        respond().await.is_ok()
    }

    /// Returns the address without a path.
    pub(crate) fn url(&self) -> String {
        format!("https://{HOST}:{}", self.port)
    }

    /// Returns the CPU time of all processes.
    pub(crate) fn cpu_time(&self) -> io::Result<Duration> {
        self.processes.iter().map(|process| cpu_time(process.id())).sum()
    }

    /// Returns the resident memory of all processes in bytes.
    pub(crate) fn memory(&self) -> io::Result<u64> {
        self.processes.iter().map(|process| resident(process.id())).sum()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        for process in self.processes.iter_mut().rev() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// Returns the programs in the order of their starts. The last one listens on the port.
fn commands(kind: &Kind, directory: &Path, port: u16) -> io::Result<Vec<Command>> {
    Ok(match kind {
        Kind::InMemory => vec![reference_server(port)],
        Kind::OnDisk => {
            let mut command = reference_server(port);
            command.arg("--data-dir").arg(directory.join("data"));
            vec![command]
        }
        Kind::OnEtcd { etcd } => {
            let etcd_port = free_port()?;
            let mut command = reference_server(port);
            command.arg("--etcd-servers").arg(format!("http://{HOST}:{etcd_port}"));
            vec![etcd_command(etcd, directory, etcd_port, free_port()?), command]
        }
        Kind::KubeApiserver { apiserver, etcd } => {
            write_credentials(directory)?;
            let etcd_port = free_port()?;
            vec![
                etcd_command(etcd, directory, etcd_port, free_port()?),
                apiserver_command(apiserver, directory, port, etcd_port),
            ]
        }
    })
}

fn reference_server(port: u16) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubeproof"));
    command.args(["serve", "--token", TOKEN, "--listen"]);
    command.arg(format!("127.0.0.1:{port}"));
    command
}

fn etcd_command(etcd: &Path, directory: &Path, port: u16, peer_port: u16) -> Command {
    let [client, peer] = [port, peer_port].map(|port| format!("http://127.0.0.1:{port}"));
    let mut command = Command::new(etcd);
    // envtest does not wait for the disk either.
    command.arg("--unsafe-no-fsync").arg("--data-dir").arg(directory.join("etcd"));
    command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
    command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
    command.args(["--initial-cluster", &format!("default={peer}")]);
    command
}

/// Returns the command with the flags of envtest, and tokens instead of client certificates.
fn apiserver_command(apiserver: &Path, directory: &Path, port: u16, etcd_port: u16) -> Command {
    let file = |name: &str| directory.join(name).display().to_string();
    let mut command = Command::new(apiserver);
    for (flag, value) in [
        ("etcd-servers", format!("http://127.0.0.1:{etcd_port}")),
        ("bind-address", "127.0.0.1".to_owned()),
        ("secure-port", port.to_string()),
        ("cert-dir", file("certificates")),
        ("token-auth-file", file("tokens.csv")),
        ("authorization-mode", "RBAC".to_owned()),
        ("service-cluster-ip-range", "10.0.0.0/24".to_owned()),
        ("service-account-issuer", "https://kubernetes.default.svc".to_owned()),
        ("service-account-signing-key-file", file("key.pem")),
        ("service-account-key-file", file("key.pub")),
        ("disable-admission-plugins", "ServiceAccount".to_owned()),
        ("allow-privileged", "true".to_owned()),
    ] {
        command.arg(format!("--{flag}={value}"));
    }
    command
}

fn write_credentials(directory: &Path) -> io::Result<()> {
    let key = rcgen::KeyPair::generate().map_err(io::Error::other)?;
    fs::write(directory.join("key.pem"), key.serialize_pem())?;
    fs::write(directory.join("key.pub"), key.public_key_pem())?;
    fs::write(directory.join("tokens.csv"), format!("{TOKEN},admin,admin,system:masters\n"))
}

fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// Returns the resident memory of a process on Linux, in bytes.
fn resident(process: u32) -> io::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes.map(|kilobytes| kilobytes * 1024).ok_or_else(|| io::Error::other("no VmRSS"))
}

/// Returns the time that a process used so far in user and kernel mode, on Linux.
fn cpu_time(process: u32) -> io::Result<Duration> {
    /// Linux counts in hundredths of a second on all platforms.
    const TICK: Duration = Duration::from_millis(10);
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The name of the program is in parentheses and can have spaces.
    let fields = stat.rsplit_once(')').map(|(_, fields)| fields.split_whitespace().skip(11));
    let ticks = fields.map(|fields| fields.take(2).filter_map(|field| field.parse::<u32>().ok()));
    let ticks = ticks.map(Iterator::sum::<u32>);
    ticks.map(|ticks| TICK * ticks).ok_or_else(|| io::Error::other("no CPU time"))
}
