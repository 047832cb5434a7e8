use tokio::io::{BufWriter, DuplexStream};

use super::*;
use crate::testing::unhex;

/// `SYN_STREAM` frames of a Go client: error, stdin, stdout.
const ERROR: &str = "800300010000002800000001000000000000\
                     78f9e3c6a7c202a62346703a2b294a4dcc851625aca9a08006000000ffff";
const STDIN: &str = "800300010000001700000003000000000000c22e555c02cc2e00000000ffff";
const STDOUT: &str = "800300010000001900000005000000000000c22a054ce729f9a52500000000ffff";

/// A connection and its client. The `BufWriter` shows whether the connection flushes.
fn connect() -> (Connection, DuplexStream) {
    let (ours, theirs) = tokio::io::duplex(1024);
    (Connection::start(BufWriter::new(ours)), theirs)
}

async fn send(client: &mut DuplexStream, hex: &str) {
    client.write_all(&unhex(hex)).await.expect("the connection reads");
}

async fn receive(client: &mut DuplexStream, count: usize) -> Vec<Frame> {
    let (mut decoder, mut buffer, mut frames) = (Decoder::default(), BytesMut::new(), Vec::new());
    while frames.len() < count {
        match decoder.decode(&mut buffer).expect("frames") {
            Some(frame) => frames.push(frame),
            None => {
                assert_ne!(client.read_buf(&mut buffer).await.expect("bytes"), 0, "{frames:?}");
            }
        }
    }
    frames
}

#[tokio::test]
async fn an_accepted_stream_carries_data_in_both_directions() {
    let (mut connection, mut client) = connect();
    send(&mut client, ERROR).await;
    send(&mut client, STDIN).await;
    send(&mut client, "0000000300000007737064792d696e0000000301000000").await;
    let error = connection.next_stream().await.expect("a stream");
    assert_eq!((error.id(), error.headers.get("streamtype")), (1, Some("error")));
    let stdin = connection.next_stream().await.expect("a stream");
    assert_eq!(stdin.id(), 3);
    let mut stdin = stdin.accept().await;
    assert_eq!(stdin.receiver.next().await, Received::Data(Bytes::from_static(b"spdy-in")));
    assert_eq!(stdin.receiver.next().await, Received::End);
    stdin.sender.data(Bytes::from_static(b"out\n")).await;
    let expected = Frame::Data { stream: 3, fin: false, bytes: Bytes::from_static(b"out\n") };
    assert_eq!(receive(&mut client, 2).await[1], expected);
    stdin.sender.end().await;
    error.reset().await;
    let ends = [
        Frame::Data { stream: 3, fin: true, bytes: Bytes::new() },
        Frame::RstStream { stream: 1, status: ResetStatus::Cancel as u32 },
    ];
    assert_eq!(receive(&mut client, 2).await, ends);
}

#[tokio::test]
async fn data_after_the_end_of_its_stream_is_dropped() {
    let (mut connection, mut client) = connect();
    send(&mut client, ERROR).await;
    send(
        &mut client,
        "00000001010000016100000001000000016280030006000000040000000180030006000000040000000b",
    )
    .await;
    let mut error = connection.next_stream().await.expect("a stream").accept().await;
    assert_eq!(error.receiver.next().await, Received::Data(Bytes::from_static(b"a")));
    assert_eq!(error.receiver.next().await, Received::End);
    let responses = receive(&mut client, 3).await;
    assert!(
        responses.contains(&Frame::Ping(1)) && responses.contains(&Frame::Ping(11)),
        "{responses:?}"
    );
    assert!(
        !responses.iter().any(|frame| matches!(frame, Frame::RstStream { .. })),
        "{responses:?}"
    );
}

#[tokio::test]
async fn finish_sends_goaway_and_closes() {
    let (mut connection, mut client) = connect();
    send(&mut client, ERROR).await;
    let stream = connection.next_stream().await.expect("a stream").accept().await;
    stream.sender.data(Bytes::from_static(b"last")).await;
    stream.sender.reset().await;
    tokio::join!(connection.finish(), async {
        let mut rest = Vec::new();
        client.read_to_end(&mut rest).await.expect("bytes");
        let tail = unhex(
            "00000001000000046c617374800300030000000800000001000000058003000700000008\
                          0000000100000000",
        );
        assert!(rest.ends_with(&tail), "{rest:02x?}");
        drop(client);
    });
}

#[tokio::test]
async fn pings_are_returned_and_invalid_streams_are_reset() {
    let (_connection, mut client) = connect();
    send(&mut client, "800300060000000400000001").await;
    // An even id, and data on a stream that was never opened.
    send(&mut client, ERROR).await;
    send(&mut client, "800300010000001700000002000000000000c22e555c02cc2e00000000ffff").await;
    send(&mut client, "0000000900000000").await;
    let mut bytes = vec![0; 12 + 16 + 16];
    client.read_exact(&mut bytes).await.expect("bytes");
    let expected = "800300060000000400000001\
                    80030003000000080000000200000001\
                    80030003000000080000000900000002";
    assert_eq!(bytes, unhex(expected));
}

/// A `SYN_STREAM` without headers. The first block of a connection is longer than the others.
fn syn_stream(number: usize, fin: bool) -> Vec<u8> {
    let block =
        unhex(if number == 0 { "78f9e3c6a7c26260606000000000ffff" } else { "026100000000ffff" });
    let id = u32::try_from(2 * number + 1).expect("a number");
    let length = u32::try_from(10 + block.len()).expect("short") | u32::from(fin) << 24;
    let head = [[0x80, 3, 0, 1], length.to_be_bytes(), id.to_be_bytes(), [0; 4]].concat();
    [&head, [0; 2].as_slice(), &block].concat()
}

/// Opens as many streams as a client may have.
async fn all_streams(fin: bool) -> (Connection, DuplexStream, Vec<Stream>) {
    let (ours, mut client) = tokio::io::duplex(1 << 20);
    let mut connection = Connection::start(ours);
    let mut streams = Vec::new();
    for number in 0..MAX_STREAMS {
        client.write_all(&syn_stream(number, fin)).await.expect("the connection reads");
        streams.push(connection.next_stream().await.expect("a stream").stream);
    }
    (connection, client, streams)
}

async fn one_more_is_reset(client: &mut DuplexStream) {
    client.write_all(&syn_stream(MAX_STREAMS, false)).await.expect("the connection reads");
    let mut reset = [0; 16];
    client.read_exact(&mut reset).await.expect("a frame");
    assert_eq!(reset, *unhex("80030003000000080000080100000003"));
}

#[tokio::test]
async fn streams_that_the_client_ended_count_until_the_server_drops_them() {
    let (_connection, mut client, streams) = all_streams(true).await;
    one_more_is_reset(&mut client).await;
    drop(streams);
}

#[tokio::test]
async fn streams_on_which_the_client_may_send_count_although_nobody_responses() {
    let (_connection, mut client, streams) = all_streams(false).await;
    let receivers: Vec<_> = streams.into_iter().map(|stream| stream.receiver).collect();
    one_more_is_reset(&mut client).await;
    drop(receivers);
}

#[tokio::test]
async fn dropped_streams_do_not_count() {
    let (mut connection, mut client, streams) = all_streams(false).await;
    drop(streams);
    client.write_all(&syn_stream(MAX_STREAMS, false)).await.expect("the connection reads");
    assert_eq!(connection.next_stream().await.expect("a stream").id(), 2 * 1024 + 1);
}

#[tokio::test]
async fn a_slow_reader_slows_the_client_down() {
    let (mut connection, mut client) = connect();
    send(&mut client, ERROR).await;
    send(&mut client, STDIN).await;
    send(&mut client, STDOUT).await;
    let flood = async {
        let frame = [frame::data_head(3, false, 512).as_slice(), &[0; 512]].concat();
        let mut sent = 0;
        loop {
            client.write_all(&frame).await.expect("the connection reads");
            sent += frame.len();
            assert!(sent < 256 * 1024, "the connection buffers without a bound");
        }
    };
    // The buffers hold a few kilobytes, so the client has to wait.
    let stopped = tokio::time::timeout(Duration::from_millis(200), flood).await;
    assert!(stopped.is_err());
    connection.next_stream().await.expect("a stream");
    let mut stdin = connection.next_stream().await.expect("a stream").accept().await;
    assert!(matches!(stdin.receiver.next().await, Received::Data(_)));
}

#[tokio::test]
async fn streams_end_when_the_connection_ends() {
    let (mut connection, mut client) = connect();
    send(&mut client, ERROR).await;
    let mut error = connection.next_stream().await.expect("a stream").accept().await;
    drop(client);
    assert_eq!(error.receiver.next().await, Received::Reset);
    assert!(connection.next_stream().await.is_none());
}
