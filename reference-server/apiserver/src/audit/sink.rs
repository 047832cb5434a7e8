//! The place that the events go to, at once or from a queue.

use std::io::{self, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use super::file::LogFile;
use crate::config::audit::{AuditMode, AuditOptions};

/// The path of the standard output.
const STANDARD_OUTPUT: &str = "-";
/// The most events in the queue, as in kube-apiserver. Further events are dropped.
const QUEUE: usize = 10_000;

type Output = Box<dyn Write + Send>;

/// Writes lines in the mode of the options.
pub(super) enum Sink {
    /// The request waits until the line is written.
    Direct(Mutex<Output>),
    /// A thread writes the lines.
    Queue(Queue),
}

impl Sink {
    pub(super) fn open(options: &AuditOptions) -> io::Result<Self> {
        let output = output(options)?;
        Ok(match options.mode {
            AuditMode::Blocking | AuditMode::BlockingStrict => Self::Direct(Mutex::new(output)),
            AuditMode::Batch => Self::Queue(Queue::start(output)?),
        })
    }

    /// Writes a line that ends with a newline. Returns whether the log has it, or will have it.
    pub(super) fn write(&self, line: String) -> bool {
        match self {
            Self::Direct(output) => {
                let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
                output.write_all(line.as_bytes()).and_then(|()| output.flush()).is_ok()
            }
            Self::Queue(queue) => queue.push(line),
        }
    }
}

/// A queue with the thread that empties it.
pub(super) struct Queue {
    /// Absent when the queue ends.
    sender: Option<SyncSender<String>>,
    writer: Option<JoinHandle<()>>,
}

impl Queue {
    fn start(output: Output) -> io::Result<Self> {
        let (sender, receiver) = sync_channel(QUEUE);
        let writer = thread::Builder::new()
            .name("audit".to_owned())
            .spawn(move || write_batches(&receiver, output))?;
        Ok(Self { sender: Some(sender), writer: Some(writer) })
    }

    fn push(&self, line: String) -> bool {
        self.sender.as_ref().is_some_and(|sender| sender.try_send(line).is_ok())
    }
}

impl Drop for Queue {
    /// Waits until all events are in the log.
    fn drop(&mut self) {
        self.sender = None;
        if let Some(writer) = self.writer.take() {
            // A panic of the thread has lost its events already.
            let _ = writer.join();
        }
    }
}

/// Writes all lines that wait, and then flushes the output.
fn write_batches(lines: &Receiver<String>, mut output: Output) {
    while let Ok(first) = lines.recv() {
        for line in std::iter::once(first).chain(lines.try_iter().take(QUEUE)) {
            // Requests go on without a log, as in kube-apiserver.
            let _ = output.write_all(line.as_bytes());
        }
        let _ = output.flush();
    }
}

fn output(options: &AuditOptions) -> io::Result<Output> {
    let path: &Path = &options.path;
    if path.as_os_str() == STANDARD_OUTPUT {
        return Ok(Box::new(io::stdout()));
    }
    Ok(Box::new(LogFile::open(path, options.rotation)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::audit::AuditPolicy;

    #[test]
    fn a_queue_ends_when_all_lines_are_written() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("audit.log");
        let options = AuditOptions {
            mode: AuditMode::Batch,
            ..AuditOptions::new(path.clone(), AuditPolicy::default())
        };
        let sink = Sink::open(&options).expect("a sink");
        let lines: Vec<String> = (0..1_000).map(|line| format!("{line}\n")).collect();
        assert!(lines.iter().all(|line| sink.write(line.clone())));
        drop(sink);
        assert_eq!(std::fs::read_to_string(path).expect("a log"), lines.concat());
    }

    #[test]
    fn a_failed_write_is_reported() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        assert!(!Sink::Direct(Mutex::new(Box::new(Full))).write("a\n".to_owned()));
    }
}
