//! What a process reads from and writes to. Several commands of one shell share an end, so ends can be cloned.

use std::io;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Mutex;

use super::files::Files;
use super::process::{PIPE_CAPACITY, Pipe};

/// Input, output and error output of a command.
#[derive(Clone)]
pub(super) struct Io {
    pub(super) stdin: Input,
    pub(super) stdout: Output,
    pub(super) stderr: Output,
}

/// Something to read from. Clones read on where the last one stopped.
#[derive(Clone)]
pub(super) struct Input(Arc<Mutex<Source>>);

enum Source {
    Bytes(Bytes),
    /// What was read too far, and the pipe.
    Pipe(BytesMut, Box<dyn AsyncRead + Send + Unpin>),
}

impl Input {
    pub(super) fn empty() -> Self {
        Self::bytes(Bytes::new())
    }

    pub(super) fn bytes(bytes: impl Into<Bytes>) -> Self {
        Self(Arc::new(Mutex::new(Source::Bytes(bytes.into()))))
    }

    pub(super) fn pipe(pipe: impl AsyncRead + Send + Unpin + 'static) -> Self {
        Self(Arc::new(Mutex::new(Source::Pipe(BytesMut::new(), Box::new(pipe)))))
    }

    /// Some bytes as they come; none at the end.
    pub(super) async fn chunk(&self) -> Bytes {
        match &mut *self.0.lock().await {
            Source::Bytes(bytes) => std::mem::take(bytes),
            Source::Pipe(ahead, _) if !ahead.is_empty() => ahead.split().freeze(),
            Source::Pipe(ahead, pipe) => {
                ahead.reserve(PIPE_CAPACITY);
                // A pipe in memory ends, but never fails.
                let _ = pipe.read_buf(ahead).await;
                ahead.split().freeze()
            }
        }
    }

    /// Everything up to the end; none when that is more than `max` bytes.
    pub(super) async fn all(&self, max: usize) -> Option<Bytes> {
        let mut all = BytesMut::new();
        loop {
            let chunk = self.chunk().await;
            if chunk.is_empty() {
                return Some(all.freeze());
            }
            if all.len() + chunk.len() > max {
                return None;
            }
            all.extend_from_slice(&chunk);
        }
    }

    /// A line with its end; what is behind it stays. Empty at the end of the input.
    pub(super) async fn line(&self) -> Bytes {
        let newline = |bytes: &[u8]| bytes.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
        match &mut *self.0.lock().await {
            Source::Bytes(bytes) => {
                let end = newline(bytes).unwrap_or(bytes.len());
                bytes.split_to(end)
            }
            Source::Pipe(ahead, pipe) => loop {
                if let Some(end) = newline(ahead) {
                    return ahead.split_to(end).freeze();
                }
                if !matches!(pipe.read_buf(ahead).await, Ok(read) if read > 0) {
                    return ahead.split().freeze();
                }
            },
        }
    }

    /// Gives back what was read but not used.
    pub(super) async fn unread(&self, bytes: Bytes) {
        match &mut *self.0.lock().await {
            Source::Bytes(rest) => {
                let mut all = BytesMut::from(bytes);
                all.extend_from_slice(rest);
                *rest = all.freeze();
            }
            Source::Pipe(ahead, _) => {
                let mut all = BytesMut::from(bytes);
                all.extend_from_slice(ahead);
                *ahead = all;
            }
        }
    }
}

/// Something to write to. The far end sees the end when the last clone is gone.
#[derive(Clone)]
pub(super) struct Output(Arc<Mutex<Sink>>);

enum Sink {
    Nothing,
    Pipe(Box<dyn AsyncWrite + Send + Unpin>),
    /// A newline returns the carriage too.
    Terminal(Pipe),
    Memory(BytesMut),
    File(Arc<Files>, String),
}

impl Output {
    pub(super) fn nothing() -> Self {
        Self::new(Sink::Nothing)
    }

    pub(super) fn pipe(pipe: impl AsyncWrite + Send + Unpin + 'static) -> Self {
        Self::new(Sink::Pipe(Box::new(pipe)))
    }

    pub(super) fn terminal(pipe: Pipe) -> Self {
        Self::new(Sink::Terminal(pipe))
    }

    /// Keeps what is written for [`Output::taken`].
    pub(super) fn memory() -> Self {
        Self::new(Sink::Memory(BytesMut::new()))
    }

    /// Appends to a file.
    pub(super) fn file(files: Arc<Files>, path: String) -> Self {
        Self::new(Sink::File(files, path))
    }

    fn new(sink: Sink) -> Self {
        Self(Arc::new(Mutex::new(sink)))
    }

    /// Whether it is a clone of this one.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Writes all of it, and waits while the reader is behind.
    pub(super) async fn write(&self, bytes: &[u8]) -> io::Result<()> {
        match &mut *self.0.lock().await {
            Sink::Nothing => Ok(()),
            Sink::Pipe(pipe) => pipe.write_all(bytes).await,
            Sink::Terminal(pipe) => {
                for line in bytes.split_inclusive(|byte| *byte == b'\n') {
                    match line.strip_suffix(b"\n") {
                        Some(line) => pipe.write_all(&[line, b"\r\n"].concat()).await?,
                        None => pipe.write_all(line).await?,
                    }
                }
                Ok(())
            }
            Sink::Memory(memory) => {
                memory.extend_from_slice(bytes);
                Ok(())
            }
            Sink::File(files, path) => files.append(path, bytes).map_err(io::Error::other),
        }
    }

    /// What was written into memory.
    pub(super) async fn taken(&self) -> Bytes {
        match &mut *self.0.lock().await {
            Sink::Memory(memory) => memory.split().freeze(),
            _ => Bytes::new(),
        }
    }
}
