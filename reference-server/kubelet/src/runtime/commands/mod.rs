//! The programs of the scripted runtime.
//!
//! They support the options that scripts of tests use, and reject all others. Scripts therefore
//! cannot depend on an option that a real container would handle differently.

mod archive;
mod files;
mod network;
mod system;
mod text;

use std::future::Future;
use std::io;
use std::pin::Pin;

use super::machine::{BROKEN_PIPE, Program, base_name};
use super::shell;

/// The exit code of a command, or an output without a reader.
type Outcome = io::Result<i32>;

type Running = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// Returns the program of a name.
fn command(name: &str) -> Option<fn(Program) -> Running> {
    Some(match name {
        "cat" => |program| Box::pin(text::cat(program)),
        "date" => |program| Box::pin(system::date(program)),
        "echo" => |program| Box::pin(text::echo(program)),
        "env" => |program| Box::pin(system::env(program)),
        "false" => |_| Box::pin(async { Ok(1) }),
        "head" => |program| Box::pin(text::head(program)),
        "hostname" => |program| Box::pin(system::hostname(program)),
        "httpd" => |program| Box::pin(network::httpd(program)),
        "ls" => |program| Box::pin(files::ls(program)),
        "mkdir" => |program| Box::pin(files::mkdir(program)),
        "nc" => |program| Box::pin(network::nc(program)),
        "printenv" => |program| Box::pin(system::printenv(program)),
        "printf" => |program| Box::pin(text::printf(program)),
        "pwd" => |program| Box::pin(system::pwd(program)),
        "rm" => |program| Box::pin(files::rm(program)),
        "seq" => |program| Box::pin(text::seq(program)),
        "sh" => |program| Box::pin(shell::main(program)),
        "sha256sum" => |program| Box::pin(text::sha256sum(program)),
        "sleep" => |program| Box::pin(system::sleep(program)),
        "stty" => |program| Box::pin(system::stty(program)),
        "tail" => |program| Box::pin(text::tail(program)),
        "tar" => |program| Box::pin(archive::tar(program)),
        "tee" => |program| Box::pin(text::tee(program)),
        "test" | "[" => |program| Box::pin(files::test(program)),
        "touch" => |program| Box::pin(files::touch(program)),
        "tr" => |program| Box::pin(text::tr(program)),
        "true" => |_| Box::pin(async { Ok(0) }),
        "tty" => |program| Box::pin(system::tty(program)),
        "wc" => |program| Box::pin(text::wc(program)),
        "yes" => |program| Box::pin(text::yes(program)),
        _ => return None,
    })
}

pub(super) fn exists(name: &str) -> bool {
    command(base_name(name)).is_some()
}

/// Runs a program until it ends. Returns none for an unknown program.
pub(super) async fn run(program: Program) -> Option<i32> {
    let start = command(program.name())?;
    Some(start(program).await.unwrap_or(BROKEN_PIPE))
}

/// Rejects an unsupported option or argument.
async fn usage(program: &Program, what: &str) -> Outcome {
    program.complain(&format!("invalid option or argument: {what}")).await?;
    Ok(2)
}
