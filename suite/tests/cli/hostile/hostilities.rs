//! What a server can do to a client that only reads.

use crate::hostile::front::{Act, Hostility, send};

// Answers that are whole announce that the connection goes: the next request would meet what was done to the last.
const JSON: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n";
const CHUNKED: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n";

/// Either the answer alone is too much, or there is no room beside others.
pub(super) const TOO_MUCH: &[&str] =
    &["the body is longer than 33554432 bytes", "take more than 64 MiB of memory"];
const CUT: &[&str] = &["connection closed", "end of file before message length reached", "unexpected EOF"];
pub(super) const LATE: &[&str] = &["the deadline passed while"];

pub(super) fn hostility(name: &'static str, script: Vec<Act>, says: &'static [&'static str]) -> Hostility {
    Hostility { name, script, says }
}

fn with_length(length: impl std::fmt::Display, body: &str) -> Act {
    send(format!("{JSON}Content-Length: {length}\r\n\r\n{body}"))
}

fn whole(body: &[u8]) -> Act {
    send([format!("{JSON}Content-Length: {}\r\n\r\n", body.len()).as_bytes(), body].concat())
}

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

/// Chunks without end, each of the text so many times.
fn chunks(text: &str, times: usize) -> Act {
    Act::Flood(chunk(&text.repeat(times)).into())
}

/// In place of a whole answer.
pub(super) fn answers() -> Vec<Hostility> {
    let hang = || Act::Hang;
    let spaces = Act::Flood(vec![b' '; 64 << 10]);
    let nothing = "Content-Length: 0\r\nConnection: close\r\n\r\n";
    let redirect =
        format!("HTTP/1.1 302 Found\r\nLocation: /api/v1/namespaces/default/configmaps\r\n{nothing}");
    let busy = format!("HTTP/1.1 429 Too Many Requests\r\nRetry-After: 0\r\n{nothing}");
    let two_lengths =
        format!("{JSON}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n[1,2]\r\n0\r\n\r\n");
    let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    let deepest = format!("{{\"items\":{}{}}}", "[".repeat(255), "]".repeat(255));
    let gzip = format!("{JSON}Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n");
    let long_status = format!(r#"{{"kind":"Status","message":"{}"}}"#, "no ".repeat(500_000));
    let same_key = format!("{{{}\"a\":1}}", r#""a":1,"#.repeat(50_000));
    vec![
        hostility("closes at once", vec![], CUT),
        hostility("closes in the head", vec![send("HTTP/1.1 200 O")], CUT),
        hostility("closes in the body", vec![with_length(100, "{\"items\"")], CUT),
        hostility("closes in a chunk", vec![send(CHUNKED), send("ff\r\n{\"items\"")], CUT),
        hostility("hangs before the head", vec![hang()], LATE),
        hostility("hangs in the head", vec![send(JSON), hang()], LATE),
        hostility("hangs in the body", vec![with_length(100, "{\"items\""), hang()], LATE),
        hostility("hangs in a chunk", vec![send(CHUNKED), send("ff\r\n{\"items\""), hang()], LATE),
        hostility("announces 10 GB", vec![with_length(10_000_000_000_u64, ""), spaces], TOO_MUCH),
        hostility("10 GB in chunks", vec![send(CHUNKED), chunks(" ", 64 << 10)], TOO_MUCH),
        hostility(
            "objects without end",
            vec![send(CHUNKED), send(chunk("[")), chunks("{\"\":0},", 8000)],
            TOO_MUCH,
        ),
        hostility("lists without end", vec![send(CHUNKED), send(chunk("[")), chunks("[0],", 8000)], TOO_MUCH),
        hostility("a packed bomb", vec![send(gzip), chunks("\0", 64 << 10)], TOO_MUCH),
        hostility(
            "headers without end",
            vec![send(JSON), Act::Flood(b"a: b\r\n".repeat(1000))],
            &["message head is too large"],
        ),
        hostility(
            "one header without end",
            vec![send(JSON), send("a: "), Act::Flood(vec![b'b'; 1 << 16])],
            &["message head is too large"],
        ),
        hostility(
            "interim answers without end",
            vec![Act::Flood(b"HTTP/1.1 100 Continue\r\n\r\n".repeat(1000))],
            LATE,
        ),
        hostility("too deep", vec![whole(deep.as_bytes())], &["nesting deeper than 256 levels"]),
        hostility("as deep as is read", vec![whole(deepest.as_bytes())], &[]),
        hostility("no UTF-8", vec![whole(b"{\"items\":\"\xff\xfe\"}")], &["bytes that are not UTF-8"]),
        hostility("one key again and again", vec![whole(same_key.as_bytes())], &[]),
        hostility("a long message", vec![whole(long_status.as_bytes())], &[]),
        hostility(
            "a length too short",
            vec![with_length(9, "{\"items\":[]}")],
            &["expected a value, met the end of the text"],
        ),
        hostility("a length below nothing", vec![with_length(-1, "{}")], &["invalid content-length"]),
        hostility("two ways to tell the length", vec![send(two_lengths)], &[]),
        hostility("a redirect to itself", vec![send(redirect)], &["302"]),
        // Asked again, it does the next thing.
        hostility("always busy", vec![send(busy)], &[]),
        hostility("no HTTP", vec![send("SSH-2.0-OpenSSH_9.6\r\n"), hang()], &["invalid HTTP"]),
    ]
}

/// More than is read, in place of a whole answer.
pub(super) fn floods() -> Vec<Hostility> {
    answers().into_iter().filter(|hostility| hostility.says == TOO_MUCH).collect()
}

/// The watch that takes all the memory.
pub(super) const ENDLESS: &str = "events without end";

/// After the head of a watch.
pub(super) fn watches() -> Vec<Hostility> {
    let event = r#"{"type":"ADDED","object":{"metadata":{"name":"a"}}}"#.to_owned() + "\n";
    let deep = format!("{{\"type\":\"ADDED\",\"object\":{}{}}}\n", "{\"a\":".repeat(600), "}".repeat(600));
    let deepest =
        format!("{{\"type\":\"ADDED\",\"object\":{}1{}}}\n", "{\"a\":".repeat(254), "}".repeat(254));
    let after = |name, script: Vec<Act>, says| hostility(name, [vec![send(CHUNKED)], script].concat(), says);
    vec![
        after("hangs before the first event", vec![Act::Hang], &["nothing more came before the deadline"]),
        after(
            "hangs in a line",
            vec![send(chunk("{\"type\":\"ADD")), Act::Hang],
            &["nothing more came before the deadline"],
        ),
        after("a line without end", vec![chunks("x", 64 << 10)], &["a line is longer than 8388608 bytes"]),
        after(ENDLESS, vec![chunks(&event, 1000)], &["the watch was cut off", "nothing more came"]),
        after("closes in a line", vec![send(chunk("{\"type\":\"ADD"))], &["the stream broke"]),
        after("too deep an event", vec![send(chunk(&deep)), Act::Hang], &["nesting deeper than 256 levels"]),
        after("as deep as is read", vec![send(chunk(&deepest)), Act::Hang], &[]),
        after("no UTF-8", vec![send(b"3\r\n\"\xff\n\r\n"), Act::Hang], &["bytes that are not UTF-8"]),
        after("no chunk", vec![send("zz\r\n")], &["the stream broke"]),
    ]
}

/// After the head of an upgrade to WebSocket.
pub(super) fn websocket() -> Vec<Hostility> {
    let after = |name, script: Vec<Act>, says| hostility(name, [vec![Act::Answer], script].concat(), says);
    let stdout = [&b"\x82\x7e\x40\x00\x01"[..], &[b'x'; 0x3fff]].concat();
    vec![
        after("says nothing", vec![Act::Hang], &["nothing more for 2.5 s"]),
        after("closes", vec![], &["the connection ended without a close"]),
        after(
            "a length of all there is",
            vec![send(b"\x82\x7f\x7f\xff\xff\xff\xff\xff\xff\xff"), Act::Hang],
            &["a frame claims"],
        ),
        after(
            "fragments without end",
            vec![send(b"\x02\x01\x01"), Act::Flood([&b"\x00\x7e\x40\x00"[..], &[b'x'; 0x4000]].concat())],
            // On a slow machine the case is over before.
            &["a message is longer than 4194304 bytes", "does not come", "does not end"],
        ),
        after(
            "empty fragments without end",
            vec![send(b"\x02\x01\x01"), Act::Flood(b"\x00\x00".repeat(1000))],
            &[],
        ),
        after("output without end", vec![Act::Flood(stdout)], &[]),
        after("pings without end", vec![Act::Flood(b"\x89\x04ping".repeat(1000))], &[]),
        after(
            "a long ping",
            vec![send(b"\x89\x7e\x40\x00"), Act::Hang],
            &["a control frame has 16384 bytes"],
        ),
        after("closes without end", vec![Act::Flood(b"\x88\x02\x03\xe8".repeat(1000))], &[]),
        after(
            "all channels",
            vec![Act::Flood((0..=254).flat_map(|channel| [0x82, 2, channel, b'x']).collect())],
            &["which the server does not write"],
        ),
        after("no frame", vec![send(b"\x83\x00"), Act::Hang], &[]),
    ]
}

/// After the head of an upgrade to SPDY.
pub(super) fn spdy() -> Vec<Hostility> {
    let after = |name, script: Vec<Act>, says| hostility(name, [vec![Act::Answer], script].concat(), says);
    let control = |kind: u8, words: &[u32]| -> Vec<u8> {
        let length = u8::try_from(4 * words.len()).expect("a short frame");
        let words = words.iter().flat_map(|word| word.to_be_bytes());
        [0x80, 3, 0, kind, 0, 0, 0, length].into_iter().chain(words).collect()
    };
    // A block of zlib that claims the dictionary and then holds nothing that can be inflated.
    let broken = b"\x80\x03\0\x02\0\0\0\x0c\0\0\0\x01\x78\xf9\xe3\xc6\xa7\xc2\xff\xff".to_vec();
    vec![
        after("says nothing", vec![Act::Hang], &["nothing more for 2.5 s"]),
        after(
            "a long frame",
            vec![send(b"\0\0\0\x01\0\xff\xff\xff"), Act::Hang],
            &["a frame claims 16777215 bytes"],
        ),
        after(
            "another version",
            vec![send(b"\x80\x02\0\x06\0\0\0\x04\0\0\0\x01"), Act::Hang],
            &["has the version 2"],
        ),
        after("a broken header block", vec![Act::Send(broken), Act::Hang], &["a header block"]),
        after("resets without end", vec![Act::Flood(control(3, &[1, 5]).repeat(1000))], &[]),
        after(
            "resets of nobody",
            vec![Act::Flood(control(3, &[99, 5]).repeat(1000))],
            &["is reset, which nobody created"],
        ),
        after("goodbyes without end", vec![Act::Flood(control(7, &[0, 0]).repeat(1000))], &[]),
        after("pings without end", vec![Act::Flood(control(6, &[2]).repeat(1000))], &[]),
        after("windows beyond all bounds", vec![Act::Flood(control(9, &[1, 0x7fff_ffff]).repeat(1000))], &[]),
        after(
            "data of nobody",
            vec![Act::Flood(b"\0\0\0\x63\0\0\x40\0".iter().copied().chain([b'x'; 0x4000]).collect())],
            &["which nobody created"],
        ),
    ]
}
