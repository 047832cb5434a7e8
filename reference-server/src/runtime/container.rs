//! A container: one instance after the other of its main process, the log of each, and who is attached.

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

/// What a container without a command runs: it stays until it is stopped.
const PAUSE: [&str; 2] = ["sleep", "infinity"];

/// The exit code of a container that could not be started.
const NOT_STARTED: i32 = 128;

/// The exit code of a container that was asked to stop, and did.
const STOPPED: i32 = 143;

/// What a container does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It has yet to start, for this reason.
    Waiting {
        reason: &'static str,
    },
    Running {
        since: Timestamp,
    },
    Terminated(Ended),
}

/// How an instance of a container ended.
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

/// A container as the status of its pod shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) state: State,
    /// How the instance before this one ended.
    pub(crate) last: Option<Ended>,
    pub(crate) restarts: u32,
    /// The id of the instance; empty before the first.
    pub(crate) id: String,
}

/// A container of a pod.
pub(crate) struct Container {
    pub(super) spec: ContainerSpec,
    view: watch::Sender<View>,
    logs: Mutex<Logs>,
    instance: AsyncMutex<Instance>,
    /// Apart from the rest: whoever writes here may have to wait for the process.
    stdin: AsyncMutex<Option<Pipe>>,
    machine: Arc<Machine>,
}

/// The logs of this instance and of the one before.
struct Logs {
    current: Log,
    previous: Option<Log>,
}

/// The running process, as those see it who attach.
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
        let directory = if spec.directory.is_empty() { "/".to_owned() } else { spec.directory.clone() };
        // A path that cannot be one leaves the container in a directory without files.
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
        // Each change replaces a whole log.
        self.logs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The log of this instance, or of the one before; none when there was none.
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

    /// Runs a command beside the main process.
    pub(super) fn exec(&self, request: &ExecRequest) -> Result<Process, StartError> {
        if !matches!(self.view.borrow().state, State::Running { .. }) {
            return Err(self.not_running());
        }
        launch::start(&self.machine, request)
    }

    /// Runs the main process to its end.
    pub(super) async fn run(&self, stop: &CancellationToken) -> Ended {
        let started = Timestamp::now();
        let id = format!("kubeproof://{}", crate::object::uuid().replace('-', ""));
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
        let ended = Ended { code, reason, message, started, finished: Timestamp::now(), id: id.clone() };
        self.view.send_modify(|view| {
            view.id = id;
            view.state = State::Terminated(ended.clone());
        });
        ended
    }

    /// Carries the output of a process to the log and to whoever is attached, and waits for its end.
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
                // Under the lock: whoever has read it in the log and then attaches is not told it again.
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

    /// Joins the streams of the main process, from now on.
    pub(super) async fn attach(self: &Arc<Self>, request: &ExecRequest) -> Result<Process, StartError> {
        let mut changes = self.view.subscribe();
        // By its id, since the next one may run before anybody has seen this one's end.
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
            tokio::select! {
                // How the container ended is told by its pod; attaching to it has worked.
                _ = changes.wait_for(|view| view.id != joined || !matches!(view.state, State::Running { .. })) => {
                    let _ = exit.send(Exit::Code(0));
                }
                () = exit.closed() => {}
            }
        });
        Ok(Process { stdin, stdout, stderr, resize, exit: exited })
    }

    /// Carries what is typed to the main process.
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
            // One that has ended, or never had an input, reads nothing.
            if let Some(pipe) = stdin.as_mut()
                && pipe.write_all(&chunk).await.is_err()
            {
                *stdin = None;
            }
        }
    }
}
