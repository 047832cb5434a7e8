//! `kubeproof kube-apiserver`: runs the reference server with the flags of kube-apiserver.

use std::io::{self, Write as _};
use std::path::Path;

use kubeproof_reference_server::Server;

use super::warn;
use crate::args::high::{ApiserverOptions, KubeApiserver};
use crate::error::Error;
use crate::exit_code::Exit;
use crate::signals::Signals;

pub(in crate::commands) async fn kube_apiserver(command: KubeApiserver) -> Result<Exit, Error> {
    match command {
        KubeApiserver::Print(text) => io::stdout().lock().write_all(text.as_bytes())?,
        KubeApiserver::Start(options) => start(*options).await?,
    }
    Ok(Exit::CONFORMANT)
}

/// Runs the server until the first signal. A second signal interrupts the shutdown.
async fn start(options: ApiserverOptions) -> Result<(), Error> {
    let mut signals = Signals::listen().map_err(Error::Runtime)?;
    warn(&options.warnings);
    let server = Server::start(options.config).await?;
    if let (Some(dir), Some(pem)) = (&options.certificate_directory, server.ca_pem()) {
        write_certificate(dir, pem)?;
    }
    writeln!(io::stdout().lock(), "listening on {}", server.url())?;
    signals.next().await;
    let stopped = async {
        server.drain().await;
        server.shutdown().await;
    };
    tokio::select! {
        () = stopped => {}
        () = signals.next() => {}
    }
    Ok(())
}

/// Writes the generated authority to the file where clients expect the certificate to trust.
fn write_certificate(dir: &Path, pem: &str) -> Result<(), Error> {
    let path = dir.join("apiserver.crt");
    let written = std::fs::create_dir_all(dir).and_then(|()| std::fs::write(&path, pem));
    written.map_err(|source| Error::Write { path, source })
}
