//! `kubeproof serve`: the reference server, for tests of anything that talks to an API server.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use kubeproof_reference_server::{Config, Cut, Fault, Running, Server, Tls, Variation, Variations};

use crate::args::low;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::signals::Signals;
use crate::table;

/// Serves until somebody asks it to stop.
pub(super) async fn serve(serve: &low::Serve) -> Result<Exit, Error> {
    if serve.list_faults {
        list_faults(&mut io::stdout().lock())?;
        return Ok(Exit::CONFORMANT);
    }
    if serve.list_variations {
        list_variations(&mut io::stdout().lock())?;
        return Ok(Exit::CONFORMANT);
    }
    let mut signals = Signals::listen().map_err(Error::Runtime)?;
    let mut config = Config {
        listen: serve.listen,
        tls: serve.tls.then(Tls::default),
        user_token: serve.user_token.clone(),
        history: serve.history,
        viewer_token: serve.viewer_token.clone(),
        node: true,
        cuts: serve
            .without
            .iter()
            .copied()
            .chain(serve.only_resource.then_some(Cut::OtherResources))
            .collect(),
        faults: named(&serve.fault)?,
        variations: variations(serve)?,
        ..Config::default()
    };
    if let Some(token) = &serve.token {
        config.admin_token.clone_from(token);
    }
    let server = Server::start(config).await?;
    if let Some(path) = &serve.kubeconfig_out {
        // Before anybody is told that the server is ready.
        write_private(path, &server.kubeconfig())
            .map_err(|source| Error::Write { path: path.clone(), source })?;
    }
    announce(serve, &server, &mut io::stdout().lock())?;
    signals.next().await;
    tokio::select! {
        () = server.shutdown() => {}
        () = signals.next() => {}
    }
    Ok(Exit::CONFORMANT)
}

/// Says that the server is ready, and how to get in.
fn announce(serve: &low::Serve, server: &Running, out: &mut dyn Write) -> Result<(), Error> {
    writeln!(out, "listening on {}", server.url())?;
    out.flush()?;
    // Whoever starts a server may read the first line and close the pipe: what follows is a courtesy.
    if let Some(seed) = serve.vary {
        let chosen: Vec<&str> = Variations::from_seed(seed).iter().map(Variation::name).collect();
        let _ = writeln!(out, "varies: {}", chosen.join(" "));
    }
    let _ = match &serve.kubeconfig_out {
        Some(path) => writeln!(out, "kubeconfig: {}", path.display()),
        // Nobody else could tell it.
        None if serve.token.is_none() => writeln!(out, "token: {}", server.admin_token()),
        None => Ok(()),
    };
    Ok(())
}

fn list_faults(out: &mut dyn Write) -> Result<(), Error> {
    let rows: Vec<_> =
        Fault::all().map(|fault| [fault.name().to_owned(), fault.summary().to_owned()]).collect();
    Ok(table::write(out, ["FAULT", "WHAT IS WRONG"], &rows)?)
}

fn list_variations(out: &mut dyn Write) -> Result<(), Error> {
    let rows: Vec<_> = Variation::all()
        .map(|variation| [variation.name().to_owned(), variation.summary().to_owned()])
        .collect();
    Ok(table::write(out, ["VARIATION", "HOW THE SERVER DIFFERS"], &rows)?)
}

/// Those that the seed chooses, and those that were named.
fn variations(serve: &low::Serve) -> Result<Variations, Error> {
    let chosen = serve.vary.map_or(Variations::none(), Variations::from_seed);
    serve.variation.iter().try_fold(chosen, |variations, name| {
        let all = Variation::all().map(Variation::name);
        let variation = Variation::from_name(name).ok_or_else(|| Error::unknown("variation", name, all))?;
        Ok(variations.with(variation))
    })
}

/// The faults of these names.
pub(super) fn named<C: FromIterator<Fault>>(names: &[String]) -> Result<C, Error> {
    let fault = |name: &String| {
        Fault::from_name(name).ok_or_else(|| Error::unknown("fault", name, Fault::all().map(Fault::name)))
    };
    names.iter().map(fault).collect()
}

/// Whole or not at all, and for its owner alone: temporary files are.
fn write_private(path: &Path, content: &str) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(parent)?;
    let mut file = tempfile::NamedTempFile::new_in(parent)?;
    file.write_all(content.as_bytes())?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}
