//! Port-forwarding over WebSocket. Port number n of the query has channel 2n for data and 2n+1 for
//! errors.
//!
//! The first message of each channel is the port in two bytes, little-endian.

use bytes::{Bytes, BytesMut};
use futures_util::future::join_all;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;

use super::Target;
use crate::MAX_CHUNK;
use crate::websocket::channel::Coding;
use crate::websocket::socket::{Ended, Incoming, Outgoing, Socket, bytes_of};

/// The pieces that wait in each direction of a port.
const QUEUE: usize = 4;

/// Forwards until the connections to all ports have ended, or the client closes.
pub(super) async fn run<S>(socket: Socket<S>, coding: Coding, ports: &[u16], target: &Target)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (mut incoming, mut outgoing) = socket.split();
    let end = drive(&mut incoming, &mut outgoing, coding, ports, target).await;
    outgoing.close(incoming, end).await;
}

async fn drive<S>(
    incoming: &mut Incoming<S>,
    outgoing: &mut Outgoing<S>,
    coding: Coding,
    ports: &[u16],
    target: &Target,
) -> Result<(), Ended>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    for (index, port) in (0_u8..).zip(ports) {
        for channel in [2 * index, 2 * index + 1] {
            outgoing.send(coding.message(channel, &port.to_le_bytes())).await?;
        }
    }
    let (out, mut queue) = mpsc::channel(QUEUE);
    let mut inputs = Vec::new();
    let forwards: Vec<_> = (0_u8..)
        .zip(ports)
        .map(|(index, port)| {
            let (input, receiver) = mpsc::channel(QUEUE);
            inputs.push(input);
            forward(index, *port, target, receiver, out.clone())
        })
        .collect();
    drop(out);
    let write = async {
        // The queue ends with the last connection.
        while let Some((channel, bytes)) = queue.recv().await {
            outgoing.send(coding.message(channel, &bytes)).await?;
        }
        Ok(())
    };
    let all = async {
        let (result, _) = tokio::join!(write, join_all(forwards));
        result
    };
    tokio::select! {
        end = all => end,
        end = read(incoming, coding, &inputs) => Err(end),
    }
}

async fn read<S>(
    incoming: &mut Incoming<S>,
    coding: Coding,
    inputs: &[mpsc::Sender<Bytes>],
) -> Ended
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    loop {
        let message = match incoming.next().await {
            Ok(message) => message,
            Err(end) => return end,
        };
        // Data on error channels and on unknown channels is discarded.
        if let Ok(Some((channel, bytes))) = coding.decode(bytes_of(message))
            && channel.is_multiple_of(2)
            && let Some(input) = inputs.get(usize::from(channel / 2))
        {
            // The send fails when the connection to the port has ended.
            let _ = input.send(bytes).await;
        }
    }
}

/// Connects to one port and forwards until it closes the connection.
async fn forward(
    index: u8,
    port: u16,
    target: &Target,
    mut input: mpsc::Receiver<Bytes>,
    out: mpsc::Sender<(u8, Bytes)>,
) {
    let (data, error) = (2 * index, 2 * index + 1);
    let connection = match (target.connect)(port).await {
        Ok(connection) => connection,
        Err(reason) => {
            let _ = out.send((error, target.failure(port, &reason).into())).await;
            return;
        }
    };
    let (mut read, mut write) = tokio::io::split(connection);
    let upload = async {
        while let Some(bytes) = input.recv().await {
            if write.write_all(&bytes).await.is_err() {
                break;
            }
        }
        // Clients cannot close a channel, so only the port ends the connection.
        std::future::pending::<()>().await;
    };
    let download = async {
        loop {
            let mut piece = BytesMut::with_capacity(MAX_CHUNK);
            match read.read_buf(&mut piece).await {
                Ok(count) if count > 0 => {
                    if out.send((data, piece.freeze())).await.is_err() {
                        return;
                    }
                }
                _ => return,
            }
        }
    };
    tokio::select! {
        () = upload => {}
        () = download => {}
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{SinkExt as _, StreamExt as _};
    use tokio::io::DuplexStream;
    use tokio_tungstenite::WebSocketStream;
    use tokio_tungstenite::tungstenite::Message;
    use tokio_tungstenite::tungstenite::protocol::Role;

    use super::*;

    /// A client of ports that return as many bytes as their number, and then close.
    async fn client(ports: &'static [u16]) -> WebSocketStream<DuplexStream> {
        let (connection, client) = tokio::io::duplex(1024);
        let target = Target::new("pod", "uid", |port| async move {
            let (near, far) = tokio::io::duplex(64);
            tokio::spawn(async move {
                let (mut read, mut write) = tokio::io::split(far);
                let mut greeting = vec![0; usize::from(port)];
                if read.read_exact(&mut greeting).await.is_ok() {
                    let _ = write.write_all(&greeting).await;
                }
            });
            Ok(near)
        });
        tokio::spawn(async move {
            run(Socket::new(connection).await, Coding::Binary, ports, &target).await;
        });
        WebSocketStream::from_raw_socket(client, Role::Client, None).await
    }

    #[tokio::test]
    async fn each_port_has_its_channels_and_the_last_one_ends_the_session() {
        let mut client = client(&[1, 2, 3]).await;
        for message in [b"\x04two".as_slice(), b"\x00one", b"\x02xy"] {
            client.send(Message::binary(message.to_vec())).await.expect("the connection has space");
        }
        // Six announcements, three responses and the close frame.
        let received = client.take(6 + 3 + 1).filter_map(async |message| message.ok());
        let mut received: Vec<Message> = received.collect().await;
        assert!(received.pop().is_some_and(|last| last.is_close()));
        let mut received: Vec<Bytes> = received.into_iter().map(Message::into_data).collect();
        let announced = [[0, 1, 0], [1, 1, 0], [2, 2, 0], [3, 2, 0], [4, 3, 0], [5, 3, 0]];
        assert_eq!(received[..6], announced.map(|message| message.to_vec()));
        received[6..].sort();
        assert_eq!(received[6..], [b"\x00o".as_slice(), b"\x02xy", b"\x04two"]);
    }
}
