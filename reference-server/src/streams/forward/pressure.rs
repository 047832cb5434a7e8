//! Who reads slowly holds up who writes: neither direction of a forwarded connection keeps what its reader does not take, and
//! sessions do not hold up each other.

use flate2::{Compress, Compression, FlushCompress};
use rstest::rstest;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::sync::mpsc;

use super::tunnel::Tunnel;
use super::{Target, connector, spdy, websocket};
use crate::Faults;
use crate::runtime::PIPE_CAPACITY;
use crate::streams::testing::{ON_ITS_WAY, taken};
use crate::streams::websocket::channels::Coding;
use crate::streams::websocket::socket::Socket;

/// The content of a frame.
const FRAME: usize = 16 * 1024;

/// How ports are forwarded.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Spdy,
    /// SPDY inside of a WebSocket.
    Tunnel,
    Channels,
}

impl Way {
    /// Starts a session over a connection that holds a kilobyte. Gives the ends of its client and of its port.
    async fn session(self) -> (DuplexStream, DuplexStream) {
        let (connection, mut client) = tokio::io::duplex(1024);
        let (connected, mut ports) = mpsc::channel(1);
        let connect = connector(move |_| {
            let connected = connected.clone();
            async move {
                let (ours, theirs) = tokio::io::duplex(PIPE_CAPACITY);
                connected.send(theirs).await.expect("the test waits for it");
                Ok(ours)
            }
        });
        let target = Target { pod: "pod".to_owned(), uid: "uid".to_owned(), connect };
        let none = Faults::none();
        match self {
            Self::Spdy => drop(tokio::spawn(spdy::run(connection, target, none))),
            Self::Tunnel => drop(tokio::spawn(async move {
                let socket = Socket::new(connection, none).await;
                spdy::run(Tunnel::new(socket.into_stream()), target, none).await;
            })),
            Self::Channels => drop(tokio::spawn(async move {
                let socket = Socket::new(connection, none).await;
                websocket::run(socket, Coding::Binary, &[7], &target, none).await;
            })),
        }
        if self != Self::Channels {
            client.write_all(&self.carry(pair())).await.expect("the session reads");
        }
        let port = ports.recv().await.expect("the session connects");
        (client, port)
    }

    /// Data for the port.
    fn input(self) -> Vec<u8> {
        let content = vec![b'x'; FRAME];
        if self == Self::Channels {
            return masked(&[&[0], content.as_slice()].concat());
        }
        let length = u32::try_from(FRAME).expect("a short frame").to_be_bytes();
        self.carry([[0, 0, 0, 3].as_slice(), &length, &content].concat())
    }

    /// SPDY as it stands on the wire.
    fn carry(self, frames: Vec<u8>) -> Vec<u8> {
        if self == Self::Tunnel { masked(&frames) } else { frames }
    }
}

/// A binary message, masked with zeroes.
fn masked(content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).expect("a short message").to_be_bytes();
    [[0x82, 0xfe].as_slice(), &length, &[0; 4], content].concat()
}

/// The streams of a connection: 1 for errors, 3 for data. The blocks name the dictionary of SPDY and do not use it.
fn pair() -> Vec<u8> {
    let mut packed = Compress::new(Compression::fast(), false);
    let mut dictionary = [0x78, 0xf9, 0xe3, 0xc6, 0xa7, 0xc2].as_slice();
    let streams = [(1_u32, "error"), (3, "data")].map(|(id, kind)| {
        let fields = [("streamtype", kind), ("port", "7"), ("requestid", "0")];
        let mut plain = 3_u32.to_be_bytes().to_vec();
        for text in fields.iter().flat_map(|(name, value)| [name, value]) {
            plain.extend(u32::try_from(text.len()).expect("short").to_be_bytes());
            plain.extend_from_slice(text.as_bytes());
        }
        let mut block = Vec::with_capacity(1024);
        packed.compress_vec(&plain, &mut block, FlushCompress::Sync).expect("room");
        let block = [std::mem::take(&mut dictionary), &block].concat();
        let length = u32::try_from(10 + block.len()).expect("short").to_be_bytes();
        [&[0x80, 3, 0, 1, 0], &length[1..], &id.to_be_bytes(), &[0; 6], &block].concat()
    });
    streams.concat()
}

/// Fails unless another session is served.
async fn another_is_served(way: Way) {
    let (mut client, mut port) = way.session().await;
    let sending = async {
        client.write_all(&way.input()).await.expect("the session reads");
        client
    };
    let mut content = vec![0; FRAME];
    let (mut client, read) = tokio::join!(sending, port.read_exact(&mut content));
    read.expect("all of it comes");
    port.write_all(b"there and back").await.expect("the session reads");
    let mut bytes = Vec::new();
    while !bytes.windows(14).any(|text| text == b"there and back") {
        assert!(matches!(client.read_buf(&mut bytes).await, Ok(1..)), "the session ended");
    }
}

#[rstest]
#[tokio::test]
async fn a_port_that_reads_nothing_holds_its_client_up(
    #[values(Way::Spdy, Way::Tunnel, Way::Channels)] way: Way,
) {
    let (client, _port) = way.session().await;
    let taken = taken(client, &way.input()).await;
    assert!((PIPE_CAPACITY..ON_ITS_WAY).contains(&taken), "{taken}");
    another_is_served(way).await;
}

#[rstest]
#[tokio::test]
async fn a_client_that_reads_nothing_holds_its_port_up(
    #[values(Way::Spdy, Way::Tunnel, Way::Channels)] way: Way,
) {
    let (_client, port) = way.session().await;
    let taken = taken(port, &[b'x'; FRAME]).await;
    assert!((PIPE_CAPACITY..ON_ITS_WAY).contains(&taken), "{taken}");
    another_is_served(way).await;
}
