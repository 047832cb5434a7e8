//! A slow reader slows the writer down, so neither direction of a command has an unbounded buffer.

use rstest::rstest;
use tokio::io::{AsyncWriteExt as _, DuplexStream};
use tokio::sync::{mpsc, oneshot};

use super::websocket::{self, Dialect};
use super::{ExecRequest, Exit, Process, Version, spdy};
use crate::PIPE_CAPACITY;
use crate::testing::{MAX_IN_FLIGHT, unhex, write_until_blocked};
use crate::websocket::channel::Coding;

/// The content of a frame.
const FRAME: usize = 16 * 1024;

/// `SYN_STREAM` frames of a Go client: error, stdin, stdout.
const STREAMS: [&str; 3] = [
    "800300010000002800000001000000000000\
     78f9e3c6a7c202a62346703a2b294a4dcc851625aca9a08006000000ffff",
    "800300010000001700000003000000000000c22e555c02cc2e00000000ffff",
    "800300010000001900000005000000000000c22a054ce729f9a52500000000ffff",
];

/// The other ends of a session: its client, and the pipes of its command.
struct Ends {
    client: DuplexStream,
    stdin: DuplexStream,
    stdout: DuplexStream,
    _exit: oneshot::Sender<Exit>,
}

async fn session(is_spdy: bool) -> Ends {
    let (connection, mut client) = tokio::io::duplex(1024);
    let (to_command, stdin) = tokio::io::duplex(PIPE_CAPACITY);
    let (from_command, stdout) = tokio::io::duplex(PIPE_CAPACITY);
    let (exit, exited) = oneshot::channel();
    let (resize, _) = mpsc::channel(1);
    let process = Process {
        stdin: Some(to_command),
        stdout: Some(from_command),
        stderr: None,
        resize,
        exit: exited,
    };
    let request = ExecRequest { stdin: true, stdout: true, ..ExecRequest::default() };
    let start = async |_| Ok::<_, std::convert::Infallible>(process);
    if is_spdy {
        tokio::spawn(spdy::run(connection, Version::V4, request, start));
        for stream in STREAMS {
            client.write_all(&unhex(stream)).await.expect("the session reads");
        }
    } else {
        let dialect = Dialect { version: Version::V5, coding: Coding::Binary };
        tokio::spawn(websocket::run(connection, dialect, request, None, start));
    }
    Ends { client, stdin, stdout, _exit: exit }
}

/// A frame for stdin.
fn input(is_spdy: bool) -> Vec<u8> {
    let length = u32::try_from(FRAME).expect("a short frame").to_be_bytes();
    let head = if is_spdy {
        [[0, 0, 0, 3], length].concat()
    } else {
        // One more byte for the channel. The mask is zero.
        let length = u16::try_from(FRAME + 1).expect("a short frame").to_be_bytes();
        [[0x82, 0xfe].as_slice(), &length, &[0; 5]].concat()
    };
    [head, vec![b'x'; FRAME]].concat()
}

#[rstest]
#[case::websocket(false)]
#[case::spdy(true)]
#[tokio::test]
async fn a_command_that_does_not_read_blocks_its_client(#[case] is_spdy: bool) {
    let Ends { client, stdin: _stdin, stdout: _stdout, _exit } = session(is_spdy).await;
    let written = write_until_blocked(client, &input(is_spdy)).await;
    assert!((PIPE_CAPACITY..MAX_IN_FLIGHT).contains(&written), "{written}");
}

#[rstest]
#[case::websocket(false)]
#[case::spdy(true)]
#[tokio::test]
async fn a_client_that_does_not_read_blocks_its_command(#[case] is_spdy: bool) {
    let Ends { client: _client, stdin: _stdin, stdout, _exit } = session(is_spdy).await;
    let written = write_until_blocked(stdout, &[b'x'; FRAME]).await;
    assert!((PIPE_CAPACITY..MAX_IN_FLIGHT).contains(&written), "{written}");
}
