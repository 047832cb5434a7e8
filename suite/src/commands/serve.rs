//! `kubeproof serve`: runs the reference server until it is interrupted.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use kubeproof_reference_server::{Fault, Running, Server, Variation};

use crate::args::high::{Serve, ServerOptions};
use crate::error::Error;
use crate::exit_code::Exit;
use crate::signals::Signals;
use crate::table;

pub(super) async fn serve(serve: Serve) -> Result<Exit, Error> {
    match serve {
        Serve::ListFaults => list_faults(&mut io::stdout().lock())?,
        Serve::ListVariations => list_variations(&mut io::stdout().lock())?,
        Serve::Start(options) => run_server(*options).await?,
    }
    Ok(Exit::CONFORMANT)
}

/// Runs the server until the first signal. A second signal interrupts the shutdown.
async fn run_server(mut options: ServerOptions) -> Result<(), Error> {
    let mut signals = Signals::listen().map_err(Error::Runtime)?;
    let server = Server::start(std::mem::take(&mut options.config)).await?;
    // The kubeconfig must exist when the server prints that it is ready.
    if let Some(path) = &options.kubeconfig_out {
        write_private(path, &server.kubeconfig())
            .map_err(|source| Error::Write { path: path.clone(), source })?;
    }
    announce(&options, &server, &mut io::stdout().lock())?;
    signals.next().await;
    let stopped = async {
        server.drain().await;
        if let Some(path) = &options.snapshot {
            return server.shutdown_with_snapshot(path).await;
        }
        server.shutdown().await;
        Ok(())
    };
    tokio::select! {
        saved = stopped => Ok(saved?),
        () = signals.next() => Ok(()),
    }
}

/// Prints the address, the variations, and how to authenticate.
fn announce(options: &ServerOptions, server: &Running, out: &mut dyn Write) -> Result<(), Error> {
    writeln!(out, "listening on {}", server.url())?;
    out.flush()?;
    // The reader may close the pipe after the first line, so later errors are ignored.
    if let Some(variations) = &options.varied {
        let names: Vec<&str> = variations.iter().map(Variation::name).collect();
        let _ = writeln!(out, "varies: {}", names.join(" "));
    }
    let _ = match &options.kubeconfig_out {
        Some(path) => writeln!(out, "kubeconfig: {}", path.display()),
        None if options.has_random_token => writeln!(out, "token: {}", server.admin_token()),
        None => Ok(()),
    };
    Ok(())
}

fn list_faults(out: &mut dyn Write) -> Result<(), Error> {
    let rows = Fault::all().map(|fault| [fault.name().to_owned(), fault.summary().to_owned()]);
    Ok(table::write(out, ["FAULT", "BEHAVIOUR"], &rows.collect::<Vec<_>>())?)
}

fn list_variations(out: &mut dyn Write) -> Result<(), Error> {
    let rows = Variation::all()
        .map(|variation| [variation.name().to_owned(), variation.summary().to_owned()]);
    Ok(table::write(out, ["VARIATION", "BEHAVIOUR"], &rows.collect::<Vec<_>>())?)
}

/// Writes a file atomically. Temporary files are readable by their owner only, so this file is too.
fn write_private(path: &Path, content: &str) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    fs::create_dir_all(parent)?;
    let mut file = tempfile::NamedTempFile::new_in(parent)?;
    file.write_all(content.as_bytes())?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}
