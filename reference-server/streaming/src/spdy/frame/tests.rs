use rstest::rstest;

use super::*;
use crate::testing::unhex;

fn frames(decoder: &mut Decoder, buffer: &mut BytesMut) -> Vec<Frame> {
    std::iter::from_fn(|| decoder.decode(buffer).expect("frames")).collect()
}

fn data(stream: u32, fin: bool, text: &'static str) -> Frame {
    Frame::Data { stream, fin, bytes: Bytes::from_static(text.as_bytes()) }
}

fn settings() -> Frame {
    let payload = unhex("000000010000000700010000").into();
    Frame::Other { kind: 4, flags: 0, payload }
}

fn syn_stream() -> Frame {
    let block = Bytes::from_static(&[1, 2]);
    Frame::SynStream { stream: 1, fin: true, associated: [0, 0, 0, 0, 0x20, 0], block }
}

#[rstest]
#[case("000000030000000473706479", data(3, false, "spdy"))]
#[case("0000000301000000", data(3, true, ""))]
#[case("800300060000000400000001", Frame::Ping(1))]
#[case(
    "80030003000000080000000300000005",
    Frame::RstStream { stream: 3, status: ResetStatus::Cancel as u32 }
)]
#[case("80030007000000080000000500000000", Frame::GoAway { last: 5, status: 0 })]
#[case("800300010100000c0000000100000000200001 02", syn_stream())]
#[case("800300020000000c00000005026100000000ffff",
    Frame::SynReply { stream: 5, fin: false, block: unhex("026100000000ffff").into() })]
#[case(
    "800300080000000400000005",
    Frame::Headers { stream: 5, fin: false, block: Bytes::new() }
)]
#[case("800300040000000c000000010000000700010000", settings())]
fn frames_of_peers_decode_and_encode(#[case] hex: &str, #[case] expected: Frame) {
    let wire = unhex(&hex.replace(' ', ""));
    let mut buffer = BytesMut::from(wire.as_slice());
    assert_eq!(frames(&mut Decoder::default(), &mut buffer), std::slice::from_ref(&expected));
    assert!(buffer.is_empty());
    assert_eq!(expected.to_bytes(), wire);
}

#[test]
fn frames_do_not_depend_on_how_the_bytes_are_split() {
    let bytes = unhex(
        "80030006000000040000000100000003000000046f75740a0000000301000001788003000700000008\
                       0000000500000000",
    );
    let (mut decoder, mut buffer, mut seen) = (Decoder::default(), BytesMut::new(), Vec::new());
    for byte in bytes {
        buffer.put_u8(byte);
        seen.extend(frames(&mut decoder, &mut buffer));
    }
    let pieces = ["o", "u", "t", "\n"].map(|piece| data(3, false, piece));
    let expected: Vec<_> = [Frame::Ping(1)].into_iter().chain(pieces).collect();
    assert_eq!(seen[..5], expected);
    assert_eq!(seen[5..], [data(3, true, "x"), Frame::GoAway { last: 5, status: 0 }]);
}

#[test]
fn a_long_data_frame_is_returned_in_pieces() {
    let mut buffer = BytesMut::from(&data_head(5, true, 16_000_000)[..]);
    buffer.put_bytes(b'x', 10);
    let mut decoder = Decoder::default();
    let first = decoder.decode(&mut buffer).expect("a piece");
    assert_eq!(first, Some(data(5, false, "xxxxxxxxxx")));
    assert_eq!(decoder.decode(&mut buffer), Ok(None));
}

#[test]
fn data_above_the_longest_frame_is_split() {
    let frame = Frame::Data { stream: 1, fin: true, bytes: vec![b'x'; 0x0100_0000].into() };
    let wire = frame.to_bytes();
    assert_eq!(wire.len(), 0x0100_0000 + 2 * HEAD);
    assert_eq!(wire[..HEAD], [0, 0, 0, 1, 0, 0xff, 0xff, 0xff]);
    assert_eq!(wire[wire.len() - 1 - HEAD..wire.len() - 1], [0, 0, 0, 1, 1, 0, 0, 1]);
}

#[rstest]
#[case("8002000600000004", FrameError::Version(2))]
#[case("8003000100ffffff", FrameError::TooLong { kind: 1, length: 0x00ff_ffff })]
#[case("8003000100010001", FrameError::TooLong { kind: 1, length: 0x0001_0001 })]
#[case("80030001000000020000", FrameError::TooShort(1))]
#[case("800300030000000400000001", FrameError::TooShort(3))]
fn invalid_frames_are_errors(#[case] hex: &str, #[case] error: FrameError) {
    let mut buffer = BytesMut::from(unhex(hex).as_slice());
    assert_eq!(Decoder::default().decode(&mut buffer), Err(error));
}

#[test]
fn control_frames_may_have_64_kib() {
    let mut buffer = BytesMut::from(unhex("8003000400010000").as_slice());
    assert_eq!(Decoder::default().decode(&mut buffer), Ok(None));
    buffer.put_bytes(0, MAX_CONTROL);
    let payload = vec![0; MAX_CONTROL].into();
    let expected = Frame::Other { kind: 4, flags: 0, payload };
    assert_eq!(Decoder::default().decode(&mut buffer), Ok(Some(expected)));
}
