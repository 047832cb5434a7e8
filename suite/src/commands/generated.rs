//! The opening and the ending of the commands with generated requests.

use std::io::{self, Write};

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
}

/// Does the work on the server. Returns its report, and whether the user interrupted it. `None` if
/// the user did so twice.
pub(super) async fn start<R, W>(
    setup: Setup,
    out: &mut dyn Write,
    work: impl FnOnce(Client, CancellationToken) -> W,
) -> Result<Option<(R, bool)>, Error>
where
    W: Future<Output = Result<R, GeneratedError>>,
{
    let Setup { title, target, limits, options } = setup;
    let target = RunTarget::open(target).await?;
    let client = Client::new(&target.config, limits)?.within(options.write_policy());
    writeln!(out, "{title} of {}, seed {}", target.config.display_url(), options.seed)?;
    out.flush()?;
    let done = interruptible(|interrupt| async move {
        let report = work(client, interrupt.clone()).await;
        (report, interrupt.is_cancelled())
    });
    let Some((report, is_interrupted)) = done.await? else { return Ok(None) };
    Ok(Some((report?, is_interrupted)))
}

/// What a command prints at its end.
pub(super) struct Ending<'a> {
    pub(super) notices: &'a [String],
    /// One line with what was done.
    pub(super) summary: String,
    /// The violation as text.
    pub(super) violation: Option<String>,
    pub(super) is_interrupted: bool,
}

/// Prints the result. Returns the exit code.
pub(super) fn finish(ending: &Ending<'_>, out: &mut dyn Write) -> Result<Exit, Error> {
    for notice in ending.notices {
        writeln!(io::stderr(), "note: {notice}")?;
    }
    writeln!(out, "{}", ending.summary)?;
    if let Some(violation) = &ending.violation {
        write!(out, "{violation}")?;
        return Ok(Exit::FAILURES);
    }
    writeln!(out, "no violation")?;
    Ok(if ending.is_interrupted { Exit::INTERRUPTED } else { Exit::CONFORMANT })
}
