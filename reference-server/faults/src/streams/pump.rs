//! Copying between client and server, with an edit for each direction.

use std::time::Duration;

use bytes::BytesMut;
use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use crate::exchange::Io;

/// The buffer towards the client, in bytes.
const PIPE: usize = 64 * 1024;
/// The time that the client has to leave after the server has ended its direction.
const LINGER: Duration = Duration::from_secs(10);

/// The next step of a direction after an edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// It goes on.
    Continue,
    /// It discards everything up to its end, and passes the end on.
    Discard,
    /// It discards everything, its end included.
    Hold,
    /// It sends what it has and drops the connection.
    Stop,
}

/// Edits the bytes of a direction: takes them from the first buffer and appends to the second one.
pub(crate) type Relay = Box<dyn FnMut(&mut BytesMut, &mut BytesMut) -> Flow + Send>;

/// Returns a relay that changes nothing.
pub(crate) fn unchanged() -> Relay {
    Box::new(|input, output| {
        output.unsplit(input.split());
        Flow::Continue
    })
}

/// A connection through two relays.
pub(crate) struct Pump {
    pub(crate) to_server: Relay,
    pub(crate) to_client: Relay,
    /// Drops the connection when it completes.
    pub(crate) stop: BoxFuture<'static, ()>,
    /// The buffer from the client, in bytes.
    pub(crate) capacity: usize,
}

impl Default for Pump {
    fn default() -> Self {
        let stop = Box::pin(std::future::pending());
        Self { to_server: unchanged(), to_client: unchanged(), stop, capacity: PIPE }
    }
}

impl Pump {
    /// Starts to copy, and returns the client's end.
    pub(crate) fn start(self, server: Box<dyn Io>) -> Box<dyn Io> {
        let (near, far) = tokio::io::duplex(self.capacity);
        let (from_client, to_client) = tokio::io::split(far);
        let (from_server, to_server) = tokio::io::split(server);
        let up = copy(from_client, to_server, self.to_server);
        let down = copy(from_server, to_client, self.to_client);
        let stop = self.stop;
        tokio::spawn(async move {
            tokio::select! {
                () = both(up, down) => {}
                () = stop => {}
            }
        });
        Box::new(near)
    }
}

/// How a direction ended.
enum End {
    Passed,
    Held,
    Stopped,
}

async fn both(up: impl Future<Output = End>, down: impl Future<Output = End>) {
    tokio::pin!(up, down);
    tokio::select! {
        end = &mut up => {
            if !matches!(end, End::Stopped) {
                down.await;
            }
        }
        end = &mut down => match end {
            End::Passed => {
                let _ = tokio::time::timeout(LINGER, up).await;
            }
            End::Held => {
                up.await;
            }
            End::Stopped => {}
        },
    }
}

async fn copy<R, W>(mut from: R, mut to: W, mut relay: Relay) -> End
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let (mut input, mut output) = (BytesMut::new(), BytesMut::new());
    let mut flow = Flow::Continue;
    loop {
        input.reserve(PIPE);
        if !matches!(from.read_buf(&mut input).await, Ok(read) if read > 0) {
            break;
        }
        if flow != Flow::Continue {
            input.clear();
            continue;
        }
        flow = relay(&mut input, &mut output);
        if to.write_all_buf(&mut output).await.is_err() || to.flush().await.is_err() {
            // The reader is gone; the other direction reports it.
            flow = Flow::Discard;
        }
        if flow == Flow::Stop {
            return End::Stopped;
        }
    }
    if flow == Flow::Hold {
        return End::Held;
    }
    let _ = to.shutdown().await;
    End::Passed
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends `text` through a pump to a server that echoes, and returns what comes back.
    async fn echo(pump: Pump, text: &str) -> String {
        let (near, far) = tokio::io::duplex(16);
        tokio::spawn(async move {
            let (mut read, mut write) = tokio::io::split(far);
            let _ = tokio::io::copy(&mut read, &mut write).await;
            let _ = write.shutdown().await;
        });
        let (mut read, mut write) = tokio::io::split(pump.start(Box::new(near)));
        write.write_all(text.as_bytes()).await.expect("the pump reads");
        write.shutdown().await.expect("the pump reads");
        let mut back = String::new();
        read.read_to_string(&mut back).await.expect("the pump sends text");
        back
    }

    #[tokio::test]
    async fn bytes_and_ends_pass_in_both_directions() {
        let text = "a".repeat(100_000);
        assert_eq!(echo(Pump::default(), &text).await, text);
    }

    #[tokio::test]
    async fn a_relay_that_discards_passes_the_end_on() {
        let to_server: Relay = Box::new(|input, output| {
            output.unsplit(input.split());
            Flow::Discard
        });
        let pump = Pump { to_server, ..Pump::default() };
        assert_eq!(echo(pump, "once").await, "once");
    }
}
