//! Runs a syntax tree.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use futures_util::future::{BoxFuture, join_all};
use tokio::task::JoinSet;

use super::parser;
use super::syntax::{Chain, Command, Link, List, Pipeline, Redirect, Stage, Target};
use crate::runtime::commands;
use crate::runtime::files::{FileError, resolve};
use crate::runtime::io::{Input, Io, Output};
use crate::runtime::machine::{BROKEN_PIPE, Program};
use crate::runtime::process::PIPE_CAPACITY;

/// A running shell. A clone is a subshell, whose changes stay local.
#[derive(Clone)]
pub(super) struct Shell {
    pub(super) variables: BTreeMap<String, String>,
    /// The exported variables.
    pub(super) exported: BTreeSet<String>,
    pub(super) positional: Vec<String>,
    pub(super) name: String,
    /// The exit code of the last command.
    pub(super) status: i32,
    pub(super) exit_on_error: bool,
    pub(super) background: Background,
    /// The program of the shell: its streams, its directory and its container.
    pub(super) program: Program,
}

/// Why the following commands do not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    Exit(i32),
    Break,
    Continue,
    /// The output has no reader.
    Broken,
}

impl Background {
    /// Adds a command. Returns false when there are too many.
    fn start(&mut self, command: impl Future<Output = ()> + Send + 'static) -> bool {
        while self.0.try_join_next().is_some() {}
        let room = self.0.len() < MAX_BACKGROUND;
        if room {
            self.0.spawn(command);
        }
        room
    }
}

impl Background {
    /// Waits until all commands have ended.
    pub(super) async fn wait(&mut self) {
        while self.0.join_next().await.is_some() {}
    }
}

impl Clone for Background {
    /// A subshell starts without background commands, and does not wait for those of its parent.
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl From<io::Error> for Stop {
    fn from(_: io::Error) -> Self {
        Self::Broken
    }
}

/// The background commands of a shell. Dropping it aborts them.
#[derive(Default)]
pub(super) struct Background(JoinSet<()>);

/// The most background commands of a shell.
const MAX_BACKGROUND: usize = 64;

/// The exit code for an unknown command.
const NOT_FOUND: i32 = 127;

impl Shell {
    pub(super) async fn complain(&self, what: &str) -> io::Result<()> {
        self.program.io.stderr.write(format!("{}: {what}\n", self.name).as_bytes()).await
    }

    /// Parses and runs a script.
    pub(super) async fn script(&mut self, text: &str) -> Result<i32, Stop> {
        match parser::parse(text) {
            Ok(list) => self.list(&list).await,
            Err(error) => {
                self.complain(&error.to_string()).await?;
                self.status = super::SYNTAX;
                if self.program.terminal.is_some() {
                    Ok(self.status)
                } else {
                    Err(Stop::Exit(self.status))
                }
            }
        }
    }

    /// Runs commands that cannot end this shell.
    pub(super) async fn subshell(mut self, list: &List) -> Result<i32, Stop> {
        match self.list(list).await {
            Ok(code) | Err(Stop::Exit(code)) => Ok(code),
            Err(Stop::Break | Stop::Continue) => Ok(0),
            Err(Stop::Broken) => Ok(BROKEN_PIPE),
        }
    }

    fn list<'a>(&'a mut self, list: &'a List) -> BoxFuture<'a, Result<i32, Stop>> {
        Box::pin(async move {
            for chain in &list.0 {
                if chain.background {
                    self.detach(chain).await?;
                } else {
                    self.chain(chain).await?;
                }
            }
            Ok(self.status)
        })
    }

    /// Starts a background command without input.
    async fn detach(&mut self, chain: &Chain) -> Result<(), Stop> {
        let mut inner = self.clone();
        inner.program.io.stdin = Input::empty();
        let list = List(vec![Chain { background: false, ..chain.clone() }]);
        let started = self.background.start(async move {
            let _ = inner.subshell(&list).await;
        });
        self.status = i32::from(!started);
        if started {
            Ok(())
        } else {
            Ok(self.complain("too many commands in the background").await?)
        }
    }

    async fn chain(&mut self, chain: &Chain) -> Result<(), Stop> {
        let mut last = self.pipeline(&chain.first).await?;
        let mut decided = !chain.rest.is_empty();
        for (index, (link, pipeline)) in chain.rest.iter().enumerate() {
            if (*link == Link::And) == (self.status == 0) {
                last = self.pipeline(pipeline).await?;
                decided = index + 1 < chain.rest.len();
            }
        }
        // A condition may fail without ending the script.
        if self.exit_on_error && self.status != 0 && !decided && !last {
            return Err(Stop::Exit(self.status));
        }
        Ok(())
    }

    async fn pipeline(&mut self, pipeline: &Pipeline) -> Result<bool, Stop> {
        self.status = match pipeline.stages.as_slice() {
            [stage] => self.stage(stage).await?,
            stages => self.pipe(stages).await?,
        };
        if pipeline.negated {
            self.status = i32::from(self.status == 0);
        }
        Ok(pipeline.negated)
    }

    /// Runs all stages at the same time. The last one determines the exit code.
    async fn pipe(&mut self, stages: &[Stage]) -> Result<i32, Stop> {
        let mut running = Vec::new();
        let mut stdin = self.program.io.stdin.clone();
        for (index, stage) in stages.iter().enumerate() {
            let mut inner = self.clone();
            inner.program.io.stdin = stdin;
            stdin = Input::empty();
            if index + 1 < stages.len() {
                let (writer, reader) = tokio::io::duplex(PIPE_CAPACITY);
                inner.program.io.stdout = Output::pipe(writer);
                stdin = Input::pipe(reader);
            }
            running.push(async move {
                match inner.stage(stage).await {
                    Ok(code) | Err(Stop::Exit(code)) => code,
                    Err(Stop::Break | Stop::Continue) => 0,
                    Err(Stop::Broken) => BROKEN_PIPE,
                }
            });
        }
        Ok(join_all(running).await.last().copied().unwrap_or_default())
    }

    async fn stage(&mut self, stage: &Stage) -> Result<i32, Stop> {
        let Some(io) = self.redirected(&stage.redirects).await? else { return Ok(1) };
        let outer = std::mem::replace(&mut self.program.io, io);
        let result = self.command(&stage.command).await;
        self.program.io = outer;
        result
    }

    /// Opens the streams of a command. Returns none after it has reported an error.
    async fn redirected(&mut self, redirects: &[Redirect]) -> Result<Option<Io>, Stop> {
        let mut io = self.program.io.clone();
        for redirect in redirects {
            let (word, append) = match &redirect.to {
                Target::Stream(from) => {
                    let output = if *from == 2 { io.stderr.clone() } else { io.stdout.clone() };
                    match redirect.stream {
                        1 => io.stdout = output,
                        2 => io.stderr = output,
                        _ => {}
                    }
                    continue;
                }
                Target::Read(word) => (word, None),
                Target::Write(word) => (word, Some(false)),
                Target::Append(word) => (word, Some(true)),
            };
            let name = self.text(word).await?;
            let Some(append) = append else {
                match self.open(&name) {
                    Ok(input) => io.stdin = input,
                    Err(error) => {
                        self.complain(&format!("can't open {name}: {error}")).await?;
                        return Ok(None);
                    }
                }
                continue;
            };
            let output = match name.as_str() {
                "/dev/null" => Ok(Output::nothing()),
                "/dev/stdout" => Ok(io.stdout.clone()),
                "/dev/stderr" => Ok(io.stderr.clone()),
                name => self.create(name, append),
            };
            match output {
                Ok(output) if redirect.stream == 2 => io.stderr = output,
                Ok(output) => io.stdout = output,
                Err(error) => {
                    self.complain(&format!("can't create {name}: {error}")).await?;
                    return Ok(None);
                }
            }
        }
        Ok(Some(io))
    }

    fn open(&self, name: &str) -> Result<Input, FileError> {
        match name {
            "/dev/null" => Ok(Input::empty()),
            "/dev/stdin" => Ok(self.program.io.stdin.clone()),
            name => {
                let path = resolve(&self.program.directory, name);
                self.program.machine.files.read(&path).map(Input::bytes)
            }
        }
    }

    fn create(&self, name: &str, append: bool) -> Result<Output, FileError> {
        let files = &self.program.machine.files;
        let path = resolve(&self.program.directory, name);
        if !append || files.get(&path).is_none() {
            files.truncate(&path)?;
        }
        Ok(Output::file(files.clone(), path))
    }

    async fn command(&mut self, command: &Command) -> Result<i32, Stop> {
        match command {
            Command::Simple { assignments, words } => {
                let args = self.fields(words).await?;
                let mut values = Vec::new();
                for (name, word) in assignments {
                    values.push((name.clone(), self.text(word).await?));
                }
                if args.is_empty() {
                    self.variables.extend(values);
                    return Ok(if words.is_empty() { 0 } else { self.status });
                }
                self.simple(args, values).await
            }
            Command::Group(list) => self.list(list).await,
            Command::Subshell(list) => self.clone().subshell(list).await,
            Command::If { branches, otherwise } => {
                for (condition, body) in branches {
                    if self.condition(condition).await? {
                        return self.list(body).await;
                    }
                }
                self.status = 0;
                self.list(otherwise).await
            }
            Command::Loop { until, condition, body } => {
                let mut status = 0;
                while self.condition(condition).await? != *until {
                    match self.list(body).await {
                        Ok(code) => status = code,
                        Err(Stop::Continue) => {}
                        Err(Stop::Break) => break,
                        Err(stop) => return Err(stop),
                    }
                    // A loop whose commands never wait would block all other tasks.
                    tokio::task::coop::consume_budget().await;
                }
                Ok(status)
            }
            Command::For { variable, words, body } => {
                let values = match words {
                    Some(words) => self.fields(words).await?,
                    None => self.positional.clone(),
                };
                let mut status = 0;
                for value in values {
                    self.variables.insert(variable.clone(), value);
                    match self.list(body).await {
                        Ok(code) => status = code,
                        Err(Stop::Continue) => {}
                        Err(Stop::Break) => break,
                        Err(stop) => return Err(stop),
                    }
                    tokio::task::coop::consume_budget().await;
                }
                Ok(status)
            }
        }
    }

    /// Runs a condition. Its failure does not end the script.
    async fn condition(&mut self, list: &List) -> Result<bool, Stop> {
        let strict = std::mem::replace(&mut self.exit_on_error, false);
        let code = self.list(list).await;
        self.exit_on_error = strict;
        Ok(code? == 0)
    }

    async fn simple(
        &mut self,
        args: Vec<String>,
        values: Vec<(String, String)>,
    ) -> Result<i32, Stop> {
        if let Some(code) = self.builtin(&args).await? {
            self.variables.extend(values);
            return Ok(code);
        }
        if !commands::exists(&args[0]) {
            self.complain(&format!("{}: not found", args[0])).await?;
            return Ok(NOT_FOUND);
        }
        let exported = self.variables.iter().filter(|(name, _)| self.exported.contains(*name));
        let mut environment: BTreeMap<String, String> =
            exported.map(|(name, value)| (name.clone(), value.clone())).collect();
        environment.extend(values);
        let program = Program { args, environment, ..self.program.clone() };
        Ok(Box::pin(program.run()).await.unwrap_or(NOT_FOUND))
    }
}
