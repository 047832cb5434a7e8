use super::super::header_block::Headers;
use super::*;

const AT: Duration = Duration::ZERO;

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex"))
        .collect()
}

fn kind(name: &str) -> Headers {
    vec![("streamtype".to_owned(), name.to_owned())]
}

/// A recorded session of `echo hi` over v4 with a real server.
#[test]
fn a_recorded_session_is_parsed() {
    let mut transcript = Transcript::default();
    let mut session = Session::new().expect("a session");
    for name in ["error", "stdout"] {
        session
            .create((name, None), &kind(name), false, (&mut transcript, AT))
            .expect("it is created");
    }
    let recorded = [
        "80030002000000140000000178f9e3c6a7c26260606000000000ffff",
        "800300020000000c00000003026100000000ffff",
        "000000030000000368690a",
        "00000001000000147b22737461747573223a2253756363657373227d",
        "80030003000000080000000100000005",
        "80030003000000080000000300000005",
        "80030007000000080000000000000000",
    ];
    let all = bytes(&recorded.concat());
    // Reads may split frames anywhere.
    for piece in all.chunks(5) {
        assert_eq!(session.feed(piece, (&mut transcript, AT)), Ok(vec![]));
    }
    assert_eq!(transcript.channels["stdout"].received.text(), "hi\n");
    assert_eq!(transcript.channels["error"].received.text(), r#"{"status":"Success"}"#);
    assert!(transcript.channels.values().all(|channel| channel.ended));
    assert_eq!(transcript.close, Some(Close { code: Some(0), reason: "GOAWAY".to_owned() }));
    assert!(transcript.violations.is_empty(), "{:?}", transcript.violations);
    assert!(!session.is_inside_frame());
}

#[test]
fn streams_of_a_client_are_odd_and_begin_with_one() {
    let mut transcript = Transcript::default();
    let mut session = Session::new().expect("a session");
    let mut create = |number| {
        let sent = session.create(("data", number), &kind("data"), true, (&mut transcript, AT));
        sent.expect("it is created")[8..12].to_vec()
    };
    assert_eq!(
        [create(None), create(None), create(Some(9)), create(None)].concat(),
        [0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 9, 0, 0, 0, 11]
    );
}

#[test]
fn pings_of_the_server_are_replied_and_those_of_ours_are_not() {
    let mut transcript = Transcript::default();
    let mut session = Session::new().expect("a session");
    let ping = bytes("800300060000000400000002");
    assert_eq!(session.feed(&ping, (&mut transcript, AT)), Ok(vec![ping.clone().into()]));
    assert_eq!(session.feed(&bytes("800300060000000400000001"), (&mut transcript, AT)), Ok(vec![]));
}

#[test]
fn what_no_server_may_send_is_recorded() {
    let mut transcript = Transcript::default();
    let mut session = Session::new().expect("a session");
    session
        .create(("stdout", None), &kind("stdout"), false, (&mut transcript, AT))
        .expect("it is created");
    let before_reply = bytes("000000010100000161");
    let after_end = bytes("000000010000000161");
    let of_nobody = bytes("000000050000000161");
    for frame in [before_reply, after_end, of_nobody] {
        assert_eq!(session.feed(&frame, (&mut transcript, AT)), Ok(vec![]));
    }
    assert_eq!(transcript.violations.len(), 4, "{:?}", transcript.violations);
}
