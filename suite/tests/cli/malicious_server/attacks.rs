//! Attacks over HTTP/1.1, WebSocket and SPDY.

use crate::malicious_server::proxy::{Action, Attack, send};

// Complete responses close the connection, so that the next request gets its own attack.
const JSON: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n";
const CHUNKED: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\
                       Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n";

/// Either the response is too large, or the shared memory is used up.
pub(super) const TOO_MUCH: &[&str] =
    &["the body is longer than 33554432 bytes", "need more than 96 MiB of memory"];
const CUT: &[&str] =
    &["connection closed", "end of file before message length reached", "unexpected EOF"];
pub(super) const LATE: &[&str] = &["the deadline passed while"];

pub(super) fn attack(
    name: &'static str,
    script: Vec<Action>,
    messages: &'static [&'static str],
) -> Attack {
    Attack { name, script, messages }
}

fn with_length(length: impl std::fmt::Display, body: &str) -> Action {
    send(format!("{JSON}Content-Length: {length}\r\n\r\n{body}"))
}

fn whole(body: &[u8]) -> Action {
    send([format!("{JSON}Content-Length: {}\r\n\r\n", body.len()).as_bytes(), body].concat())
}

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

/// Sends endless chunks with repeated text.
fn chunks(text: &str, times: usize) -> Action {
    Action::Flood(chunk(&text.repeat(times)).into())
}

/// Attacks that replace a complete response.
pub(super) fn responses() -> Vec<Attack> {
    [incomplete_responses(), malformed_responses()].concat()
}

/// Responses that end too early or never.
fn incomplete_responses() -> Vec<Attack> {
    let hang = || Action::Hang;
    let spaces = Action::Flood(vec![b' '; 64 << 10]);
    let gzip = format!("{JSON}Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n");
    vec![
        attack("closes at once", vec![], CUT),
        attack("closes in the head", vec![send("HTTP/1.1 200 O")], CUT),
        attack("closes in the body", vec![with_length(100, "{\"items\"")], CUT),
        attack("closes in a chunk", vec![send(CHUNKED), send("ff\r\n{\"items\"")], CUT),
        attack("hangs before the head", vec![hang()], LATE),
        attack("hangs in the head", vec![send(JSON), hang()], LATE),
        attack("hangs in the body", vec![with_length(100, "{\"items\""), hang()], LATE),
        attack("hangs in a chunk", vec![send(CHUNKED), send("ff\r\n{\"items\""), hang()], LATE),
        attack("announces 10 GB", vec![with_length(10_000_000_000_u64, ""), spaces], TOO_MUCH),
        attack("10 GB in chunks", vec![send(CHUNKED), chunks(" ", 64 << 10)], TOO_MUCH),
        attack(
            "objects without end",
            vec![send(CHUNKED), send(chunk("[")), chunks("{\"\":0},", 8000)],
            TOO_MUCH,
        ),
        attack(
            "lists without end",
            vec![send(CHUNKED), send(chunk("[")), chunks("[0],", 8000)],
            TOO_MUCH,
        ),
        attack("a packed bomb", vec![send(gzip), chunks("\0", 64 << 10)], TOO_MUCH),
        attack(
            "headers without end",
            vec![send(JSON), Action::Flood(b"a: b\r\n".repeat(1000))],
            &["message head is too large"],
        ),
        attack(
            "one header without end",
            vec![send(JSON), send("a: "), Action::Flood(vec![b'b'; 1 << 16])],
            &["message head is too large"],
        ),
        attack(
            "interim responses without end",
            vec![Action::Flood(b"HTTP/1.1 100 Continue\r\n\r\n".repeat(1000))],
            LATE,
        ),
    ]
}

/// Complete responses with unusual or invalid content.
fn malformed_responses() -> Vec<Attack> {
    let nothing = "Content-Length: 0\r\nConnection: close\r\n\r\n";
    let redirect = format!(
        "HTTP/1.1 302 Found\r\nLocation: /api/v1/namespaces/default/configmaps\r\n{nothing}"
    );
    let busy = format!("HTTP/1.1 429 Too Many Requests\r\nRetry-After: 0\r\n{nothing}");
    let two_lengths = format!(
        "{JSON}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n[1,2]\r\n0\r\n\r\n"
    );
    let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    let deepest = format!("{{\"items\":{}{}}}", "[".repeat(255), "]".repeat(255));
    let long_status = format!(r#"{{"kind":"Status","message":"{}"}}"#, "no ".repeat(500_000));
    let same_key = format!("{{{}\"a\":1}}", r#""a":1,"#.repeat(50_000));
    vec![
        attack("too deep", vec![whole(deep.as_bytes())], &["nesting deeper than 256 levels"]),
        attack("as deep as is read", vec![whole(deepest.as_bytes())], &[]),
        attack("no UTF-8", vec![whole(b"{\"items\":\"\xff\xfe\"}")], &["bytes that are not UTF-8"]),
        attack("one key again and again", vec![whole(same_key.as_bytes())], &[]),
        attack("a long message", vec![whole(long_status.as_bytes())], &[]),
        attack(
            "a length too short",
            vec![with_length(9, "{\"items\":[]}")],
            &["expected a value, met the end of the text"],
        ),
        attack("a length below nothing", vec![with_length(-1, "{}")], &["invalid content-length"]),
        attack("two lengths", vec![send(two_lengths)], &[]),
        attack("a redirect to itself", vec![send(redirect)], &["302"]),
        // The retry gets the next attack.
        attack("always busy", vec![send(busy)], &[]),
        attack("no HTTP", vec![send("SSH-2.0-OpenSSH_9.6\r\n"), Action::Hang], &["invalid HTTP"]),
    ]
}

/// Attacks with more bytes than the client reads.
pub(super) fn floods() -> Vec<Attack> {
    responses().into_iter().filter(|attack| attack.messages == TOO_MUCH).collect()
}

/// The name of the watch that takes all the memory.
pub(super) const ENDLESS: &str = "events without end";

/// Attacks after the head of a watch.
pub(super) fn watches() -> Vec<Attack> {
    let event = r#"{"type":"ADDED","object":{"metadata":{"name":"a"}}}"#.to_owned() + "\n";
    let deep =
        format!("{{\"type\":\"ADDED\",\"object\":{}{}}}\n", "{\"a\":".repeat(600), "}".repeat(600));
    let deepest = format!(
        "{{\"type\":\"ADDED\",\"object\":{}1{}}}\n",
        "{\"a\":".repeat(254),
        "}".repeat(254)
    );
    let after = |name, script: Vec<Action>, messages| {
        attack(name, [vec![send(CHUNKED)], script].concat(), messages)
    };
    vec![
        after(
            "hangs before the first event",
            vec![Action::Hang],
            &["no event arrived before the case timeout"],
        ),
        after(
            "hangs in a line",
            vec![send(chunk("{\"type\":\"ADD")), Action::Hang],
            &["no event arrived before the case timeout"],
        ),
        after(
            "a line without end",
            vec![chunks("x", 64 << 10)],
            &["an event is longer than 8388608 bytes"],
        ),
        after(
            ENDLESS,
            vec![chunks(&event, 1000)],
            &["the watch exceeds a limit", "no event arrived"],
        ),
        after("closes in a line", vec![send(chunk("{\"type\":\"ADD"))], &["the stream broke"]),
        after(
            "too deep an event",
            vec![send(chunk(&deep)), Action::Hang],
            &["nesting deeper than 256 levels"],
        ),
        after("as deep as is read", vec![send(chunk(&deepest)), Action::Hang], &[]),
        after(
            "no UTF-8",
            vec![send(b"3\r\n\"\xff\n\r\n"), Action::Hang],
            &["bytes that are not UTF-8"],
        ),
        after("no chunk", vec![send("zz\r\n")], &["the stream broke"]),
    ]
}

/// Attacks after an upgrade to WebSocket.
pub(super) fn websocket() -> Vec<Attack> {
    let after = |name, script: Vec<Action>, messages| {
        attack(name, [vec![Action::RealHead], script].concat(), messages)
    };
    let stdout = [&b"\x82\x7e\x40\x00\x01"[..], &[b'x'; 0x3fff]].concat();
    vec![
        after("sends nothing", vec![Action::Hang], &["no progress for 2.5 s"]),
        after("closes", vec![], &["the connection ended without a close"]),
        after(
            "a length of all there is",
            vec![send(b"\x82\x7f\x7f\xff\xff\xff\xff\xff\xff\xff"), Action::Hang],
            &["a frame has"],
        ),
        after(
            "fragments without end",
            vec![
                send(b"\x02\x01\x01"),
                Action::Flood([&b"\x00\x7e\x40\x00"[..], &[b'x'; 0x4000]].concat()),
            ],
            // On a slow machine the case times out first.
            &["a message is longer than 4194304 bytes", "does not arrive", "does not end"],
        ),
        after(
            "empty fragments without end",
            vec![send(b"\x02\x01\x01"), Action::Flood(b"\x00\x00".repeat(1000))],
            &[],
        ),
        after("output without end", vec![Action::Flood(stdout)], &[]),
        after("pings without end", vec![Action::Flood(b"\x89\x04ping".repeat(1000))], &[]),
        after(
            "a long ping",
            vec![send(b"\x89\x7e\x40\x00"), Action::Hang],
            &["a control frame has 16384 bytes"],
        ),
        after("closes without end", vec![Action::Flood(b"\x88\x02\x03\xe8".repeat(1000))], &[]),
        after(
            "all channels",
            vec![Action::Flood((0..=254).flat_map(|channel| [0x82, 2, channel, b'x']).collect())],
            &["which the server does not write"],
        ),
        after("no frame", vec![send(b"\x83\x00"), Action::Hang], &[]),
    ]
}

/// Attacks after an upgrade to SPDY.
pub(super) fn spdy() -> Vec<Attack> {
    let after = |name, script: Vec<Action>, messages| {
        attack(name, [vec![Action::RealHead], script].concat(), messages)
    };
    let control = |kind: u8, words: &[u32]| -> Vec<u8> {
        let length = u8::try_from(4 * words.len()).expect("a short frame");
        let words = words.iter().flat_map(|word| word.to_be_bytes());
        [0x80, 3, 0, kind, 0, 0, 0, length].into_iter().chain(words).collect()
    };
    // A zlib block with the dictionary id and invalid data.
    let broken = b"\x80\x03\0\x02\0\0\0\x0c\0\0\0\x01\x78\xf9\xe3\xc6\xa7\xc2\xff\xff".to_vec();
    vec![
        after("sends nothing", vec![Action::Hang], &["no progress for 2.5 s"]),
        after(
            "a long frame",
            vec![send(b"\0\0\0\x01\0\xff\xff\xff"), Action::Hang],
            &["a frame has 16777215 bytes"],
        ),
        after(
            "another version",
            vec![send(b"\x80\x02\0\x06\0\0\0\x04\0\0\0\x01"), Action::Hang],
            &["has version 2"],
        ),
        after(
            "a broken header block",
            vec![Action::Send(broken), Action::Hang],
            &["a header block"],
        ),
        after("resets without end", vec![Action::Flood(control(3, &[1, 5]).repeat(1000))], &[]),
        after(
            "resets of unknown streams",
            vec![Action::Flood(control(3, &[99, 5]).repeat(1000))],
            &["is reset, which the client did not create"],
        ),
        after("goodbyes without end", vec![Action::Flood(control(7, &[0, 0]).repeat(1000))], &[]),
        after("pings without end", vec![Action::Flood(control(6, &[2]).repeat(1000))], &[]),
        after(
            "windows beyond all bounds",
            vec![Action::Flood(control(9, &[1, 0x7fff_ffff]).repeat(1000))],
            &[],
        ),
        after(
            "data of unknown streams",
            vec![Action::Flood(
                b"\0\0\0\x63\0\0\x40\0".iter().copied().chain([b'x'; 0x4000]).collect(),
            )],
            &["which the client did not create"],
        ),
    ]
}
