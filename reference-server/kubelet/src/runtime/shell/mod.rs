//! A subset of the POSIX shell: lists, pipelines, redirections, loops, conditions, variables,
//! quoting.
//!
//! Unsupported syntax ends in an error message and the exit code of a POSIX shell: 2 for syntax,
//! 127 for an unknown command. Background commands end with their shell, like processes with the
//! main process of a container.

mod arithmetic;
mod builtins;
mod expand;
mod lexer;
mod parser;
mod run;
mod syntax;

use std::collections::BTreeMap;
use std::io;

use self::run::{Background, Shell, Stop};
use self::syntax::SyntaxError;
use super::machine::{BROKEN_PIPE, Program};

/// The exit code for a syntax error.
const SYNTAX: i32 = 2;

/// `sh -c SCRIPT [NAME ARGUMENT..]`, `sh FILE [ARGUMENT..]`, or commands from standard input.
pub(super) async fn main(program: Program) -> io::Result<i32> {
    let mut args = program.arguments().to_vec();
    let mut exit_on_error = false;
    let mut script = None;
    while let Some(letters) = args.first().and_then(|arg| arg.strip_prefix('-')) {
        let letters = letters.to_owned();
        args.remove(0);
        for letter in letters.chars() {
            match letter {
                'c' if script.is_none() && !args.is_empty() => script = Some(args.remove(0)),
                'e' => exit_on_error = true,
                'i' | 'l' => {}
                _ => {
                    program.complain(&format!("illegal option -{letter}")).await?;
                    return Ok(SYNTAX);
                }
            }
        }
    }
    if script.is_none() && !args.is_empty() {
        let path = super::files::resolve(&program.directory, &args[0]);
        match program.machine.files.read(&path) {
            Ok(content) => script = Some(String::from_utf8_lossy(&content).into_owned()),
            Err(error) => {
                program.complain(&format!("can't open '{}': {error}", args[0])).await?;
                return Ok(127);
            }
        }
    }
    let name = if args.is_empty() { program.args[0].clone() } else { args.remove(0) };
    let mut shell = Shell {
        exported: program.environment.keys().cloned().collect(),
        variables: BTreeMap::clone(&program.environment),
        positional: args,
        name,
        status: 0,
        exit_on_error,
        background: Background::default(),
        program,
    };
    let stopped = match script {
        Some(script) => shell.script(&script).await,
        None => interactive(&mut shell).await,
    };
    match stopped {
        Ok(code) | Err(Stop::Exit(code)) => Ok(code),
        Err(Stop::Break | Stop::Continue) => Ok(0),
        Err(Stop::Broken) => Ok(BROKEN_PIPE),
    }
}

/// Runs commands line by line as they arrive.
async fn interactive(shell: &mut Shell) -> Result<i32, Stop> {
    let mut text = String::new();
    loop {
        if shell.program.terminal.is_some() {
            let prompt = if text.is_empty() {
                format!("{} # ", shell.program.directory)
            } else {
                "> ".to_owned()
            };
            shell.program.io.stderr.write(prompt.as_bytes()).await?;
        }
        let line = shell.program.io.stdin.line().await;
        text.push_str(&String::from_utf8_lossy(&line));
        match parser::parse(&text) {
            Err(SyntaxError::Incomplete) if !line.is_empty() => continue,
            _ if line.is_empty() && text.is_empty() => return Ok(shell.status),
            _ => {}
        }
        let script = std::mem::take(&mut text);
        match shell.script(&script).await {
            Err(Stop::Break | Stop::Continue) => {}
            other => {
                other?;
            }
        }
    }
}

#[cfg(test)]
mod tests;
