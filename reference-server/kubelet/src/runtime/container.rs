//! A container: its main process, which may restart, the logs, and the attached clients.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::{Mutex as AsyncMutex, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::files::Files;
use super::io::{Input, Output};
use super::launch;
use super::log::{Channel, Log};
use super::machine::{Environment, Machine};
use super::network::Network;
use super::process::{ExecRequest, Exit, PIPE_CAPACITY, Pipe, Process, StartError, TerminalSize};
use super::spec::ContainerSpec;
use kubeproof_apimachinery::object::uuid;

/// A container without a command runs until it is stopped.
const PAUSE: [&str; 2] = ["sleep", "infinity"];

/// The exit code of a container that did not start.
const NOT_STARTED: i32 = 128;

/// The exit code of a container that was stopped.
const STOPPED: i32 = 143;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Waiting { reason: &'static str },
    Running { since: Timestamp },
    Terminated(Ended),
}

/// The end of one instance of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    pub(crate) started: Timestamp,
    pub(crate) finished: Timestamp,
    /// The id of the instance.
    pub(crate) id: String,
}

/// The state of a container for the status of its pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) state: State,
    /// The end of the previous instance.
    pub(crate) last: Option<Ended>,
    pub(crate) restarts: u32,
    /// The id of the instance. Empty before the first start.
    pub(crate) id: String,
}

pub(crate) struct Container {
    pub(super) spec: ContainerSpec,
    view: watch::Sender<View>,
    logs: Mutex<Logs>,
    instance: AsyncMutex<Instance>,
    /// Has a lock of its own, because writing may wait for the process.
    stdin: AsyncMutex<Option<Pipe>>,
    machine: Arc<Machine>,
}

/// The logs of the current and the previous instance.
struct Logs {
    current: Log,
    previous: Option<Log>,
}

/// The running process for attached clients.
#[derive(Default)]
struct Instance {
    resize: Option<mpsc::Sender<TerminalSize>>,
    attached: Vec<(Channel, Output)>,
}

impl Container {
    pub(super) fn new(spec: ContainerSpec, hostname: &str, network: &Arc<Network>) -> Self {
        let mut environment = Environment::from([
            ("HOME".to_owned(), "/home".to_owned()),
            ("HOSTNAME".to_owned(), hostname.to_owned()),
            ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned()),
        ]);
        environment.extend(spec.environment.clone());
        let files = Files::new();
        let directory =
            if spec.directory.is_empty() { "/".to_owned() } else { spec.directory.clone() };
        // With an invalid path, the container starts in a directory without files.
        let _ = files.make_directories(&directory);
        let machine = Machine {
            hostname: hostname.to_owned(),
            environment,
            directory,
            files: Arc::new(files),
            network: network.clone(),
        };
        let view = View {
            state: State::Waiting { reason: "ContainerCreating" },
            last: None,
            restarts: 0,
            id: String::new(),
        };
        Self {
            spec,
            view: watch::Sender::new(view),
            logs: Mutex::new(Logs { current: Log::new(), previous: None }),
            instance: AsyncMutex::default(),
            stdin: AsyncMutex::default(),
            machine: Arc::new(machine),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.spec.name
    }

    pub(crate) fn is_sidecar(&self) -> bool {
        self.spec.sidecar
    }

    pub(crate) fn view(&self) -> View {
        self.view.borrow().clone()
    }

    pub(super) fn changes(&self) -> watch::Receiver<View> {
        self.view.subscribe()
    }

    fn logs(&self) -> MutexGuard<'_, Logs> {
        // Each change replaces a whole log, so a panic leaves the logs consistent.
        self.logs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the log of the current or the previous instance.
    pub(super) fn log(&self, previous: bool) -> Option<Log> {
        let logs = self.logs();
        if previous { logs.previous.clone() } else { Some(logs.current.clone()) }
    }

    pub(super) fn wait(&self, reason: &'static str) {
        self.view.send_modify(|view| {
            if let State::Terminated(ended) = &view.state {
                view.last = Some(ended.clone());
            }
            view.state = State::Waiting { reason };
        });
    }

    fn not_running(&self) -> StartError {
        StartError::NotRunning { container: self.spec.name.clone() }
    }

    pub(super) fn exec(&self, request: &ExecRequest) -> Result<Process, StartError> {
        if !matches!(self.view.borrow().state, State::Running { .. }) {
            return Err(self.not_running());
        }
        launch::start(&self.machine, request)
    }

    /// Runs the main process until it ends or is stopped.
    pub(super) async fn run(&self, stop: &CancellationToken) -> Ended {
        let started = Timestamp::now();
        let id = format!("kubeproof://{}", uuid().replace('-', ""));
        let log = Log::new();
        {
            let restarted = !self.view.borrow().id.is_empty();
            let mut logs = self.logs();
            let old = std::mem::replace(&mut logs.current, log.clone());
            logs.previous = restarted.then_some(old);
        }
        let command = if self.spec.command.is_empty() {
            PAUSE.map(str::to_owned).to_vec()
        } else {
            self.spec.command.clone()
        };
        let request = ExecRequest {
            command,
            stdin: self.spec.stdin,
            stdout: true,
            stderr: !self.spec.tty,
            tty: self.spec.tty,
        };
        let (code, message) = match launch::start(&self.machine, &request) {
            Err(error) => (Exit::Code(NOT_STARTED), error.to_string()),
            Ok(process) => {
                let running = self.attend(process, &log, &id, started);
                let exit = tokio::select! {
                    exit = running => exit,
                    () = stop.cancelled() => Exit::Code(STOPPED),
                };
                (exit, String::new())
            }
        };
        *self.instance.lock().await = Instance::default();
        *self.stdin.lock().await = None;
        log.close();
        let (code, message) = match code {
            Exit::Code(code) => (code, message),
            Exit::Failed(why) => (NOT_STARTED, why),
        };
        let reason = match code {
            0 => "Completed",
            _ if !message.is_empty() => "StartError",
            _ => "Error",
        };
        let ended =
            Ended { code, reason, message, started, finished: Timestamp::now(), id: id.clone() };
        self.view.send_modify(|view| {
            view.id = id;
            view.state = State::Terminated(ended.clone());
        });
        ended
    }

    /// Copies the output of the main process to the log and to attached clients.
    async fn attend(&self, process: Process, log: &Log, id: &str, started: Timestamp) -> Exit {
        *self.stdin.lock().await = process.stdin;
        self.instance.lock().await.resize = Some(process.resize);
        self.view.send_modify(|view| {
            if let State::Terminated(ended) = &view.state {
                view.last = Some(ended.clone());
            }
            if !view.id.is_empty() {
                view.restarts += 1;
            }
            id.clone_into(&mut view.id);
            view.state = State::Running { since: started };
        });
        let (stdout, stderr, exit) = tokio::join!(
            self.carry(process.stdout, Channel::Stdout, log),
            self.carry(process.stderr, Channel::Stderr, log),
            process.exit
        );
        let ((), ()) = (stdout, stderr);
        exit.unwrap_or_else(|_| Exit::Failed("the process is gone".to_owned()))
    }

    async fn carry(&self, pipe: Option<Pipe>, channel: Channel, log: &Log) {
        let Some(pipe) = pipe else { return };
        let input = Input::pipe(pipe);
        loop {
            let chunk = input.chunk().await;
            if chunk.is_empty() {
                return;
            }
            let attached: Vec<Output> = {
                let instance = self.instance.lock().await;
                // Under the lock, a client that reads the log and then attaches gets each chunk
                // once.
                log.append(channel, &chunk);
                let listening = instance.attached.iter().filter(|(wanted, _)| *wanted == channel);
                listening.map(|(_, output)| output.clone()).collect()
            };
            for output in attached {
                if output.write(&chunk).await.is_err() {
                    self.instance.lock().await.attached.retain(|(_, other)| !other.is(&output));
                }
            }
        }
    }

    /// Attaches to the output of the main process from now on.
    pub(super) async fn attach(
        self: &Arc<Self>,
        request: &ExecRequest,
    ) -> Result<Process, StartError> {
        let mut changes = self.view.subscribe();
        // The id identifies the instance, since the next one may start at once.
        let joined = {
            let view = changes.borrow();
            if !matches!(view.state, State::Running { .. }) {
                return Err(self.not_running());
            }
            view.id.clone()
        };
        let mut instance = self.instance.lock().await;
        let resize = instance.resize.clone().ok_or_else(|| self.not_running())?;
        let mut output = |wanted: bool, channel: Channel| {
            wanted.then(|| {
                let (reader, writer) = tokio::io::duplex(PIPE_CAPACITY);
                instance.attached.push((channel, Output::pipe(writer)));
                reader
            })
        };
        let stdout = output(request.stdout, Channel::Stdout);
        let stderr = output(request.stderr && !request.tty, Channel::Stderr);
        drop(instance);
        let stdin = request.stdin.then(|| {
            let (writer, reader) = tokio::io::duplex(PIPE_CAPACITY);
            tokio::spawn(self.clone().feed(reader));
            writer
        });
        let (exit, exited) = oneshot::channel();
        tokio::spawn(async move {
            let mut exit = exit;
            let has_ended =
                |view: &View| view.id != joined || !matches!(view.state, State::Running { .. });
            tokio::select! {
                // The pod reports the exit code of the container. Attaching itself has succeeded.
                _ = changes.wait_for(has_ended) => {
                    let _ = exit.send(Exit::Code(0));
                }
                () = exit.closed() => {}
            }
        });
        Ok(Process { stdin, stdout, stderr, resize, exit: exited })
    }

    /// Copies input to the main process.
    async fn feed(self: Arc<Self>, from: Pipe) {
        let input = Input::pipe(from);
        loop {
            let chunk = input.chunk().await;
            let mut stdin = self.stdin.lock().await;
            if chunk.is_empty() {
                if self.spec.stdin_once {
                    *stdin = None;
                }
                return;
            }
            // A process without an input, or one that has ended, discards the chunk.
            if let Some(pipe) = stdin.as_mut()
                && pipe.write_all(&chunk).await.is_err()
            {
                *stdin = None;
            }
        }
    }
}
