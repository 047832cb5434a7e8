//! Access to the bytes below the HTTP library.
//!
//! Sending replaces the request line for targets that the library cannot represent. Receiving keeps
//! the head, since the library does not keep the case of header names.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Limit on the recorded head. The library has a lower one.
const MAX_HEAD: usize = 512 << 10;

pub(super) struct Wire {
    stream: Box<dyn Stream>,
    head: Head,
    line: Option<Bytes>,
    /// Bytes of the replaced head that are still to be written.
    pending: Bytes,
}

/// The bytes up to the end of the head; `None` after use.
#[derive(Clone)]
pub(super) struct Head(Arc<Mutex<Option<BytesMut>>>);

impl Wire {
    /// Wraps a connection, with an optional request line.
    pub(super) fn new(stream: Box<dyn Stream>, line: Option<Bytes>) -> (Self, Head) {
        let head = Head(Arc::new(Mutex::new(Some(BytesMut::new()))));
        (Self { stream, head: head.clone(), line, pending: Bytes::new() }, head)
    }

    fn poll_pending(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.pending.has_remaining() {
            let written = ready!(Pin::new(&mut self.stream).poll_write(cx, &self.pending))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.pending.advance(written);
        }
        Poll::Ready(Ok(()))
    }
}

impl Head {
    fn record(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(head) = kept.as_mut() {
            head.extend_from_slice(&bytes[..bytes.len().min(MAX_HEAD.saturating_sub(head.len()))]);
        }
    }

    /// Returns the headers with their original case, without interim responses. Call it once, after
    /// the library read the head.
    pub(super) fn take_headers(&self) -> Vec<(String, String)> {
        let bytes =
            self.0.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default();
        let mut lines = bytes
            .as_ref()
            .split(|&b| b == b'\n')
            .map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        loop {
            let Some(status) = lines.by_ref().find(|line| !line.is_empty()) else {
                return Vec::new();
            };
            let fields: Vec<_> =
                lines.by_ref().take_while(|line| !line.is_empty()).map(field).collect();
            let code = status.split(|&b| b == b' ').nth(1).unwrap_or_default();
            if !code.starts_with(b"1") || code == b"101" {
                return fields;
            }
        }
    }
}

fn field(line: &[u8]) -> (String, String) {
    let colon = line.iter().position(|&b| b == b':').unwrap_or(line.len());
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes.trim_ascii()).into_owned();
    (text(&line[..colon]), text(line.get(colon + 1..).unwrap_or_default()))
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        self.head.record(&buf.filled()[before..]);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        // The library writes a head in one call, since vectored writes are off.
        if let Some(line) = this.line.take() {
            let rest = buf.iter().position(|&b| b == b'\r').unwrap_or(buf.len());
            this.pending = [&line, &buf[rest..]].concat().into();
            return Poll::Ready(Ok(buf.len()));
        }
        ready!(this.poll_pending(cx))?;
        Pin::new(&mut this.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_pending(cx))?;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_pending(cx))?;
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
