//! A slow reader slows the writer down, so no direction has an unbounded buffer. Other sessions
//! continue.

use bytes::BytesMut;
use rstest::rstest;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::sync::mpsc;

use super::tunnel::Tunnel;
use super::{Target, spdy, websocket};
use crate::PIPE_CAPACITY;
use crate::spdy::frame::Frame;
use crate::spdy::header_block::Encoder;
use crate::testing::{MAX_IN_FLIGHT, write_until_blocked};
use crate::websocket::channel::Coding;
use crate::websocket::socket::Socket;

/// The content of a frame.
const FRAME: usize = 16 * 1024;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Transport {
    Spdy,
    /// SPDY through binary WebSocket messages.
    Tunnel,
    Channels,
}

impl Transport {
    /// Starts a session over a connection of 1 KiB. Returns the other ends: the client and the
    /// port.
    async fn session(self) -> (DuplexStream, DuplexStream) {
        let (connection, mut client) = tokio::io::duplex(1024);
        let (connected, mut ports) = mpsc::channel(1);
        let target = Target::new("pod", "uid", move |_| {
            let connected = connected.clone();
            async move {
                let (near, far) = tokio::io::duplex(PIPE_CAPACITY);
                connected.send(far).await.expect("the test waits for it");
                Ok(near)
            }
        });
        match self {
            Self::Spdy => drop(tokio::spawn(spdy::run(connection, target))),
            Self::Tunnel => drop(tokio::spawn(async move {
                let socket = Socket::new(connection).await;
                spdy::run(Tunnel::new(socket.into_stream()), target).await;
            })),
            Self::Channels => drop(tokio::spawn(async move {
                let socket = Socket::new(connection).await;
                websocket::run(socket, Coding::Binary, &[7], &target).await;
            })),
        }
        if self != Self::Channels {
            client.write_all(&self.wrap(pair())).await.expect("the session reads");
        }
        let port = ports.recv().await.expect("the session connects");
        (client, port)
    }

    /// A frame with data for the port.
    fn input(self) -> Vec<u8> {
        let content = vec![b'x'; FRAME];
        if self == Self::Channels {
            return masked(&[&[0], content.as_slice()].concat());
        }
        let length = u32::try_from(FRAME).expect("a short frame").to_be_bytes();
        self.wrap([[0, 0, 0, 3].as_slice(), &length, &content].concat())
    }

    /// Wraps SPDY frames for this transport.
    fn wrap(self, frames: Vec<u8>) -> Vec<u8> {
        if self == Self::Tunnel { masked(&frames) } else { frames }
    }
}

/// A binary message. The mask is zero.
fn masked(content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).expect("a short message").to_be_bytes();
    [[0x82, 0xfe].as_slice(), &length, &[0; 4], content].concat()
}

/// The streams of a connection to port 7: 1 for errors, 3 for data.
fn pair() -> Vec<u8> {
    let mut blocks = Encoder::default();
    let mut wire = BytesMut::new();
    for (stream, kind) in [(1, "error"), (3, "data")] {
        let headers =
            [("streamtype", kind), ("port", "7"), ("requestid", "0")].into_iter().collect();
        let block = blocks.encode(&headers).freeze();
        Frame::SynStream { stream, fin: false, associated: [0; 6], block }.encode(&mut wire);
    }
    wire.to_vec()
}

/// Fails unless another session works.
async fn assert_other_session_works(transport: Transport) {
    let (mut client, mut port) = transport.session().await;
    let sending = async {
        client.write_all(&transport.input()).await.expect("the session reads");
        client
    };
    let mut content = vec![0; FRAME];
    let (mut client, read) = tokio::join!(sending, port.read_exact(&mut content));
    read.expect("the whole frame");
    port.write_all(b"there and back").await.expect("the session reads");
    let mut bytes = Vec::new();
    while !bytes.windows(14).any(|text| text == b"there and back") {
        assert!(matches!(client.read_buf(&mut bytes).await, Ok(1..)), "the session ended");
    }
}

#[rstest]
#[tokio::test]
async fn a_port_that_does_not_read_blocks_its_client(
    #[values(Transport::Spdy, Transport::Tunnel, Transport::Channels)] transport: Transport,
) {
    let (client, _port) = transport.session().await;
    let written = write_until_blocked(client, &transport.input()).await;
    assert!((PIPE_CAPACITY..MAX_IN_FLIGHT).contains(&written), "{written}");
    assert_other_session_works(transport).await;
}

#[rstest]
#[tokio::test]
async fn a_client_that_does_not_read_blocks_its_port(
    #[values(Transport::Spdy, Transport::Tunnel, Transport::Channels)] transport: Transport,
) {
    let (_client, port) = transport.session().await;
    let written = write_until_blocked(port, &[b'x'; FRAME]).await;
    assert!((PIPE_CAPACITY..MAX_IN_FLIGHT).contains(&written), "{written}");
    assert_other_session_works(transport).await;
}
