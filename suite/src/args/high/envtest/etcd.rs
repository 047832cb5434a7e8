//! The flags of etcd.

use super::flags::{Flag, Flags, help};
use crate::args::low;
use crate::error::Error;

/// The client URL of etcd without a flag.
const CLIENT_URL: &str = "http://localhost:2379";

/// What the program prints for `--version`, in the form of etcd.
const VERSION: &str = "etcd Version: 3.5.0 (health endpoint of kubeproof)\n";

/// The task of `kubeproof etcd`.
pub(crate) enum Etcd {
    /// Print the help or the version.
    Print(String),
    Start(EtcdOptions),
}

/// The addresses of the health endpoint.
pub(crate) struct EtcdOptions {
    /// Host and port of each client URL.
    pub(crate) listen: Vec<String>,
    /// The warnings about flags without effect.
    pub(crate) warnings: Vec<String>,
}

const FLAGS: &[Flag] = &[
    Flag { name: "listen-client-urls", value: "URLS", help: "Addresses of the health endpoint" },
    Flag { name: "advertise-client-urls", value: "URLS", help: "No effect" },
    Flag { name: "data-dir", value: "DIR", help: "No effect, nothing is stored" },
    Flag { name: "initial-advertise-peer-urls", value: "URLS", help: "No effect" },
    Flag { name: "initial-cluster", value: "NAMES", help: "No effect, there are no peers" },
    Flag { name: "listen-peer-urls", value: "URLS", help: "No effect, there are no peers" },
    Flag { name: "name", value: "NAME", help: "No effect" },
    Flag { name: "wal-dir", value: "DIR", help: "No effect, nothing is stored" },
    Flag { name: "unsafe-no-fsync", value: "", help: "No effect, nothing is stored" },
];

impl Etcd {
    pub(in crate::args::high) fn resolve(launcher: &low::Launcher) -> Result<Self, Error> {
        let flags = Flags::parse(&launcher.flags, FLAGS);
        if flags.help {
            return Ok(Self::Print(help("etcd", FLAGS)));
        }
        if flags.version {
            return Ok(Self::Print(VERSION.to_owned()));
        }
        let mut urls: Vec<&str> = flags.values("listen-client-urls").collect();
        if urls.is_empty() {
            urls.push(CLIENT_URL);
        }
        let listen = urls.into_iter().map(host_and_port).collect::<Result<_, _>>()?;
        Ok(Self::Start(EtcdOptions { listen, warnings: flags.warnings }))
    }
}

/// Returns the host and port of a URL. Only plain HTTP is possible.
fn host_and_port(url: &str) -> Result<String, Error> {
    let invalid = |reason: &str| Error::Flag {
        name: "listen-client-urls",
        value: url.to_owned(),
        reason: reason.to_owned(),
    };
    let host = url.strip_prefix("http://").ok_or_else(|| invalid("expected http://HOST:PORT"))?;
    let host = host.trim_end_matches('/');
    let port = host.rsplit_once(':').map(|(_, port)| port.parse::<u16>());
    match port {
        Some(Ok(_)) => Ok(host.to_owned()),
        _ => Err(invalid("expected a port")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listen(line: &str) -> Result<Vec<String>, String> {
        let flags = line.split_whitespace().map(str::to_owned).collect();
        match Etcd::resolve(&low::Launcher { flags }) {
            Ok(Etcd::Start(options)) => Ok(options.listen),
            Ok(Etcd::Print(text)) => panic!("{text}"),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn client_urls_are_addresses() {
        let expected = |addresses: &[&str]| Ok(addresses.iter().map(|&one| one.into()).collect());
        assert_eq!(listen(""), expected(&["localhost:2379"]));
        let line = "--listen-client-urls=http://127.0.0.1:1,http://[::1]:2/ --data-dir=x";
        assert_eq!(listen(line), expected(&["127.0.0.1:1", "[::1]:2"]));
        let error = listen("--listen-client-urls https://127.0.0.1:1").unwrap_err();
        assert!(error.contains("expected http://HOST:PORT"), "{error}");
        let error = listen("--listen-client-urls http://127.0.0.1").unwrap_err();
        assert!(error.contains("expected a port"), "{error}");
    }
}
