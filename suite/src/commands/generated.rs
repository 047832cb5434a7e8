//! The frame of the commands with generated requests.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use kubeproof_harness::event::BUNDLED;
use kubeproof_harness::generated::GeneratedError;
use kubeproof_harness::plan::RunOptions;
use kubeproof_harness::transport::{Client, Limits};
use tokio_util::sync::CancellationToken;

use super::interruptible;
use super::run::target::RunTarget;
use crate::args::high::Target;
use crate::error::Error;
use crate::exit_code::Exit;

/// The server of a command, and what may be written to it.
pub(super) struct Setup {
    /// The first word of the output.
    pub(super) title: &'static str,
    pub(super) target: Target,
    pub(super) limits: Limits,
    pub(super) options: RunOptions,
    /// The files that a violation is written to.
    pub(super) files: Vec<PathBuf>,
}

/// The result of the work.
pub(super) struct Report {
    pub(super) notices: Vec<String>,
    /// One line with the number of checks or operations.
    pub(super) summary: String,
    pub(super) violation: Option<Found>,
}

/// A violation.
pub(super) struct Found {
    pub(super) text: String,
    /// The files to write, with their content.
    pub(super) files: Vec<(PathBuf, String)>,
}

/// Does the work on the server, prints its report, and saves a violation. Returns the exit code.
pub(super) async fn run(
    setup: Setup,
    out: &mut dyn Write,
    work: impl AsyncFnOnce(Client, CancellationToken) -> Result<Report, GeneratedError>,
) -> Result<Exit, Error> {
    let Setup { title, target, limits, options, files } = setup;
    // Unwritable files are usage errors, so they are found before the first request.
    files.iter().try_for_each(|path| check_writable(path))?;
    let target = RunTarget::open(target).await?;
    let client = Client::new(&target.config, limits)?.within(options.write_policy());
    let url = target.config.display_url();
    let server = if options.bundled { BUNDLED } else { &url };
    writeln!(out, "{title} of {server}, seed {}", options.seed)?;
    out.flush()?;
    let done = interruptible(|interrupt| async move {
        let report = work(client, interrupt.clone()).await;
        (report, interrupt.is_cancelled())
    });
    // The user interrupted it twice.
    let Some((report, is_interrupted)) = done.await? else { return Ok(Exit::INTERRUPTED) };
    let report = report?;
    print(&report, out)?;
    match report.violation {
        Some(found) => {
            found.files.iter().try_for_each(|(path, content)| save(path, content))?;
            Ok(Exit::FAILURES)
        }
        None if is_interrupted => Ok(Exit::INTERRUPTED),
        None => Ok(Exit::CONFORMANT),
    }
}

fn print(report: &Report, out: &mut dyn Write) -> Result<(), Error> {
    for notice in &report.notices {
        writeln!(io::stderr(), "note: {notice}")?;
    }
    writeln!(out, "{}", report.summary)?;
    match &report.violation {
        Some(found) => write!(out, "{}", found.text)?,
        None => writeln!(out, "no violation")?,
    }
    Ok(())
}

/// Creates the directory of a file, and opens the file without a change to its content.
fn check_writable(path: &Path) -> Result<(), Error> {
    let failed = |source| Error::Write { path: path.to_owned(), source };
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).map_err(failed)?;
    }
    let exists = path.exists();
    OpenOptions::new().append(true).create(true).open(path).map_err(failed)?;
    if exists { Ok(()) } else { fs::remove_file(path).map_err(failed) }
}

fn save(path: &Path, content: &str) -> Result<(), Error> {
    let failed = |source| Error::Write { path: path.to_owned(), source };
    fs::write(path, content).map_err(failed)
}
