//! Ports over SPDY: for every connection a pair of streams, one for its bytes and one for what goes wrong.

use bytes::BytesMut;
use tokio::io::{
    AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream, ReadHalf, WriteHalf,
};
use tokio::task::JoinSet;

use super::Target;
use super::pairs::{Announcement, Pair, Taken, Waiting};
use crate::streams::spdy::session::{Offer, Received, Receiver, Sender, Session};
use crate::streams::websocket::channels::CHUNK;
use crate::{Fault, Faults};

/// Forwards until the client leaves.
pub(super) async fn run<S>(connection: S, target: Target, faults: Faults)
where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let mut session = Session::start(connection, faults);
    let mut waiting = Waiting::default();
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            offer = session.accept() => {
                let Some(offer) = offer else { return };
                if let Some(pair) = take(offer, &mut waiting, faults).await {
                    connections.spawn(forward(pair, target.clone(), faults));
                }
            }
            (request, stream) = waiting.overdue() => {
                let why = format!("(request={request}) timed out waiting for streams");
                stream.sender.data(why.into()).await;
                stream.sender.reset().await;
            }
            Some(ended) = connections.join_next() => {
                if faults.on(Fault::PortFailureEndsSession) && matches!(ended, Ok(Err(Unreachable))) {
                    return session.finish().await;
                }
            }
        }
    }
}

/// The port cannot be reached.
struct Unreachable;

async fn take(offer: Offer, waiting: &mut Waiting, faults: Faults) -> Option<Pair> {
    let Some(mut announced) = Announcement::read(offer.id(), &offer.headers) else {
        // The others go on.
        if faults.on(Fault::PortStreamsUnchecked) {
            offer.accept().await;
        } else {
            offer.refuse().await;
        }
        return None;
    };
    if faults.on(Fault::PortRequestIdIgnored) {
        announced.request.clear();
    }
    let stream = offer.accept().await;
    match waiting.add(announced, stream) {
        Ok(pair) => pair,
        Err(Taken(stream)) => {
            stream.sender.reset().await;
            None
        }
    }
}

async fn forward(pair: Pair, target: Target, faults: Faults) -> Result<(), Unreachable> {
    let Pair { port, error, data } = pair;
    let connection = match (target.connect)(port).await {
        Ok(connection) => connection,
        Err(reason) => {
            if !faults.on(Fault::PortFailureUntold) {
                error.sender.data(target.failure(port, &reason).into()).await;
            }
            // Both ways of both streams, so that the client can use the connection for others.
            data.sender.reset().await;
            error.sender.reset().await;
            return Err(Unreachable);
        }
    };
    let (read, write) = tokio::io::split(connection);
    let upward = upward(data.receiver, write, faults);
    let downward = downward(read, &data.sender, &error.sender, faults);
    tokio::pin!(upward, downward);
    tokio::select! {
        end = &mut upward => {
            if matches!(end, Upward::Ended) {
                downward.await;
            }
        }
        () = &mut downward => {
            // The far side has said all it had to say. It may still listen.
            upward.await;
        }
    }
    Ok(())
}

/// How the way from the client to the port ended.
enum Upward {
    /// The client sends no more, or nobody listens; the other way goes on.
    Ended,
    /// The client gave the connection up.
    Reset,
}

async fn upward(mut receiver: Receiver, mut write: WriteHalf<DuplexStream>, faults: Faults) -> Upward {
    loop {
        match receiver.next().await {
            Received::Data(bytes) => {
                if write.write_all(&bytes).await.is_err() {
                    return Upward::Ended;
                }
            }
            Received::End if faults.on(Fault::PortHalfCloseIsClose) => return Upward::Reset,
            Received::End => {
                let _ = write.shutdown().await;
                return Upward::Ended;
            }
            Received::Reset => return Upward::Reset,
        }
    }
}

async fn downward(mut read: ReadHalf<DuplexStream>, data: &Sender, error: &Sender, faults: Faults) {
    loop {
        let mut piece = BytesMut::with_capacity(CHUNK);
        match read.read_buf(&mut piece).await {
            Ok(count) if count > 0 => data.data(piece.freeze()).await,
            // That nothing went wrong is told first: a client that sees the end of the data asks for it.
            _ if faults.on(Fault::PortEndUntold) => return,
            _ => {
                error.end().await;
                if faults.on(Fault::PortEndIsReset) {
                    data.reset().await;
                } else {
                    data.end().await;
                }
                return;
            }
        }
    }
}
