//! Ports over WebSocket: two channels for each, an even one for its bytes and an odd one for what goes wrong. On each the
//! first message is the port, in two bytes, the lower one first.

use bytes::{Bytes, BytesMut};
use futures_util::future::join_all;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::Message;

use super::Target;
use crate::streams::websocket::channels::{CHUNK, Channels, Coding};
use crate::streams::websocket::socket::{Ended, Incoming, Outgoing, Socket};
use crate::{Fault, Faults};

/// How many pieces wait on the way to and from a port.
const QUEUE: usize = 4;

/// Forwards until all ports have ended, or the client leaves.
pub(super) async fn run<S>(socket: Socket<S>, coding: Coding, ports: &[u16], target: &Target, faults: Faults)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let channels = Channels { coding, faults };
    let (mut incoming, mut outgoing) = socket.split();
    let end = drive(&mut incoming, &mut outgoing, channels, ports, target).await;
    outgoing.close(incoming, end).await;
}

async fn drive<S>(
    incoming: &mut Incoming<S>,
    outgoing: &mut Outgoing<S>,
    channels: Channels,
    ports: &[u16],
    target: &Target,
) -> Result<(), Ended>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    for (index, port) in (0_u8..).zip(ports) {
        for channel in [2 * index, 2 * index + 1] {
            if let Some(message) = announcement(channels, channel, *port) {
                outgoing.send(message).await?;
            }
        }
    }
    let (out, mut queue) = mpsc::channel(QUEUE);
    let mut inputs = Vec::new();
    let connections: Vec<_> = (0_u8..)
        .zip(ports)
        .map(|(index, port)| {
            let (input, receiver) = mpsc::channel(QUEUE);
            inputs.push(input);
            connection(index, *port, target, receiver, out.clone(), channels.faults)
        })
        .collect();
    drop(out);
    let write = async {
        while let Some((channel, bytes)) = queue.recv().await {
            outgoing.send(channels.encode(channel, &bytes)).await?;
        }
        // Every connection has ended.
        Ok(())
    };
    let all = async {
        let (result, _) = tokio::join!(write, join_all(connections));
        result
    };
    tokio::select! {
        end = all => end,
        end = read(incoming, channels, &inputs) => Err(end),
    }
}

fn announcement(channels: Channels, channel: u8, port: u16) -> Option<Message> {
    let faults = channels.faults;
    if faults.on(Fault::PortNotAnnounced) {
        return None;
    }
    let port = if faults.on(Fault::PortBigEndian) { port.to_be_bytes() } else { port.to_le_bytes() };
    Some(channels.encode(channel, &port))
}

async fn read<S>(incoming: &mut Incoming<S>, channels: Channels, inputs: &[mpsc::Sender<Bytes>]) -> Ended
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    loop {
        let message = match incoming.next().await {
            Ok(message) => message,
            Err(end) => return end,
        };
        // Clients have nothing to say on the channels for errors, nor on those that there are not.
        if let Ok(Some((channel, bytes))) = channels.decode(message)
            && channel.is_multiple_of(2)
            && let Some(input) = inputs.get(usize::from(channel / 2))
        {
            // A port that has ended takes no more.
            let _ = input.send(bytes).await;
        }
    }
}

/// One connection, from its making to its end.
async fn connection(
    index: u8,
    port: u16,
    target: &Target,
    mut input: mpsc::Receiver<Bytes>,
    out: mpsc::Sender<(u8, Bytes)>,
    faults: Faults,
) {
    let (data, error) = if faults.on(Fault::PortChannelsSwapped) {
        (2 * index + 1, 2 * index)
    } else {
        (2 * index, 2 * index + 1)
    };
    let connection = match (target.connect)(port).await {
        Ok(connection) => connection,
        Err(_) if faults.on(Fault::PortFailureUntold) => return,
        Err(reason) => {
            let _ = out.send((error, target.failure(port, &reason).into())).await;
            return;
        }
    };
    let (mut read, mut write) = tokio::io::split(connection);
    let upward = async {
        while let Some(bytes) = input.recv().await {
            if write.write_all(&bytes).await.is_err() {
                break;
            }
        }
        // There is no way to say over a channel that no more comes.
        std::future::pending::<()>().await;
    };
    let channels_stay = faults.on(Fault::PortEndUntold);
    let downward = async {
        loop {
            let mut piece = BytesMut::with_capacity(CHUNK);
            match read.read_buf(&mut piece).await {
                Ok(count) if count > 0 => {
                    if out.send((data, piece.freeze())).await.is_err() {
                        return;
                    }
                }
                _ if channels_stay => std::future::pending().await,
                _ => return,
            }
        }
    };
    tokio::select! {
        () = upward => {}
        () = downward => {}
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{SinkExt as _, StreamExt as _};
    use tokio::io::DuplexStream;
    use tokio_tungstenite::WebSocketStream;
    use tokio_tungstenite::tungstenite::protocol::Role;

    use super::*;
    use crate::streams::forward::connector;

    /// A client of ports that read as many bytes as their number says, say them again, and end.
    async fn client(ports: &'static [u16]) -> WebSocketStream<DuplexStream> {
        let (connection, client) = tokio::io::duplex(1024);
        let connect = connector(|port| async move {
            let (ours, theirs) = tokio::io::duplex(64);
            tokio::spawn(async move {
                let (mut read, mut write) = tokio::io::split(theirs);
                let mut greeting = vec![0; usize::from(port)];
                if read.read_exact(&mut greeting).await.is_ok() {
                    let _ = write.write_all(&greeting).await;
                }
            });
            Ok(ours)
        });
        tokio::spawn(async move {
            let target = Target { pod: "pod".to_owned(), uid: "uid".to_owned(), connect };
            let socket = Socket::new(connection, Faults::none()).await;
            run(socket, Coding::Binary, ports, &target, Faults::none()).await;
        });
        WebSocketStream::from_raw_socket(client, Role::Client, None).await
    }

    #[tokio::test]
    async fn each_port_has_channels_of_its_own_and_the_last_that_ends_ends_all() {
        let mut client = client(&[1, 2, 3]).await;
        for message in [b"\x04two".as_slice(), b"\x00one", b"\x02xy"] {
            client.send(Message::binary(message.to_vec())).await.expect("room");
        }
        // The ports, what they say, and the end.
        let said = client.take(6 + 3 + 1).filter_map(async |message| message.ok());
        let mut said: Vec<Message> = said.collect().await;
        assert!(said.pop().is_some_and(|last| last.is_close()));
        let mut said: Vec<Bytes> = said.into_iter().map(Message::into_data).collect();
        let announced = [[0, 1, 0], [1, 1, 0], [2, 2, 0], [3, 2, 0], [4, 3, 0], [5, 3, 0]];
        assert_eq!(said[..6], announced.map(|message| message.to_vec()));
        said[6..].sort();
        assert_eq!(said[6..], [b"\x00o".as_slice(), b"\x02xy", b"\x04two"]);
    }
}
