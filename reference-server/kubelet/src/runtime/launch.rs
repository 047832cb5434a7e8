//! Starts a program and returns the other ends of its pipes.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot, watch};

use super::commands;
use super::io::{Input, Io, Output};
use super::machine::{Machine, Program};
use super::process::{ExecRequest, Exit, PIPE_CAPACITY, Pipe, Process, StartError, TerminalSize};
use super::terminal;

/// The terminal sizes that wait for a process.
const RESIZES: usize = 8;

/// The exit code of a program that the user interrupted.
const INTERRUPTED: i32 = 130;

/// Starts a command. It runs until it ends, or until the caller drops `exit`.
pub(super) fn start(machine: &Arc<Machine>, request: &ExecRequest) -> Result<Process, StartError> {
    let name = request.command.first().ok_or(StartError::NoCommand)?;
    if !commands::exists(name) {
        return Err(StartError::NoSuchCommand(name.clone()));
    }
    let (resize, mut resizes) = mpsc::channel(RESIZES);
    let (exit, exited) = oneshot::channel();
    let (size, terminal) = watch::channel(TerminalSize::default());
    let mut near = Near::default();
    let (io, line) = if request.tty { near.terminal(request) } else { (near.plain(request), None) };
    let mut environment = machine.environment.clone();
    if request.tty {
        environment.entry("TERM".to_owned()).or_insert_with(|| "xterm".to_owned());
    }
    let program = Program {
        args: request.command.clone(),
        environment,
        directory: machine.directory.clone(),
        io,
        terminal: request.tty.then_some(terminal),
        machine: machine.clone(),
    };
    tokio::spawn(async move {
        let mut exit = exit;
        let follow_size = async {
            while let Some(new) = resizes.recv().await {
                size.send_replace(new);
            }
            std::future::pending().await
        };
        let interrupted = async {
            match line {
                Some(line) => line.edit().await,
                None => std::future::pending().await,
            }
        };
        let code = tokio::select! {
            code = program.run() => code,
            () = interrupted => Some(INTERRUPTED),
            never = follow_size => never,
            () = exit.closed() => return,
        };
        let how = code.map_or_else(|| Exit::Failed("the program is gone".to_owned()), Exit::Code);
        // The send fails when the caller has dropped its end.
        let _ = exit.send(how);
    });
    Ok(Process {
        stdin: near.stdin,
        stdout: near.stdout,
        stderr: near.stderr,
        resize,
        exit: exited,
    })
}

/// The ends of the pipes for the caller.
#[derive(Default)]
struct Near {
    stdin: Option<Pipe>,
    stdout: Option<Pipe>,
    stderr: Option<Pipe>,
}

impl Near {
    fn plain(&mut self, request: &ExecRequest) -> Io {
        let output = |wanted: bool, near: &mut Option<Pipe>| {
            if !wanted {
                return Output::nothing();
            }
            let (reader, writer) = tokio::io::duplex(PIPE_CAPACITY);
            *near = Some(reader);
            Output::pipe(writer)
        };
        Io {
            stdin: if request.stdin { Input::pipe(self.input()) } else { Input::empty() },
            stdout: output(request.stdout, &mut self.stdout),
            stderr: output(request.stderr, &mut self.stderr),
        }
    }

    /// A terminal has one output, and passes its input on line by line.
    fn terminal(&mut self, request: &ExecRequest) -> (Io, Option<terminal::Line>) {
        let output = if request.stdout {
            let (reader, writer) = tokio::io::duplex(PIPE_CAPACITY);
            self.stdout = Some(reader);
            Output::terminal(writer)
        } else {
            Output::nothing()
        };
        let (lines, line) = if request.stdin {
            let (reader, writer) = tokio::io::duplex(PIPE_CAPACITY);
            let line = terminal::Line {
                keys: Input::pipe(self.input()),
                lines: writer,
                echo: output.clone(),
            };
            (Input::pipe(reader), Some(line))
        } else {
            (Input::empty(), None)
        };
        (Io { stdin: lines, stdout: output.clone(), stderr: output }, line)
    }

    fn input(&mut self) -> Pipe {
        let (writer, reader) = tokio::io::duplex(PIPE_CAPACITY);
        self.stdin = Some(writer);
        reader
    }
}
