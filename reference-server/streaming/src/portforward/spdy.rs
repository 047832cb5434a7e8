//! Port-forwarding over SPDY. Each connection to a port has a data stream and an error stream.

use bytes::BytesMut;
use tokio::io::{
    AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream, ReadHalf, WriteHalf,
};
use tokio::task::JoinSet;

use super::Target;
use super::stream_pair::{Announcement, Pair, Pending, Taken};
use crate::MAX_CHUNK;
use crate::spdy::connection::{Connection, IncomingStream, Received, Receiver, Sender};

/// Forwards until the client disconnects.
pub(super) async fn run<S>(transport: S, target: Target)
where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let mut connection = Connection::start(transport);
    let mut pending = Pending::default();
    let mut forwards = JoinSet::new();
    loop {
        tokio::select! {
            stream = connection.next_stream() => {
                let Some(stream) = stream else { return };
                if let Some(pair) = add_stream(stream, &mut pending).await {
                    forwards.spawn(forward(pair, target.clone()));
                }
            }
            (request, stream) = pending.next_timeout() => {
                let message = format!("(request={request}) timed out waiting for streams");
                stream.sender.data(message.into()).await;
                stream.sender.reset().await;
            }
            Some(_) = forwards.join_next() => {}
        }
    }
}

/// Accepts a stream, and returns the pair that it completes. Streams with invalid headers are
/// reset.
async fn add_stream(stream: IncomingStream, pending: &mut Pending) -> Option<Pair> {
    let Some(announcement) = Announcement::parse(stream.id(), &stream.headers) else {
        stream.reset().await;
        return None;
    };
    let stream = stream.accept().await;
    match pending.add(announcement, stream) {
        Ok(pair) => pair,
        Err(Taken(stream)) => {
            stream.sender.reset().await;
            None
        }
    }
}

async fn forward(pair: Pair, target: Target) {
    let Pair { port, error, data } = pair;
    let connection = match (target.connect)(port).await {
        Ok(connection) => connection,
        Err(reason) => {
            error.sender.data(target.failure(port, &reason).into()).await;
            // Only these two streams end, so the other forwards continue.
            data.sender.reset().await;
            error.sender.reset().await;
            return;
        }
    };
    let (read, write) = tokio::io::split(connection);
    let upload = upload(data.receiver, write);
    let download = download(read, &data.sender, &error.sender);
    tokio::pin!(upload, download);
    tokio::select! {
        end = &mut upload => {
            if matches!(end, Upload::Ended) {
                download.await;
            }
        }
        () = &mut download => {
            // The process may still read after it has closed its output.
            upload.await;
        }
    }
}

/// How the direction from the client ended.
enum Upload {
    /// The client or the process closed this direction. The other one continues.
    Ended,
    /// The client reset the stream.
    Reset,
}

async fn upload(mut receiver: Receiver, mut write: WriteHalf<DuplexStream>) -> Upload {
    loop {
        match receiver.next().await {
            Received::Data(bytes) => {
                if write.write_all(&bytes).await.is_err() {
                    return Upload::Ended;
                }
            }
            Received::End => {
                let _ = write.shutdown().await;
                return Upload::Ended;
            }
            Received::Reset => return Upload::Reset,
        }
    }
}

async fn download(mut read: ReadHalf<DuplexStream>, data: &Sender, error: &Sender) {
    loop {
        let mut piece = BytesMut::with_capacity(MAX_CHUNK);
        match read.read_buf(&mut piece).await {
            Ok(count) if count > 0 => data.data(piece.freeze()).await,
            // Clients check the error stream at the end of the data, so the error stream ends
            // first.
            _ => {
                error.end().await;
                data.end().await;
                return;
            }
        }
    }
}
