//! Input and output of processes. The commands of a shell share them, so they can be cloned.

use std::io;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Mutex;

use super::files::Files;
use super::process::{PIPE_CAPACITY, Pipe};

#[derive(Clone)]
pub(super) struct Io {
    pub(super) stdin: Input,
    pub(super) stdout: Output,
    pub(super) stderr: Output,
}

/// An input. Clones share the position.
#[derive(Clone)]
pub(super) struct Input(Arc<Mutex<Source>>);

enum Source {
    Bytes(Bytes),
    /// Bytes that were read too far, and the pipe.
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

    /// Returns the next bytes. Empty at the end.
    pub(super) async fn chunk(&self) -> Bytes {
        match &mut *self.0.lock().await {
            Source::Bytes(bytes) => std::mem::take(bytes),
            Source::Pipe(ahead, _) if !ahead.is_empty() => ahead.split().freeze(),
            Source::Pipe(ahead, pipe) => {
                ahead.reserve(PIPE_CAPACITY);
                // Reading from an in-memory pipe cannot fail.
                let _ = pipe.read_buf(ahead).await;
                ahead.split().freeze()
            }
        }
    }

    /// Returns all bytes up to the end, or none above `max` bytes.
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

    /// Returns the next line with its newline. Empty at the end.
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

    /// Returns unused bytes to the input.
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

/// An output. The reader sees the end when the last clone is dropped.
#[derive(Clone)]
pub(super) struct Output(Arc<Mutex<Sink>>);

enum Sink {
    Nothing,
    Pipe(Box<dyn AsyncWrite + Send + Unpin>),
    /// Writes a carriage return before each newline.
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

    /// Collects the output for [`Output::taken`].
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

    /// Returns true for a clone of this output.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Writes all bytes, and waits for a slow reader.
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

    /// Returns the collected output.
    pub(super) async fn taken(&self) -> Bytes {
        match &mut *self.0.lock().await {
            Sink::Memory(memory) => memory.split().freeze(),
            _ => Bytes::new(),
        }
    }
}
