//! What a server can do to a client that reads frames.

use super::frames::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PING, PRIORITY, PUSH_PROMISE, RST_STREAM,
    SETTINGS, THIS, WINDOW_UPDATE, field, frame,
};
use crate::hostile::front::{Act, Hostility, send};
use crate::hostile::hostilities::{LATE, TOO_MUCH, hostility};

/// What was done can be borne.
pub(super) const PASSES: &[&str] = &[r#""verdict":"pass""#];

const CUT: &[&str] = &["stream closed because of a broken pipe", "bytes remaining on stream"];
/// The client finds the answer at fault, and hangs up on nobody else.
const FAULTY: &[&str] = &["stream error detected: unspecific protocol error"];
/// The client finds the connection at fault.
const BROKEN: &[&str] = &["connection error detected: unspecific protocol error"];
const SIZE: &[&str] = &["connection error detected: frame with invalid size"];
const WINDOW: &[&str] = &["connection error detected: flow-control protocol violated"];
/// It may also have opened its windows as fast as it was sent what went beyond them.
const BEYOND: &[&str] = &["stream error detected: flow-control protocol violated", "the body is longer than"];
const LOAD: &[&str] = &["connection error detected: detected excessive load"];

/// What is asked for.
const TRUTH: &str = r#"{"status":{"allowed":true}}"#;

/// `:status: 200`, by the place that it has in the table which never changes.
const OK: [u8; 1] = [0x88];

/// The last number that a stream can have.
const LAST: u32 = 0x7fff_ffff;

fn on_this(kind: u8, flags: u8, payload: impl AsRef<[u8]>) -> Vec<u8> {
    frame(kind, flags, THIS, payload)
}

fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    fields.iter().flat_map(|(name, value)| field(name, value)).collect()
}

fn head_with(fields: &[(&str, &str)]) -> Vec<u8> {
    on_this(HEADERS, END_HEADERS, [OK.to_vec(), block(fields)].concat())
}

fn head() -> Vec<u8> {
    head_with(&[("content-type", "application/json")])
}

/// A head of which nothing is right but what it is given.
fn bare(fields: &[(&str, &str)]) -> Act {
    send(on_this(HEADERS, END_HEADERS | END_STREAM, block(fields)))
}

fn data(bytes: impl AsRef<[u8]>) -> Vec<u8> {
    on_this(DATA, 0, bytes)
}

fn answer_with(fields: &[(&str, &str)]) -> Vec<u8> {
    [head_with(fields), on_this(DATA, END_STREAM, TRUTH)].concat()
}

fn answer() -> Vec<u8> {
    answer_with(&[])
}

fn reset(code: u32) -> Vec<u8> {
    on_this(RST_STREAM, 0, code.to_be_bytes())
}

fn goodbye(last: u32, code: u32) -> Vec<u8> {
    frame(GOAWAY, 0, 0, [last.to_be_bytes(), code.to_be_bytes()].concat())
}

fn setting(name: u8, value: u32) -> Vec<u8> {
    frame(SETTINGS, 0, 0, [&[0, name], &value.to_be_bytes()[..]].concat())
}

/// A head of more than is read, in as many frames as it takes.
fn large_head() -> Vec<u8> {
    let fields = field("a", &"x".repeat(100)).repeat(9000);
    let parts: Vec<_> = fields.chunks(16 << 10).collect();
    let (last, others) = parts.split_last().expect("it is large");
    let others = others.iter().flat_map(|part| on_this(CONTINUATION, 0, part));
    on_this(HEADERS, 0, OK)
        .into_iter()
        .chain(others)
        .chain(on_this(CONTINUATION, END_HEADERS, last))
        .collect()
}

/// The table gets its size back, and an entry of 4000 bytes, which is named by its place there again and again.
fn bomb() -> Vec<u8> {
    let entry = [&[0x40, 1, b'a', 0x7f, 0x81, 0x1e], &[b'b'; 4000][..]].concat();
    on_this(HEADERS, END_HEADERS, [&[0x3f, 0xe1, 0x1f], &OK[..], &entry, &[0xbe; 12_000]].concat())
}

/// What harms a request, and nobody beside it.
pub(super) fn of_a_stream() -> Vec<Hostility> {
    let interim = on_this(HEADERS, END_HEADERS, block(&[(":status", "103"), ("link", "</a>")]));
    let endless_trailers = [head(), data(TRUTH), head()].concat();
    let wide = on_this(WINDOW_UPDATE, 0, LAST.to_be_bytes());
    let two_lengths = answer_with(&[("content-length", "27"), ("content-length", "28")]);
    let one = |name, frames: Vec<u8>, says| hostility(name, vec![send(frames)], says);
    vec![
        one("resets the stream", reset(8), &["stream error received: stream no longer needed"]),
        one("resets by a code of its own", reset(0xdead_beef), &["stream error received"]),
        one("refuses the stream", reset(7), PASSES),
        one("resets in the body", [head(), data("{"), reset(2)].concat(), &["stream error received"]),
        one("resets what is whole", [answer(), reset(0)].concat(), PASSES),
        one("a length too long", answer_with(&[("content-length", "100")]), FAULTY),
        one("a length too short", answer_with(&[("content-length", "9")]), FAULTY),
        one("two lengths", two_lengths, FAULTY),
        one("a length below nothing", answer_with(&[("content-length", "-1")]), FAULTY),
        one("a field of HTTP/1.1", answer_with(&[("transfer-encoding", "chunked")]), FAULTY),
        hostility("no status", vec![bare(&[("content-type", "application/json")])], FAULTY),
        hostility("two states", vec![bare(&[(":status", "200"), (":status", "201")])], FAULTY),
        hostility("a status too late", vec![bare(&[("a", "b"), (":status", "200")])], FAULTY),
        hostility("switches protocols", vec![bare(&[(":status", "101")])], FAULTY),
        hostility("a head and no body", vec![bare(&[(":status", "200")])], &["its body is not JSON"]),
        one("trailers that do not end", endless_trailers, FAULTY),
        one("a head too large", [large_head(), answer()].concat(), FAULTY),
        one("a packed bomb", bomb(), FAULTY),
        one("many interim answers", [interim.repeat(50), answer()].concat(), PASSES),
        one("a window beyond all bounds", [answer(), wide].concat(), PASSES),
        hostility("data beyond all windows", vec![send(head()), Act::Flood(data([b' '; 16 << 10]))], BEYOND),
        one("data behind the end", [answer(), data(TRUTH)].concat(), PASSES),
    ]
}

/// What keeps a request waiting, in silence or not.
pub(super) fn without_end() -> Vec<Hostility> {
    let flood = |name, frame: Vec<u8>| hostility(name, vec![Act::Flood(frame.repeat(500))], LATE);
    let hang = |name, frames: Vec<u8>| hostility(name, vec![send(frames), Act::Hang], LATE);
    vec![
        hang("hangs before the head", vec![]),
        hang("hangs behind the head", head()),
        hang("hangs in the body", [head_with(&[("content-length", "27")]), data("{")].concat()),
        hang("does not end what is whole", [head(), data(TRUTH)].concat()),
        flood("interim answers without end", on_this(HEADERS, END_HEADERS, field(":status", "100"))),
        flood("pings without end", frame(PING, 0, 0, [0; 8])),
        flood("windows without end", on_this(WINDOW_UPDATE, 0, 1_u32.to_be_bytes())),
        flood("priorities without end", on_this(PRIORITY, 0, [0; 5])),
        flood("frames of no known kind without end", on_this(0xfa, 0xff, [0; 100])),
    ]
}

/// More than is read, as fast as the client asks for it.
pub(super) fn floods() -> Vec<Hostility> {
    let announced = head_with(&[("content-length", "10000000000")]);
    vec![
        hostility("announces 10 GB", vec![send(announced), Act::Hang], TOO_MUCH),
        hostility("10 GB", vec![send(head()), Act::FloodWithin(data([b' '; 16 << 10]))], TOO_MUCH),
    ]
}

/// What harms all that is under way on the connection, and ends it.
pub(super) fn of_a_connection() -> Vec<Hostility> {
    let cut = |name, frames: &[u8]| hostility(name, vec![send(frames)], CUT);
    let breaks = |name, frames: Vec<u8>| hostility(name, vec![send(frames), Act::Hang], BROKEN);
    let half = on_this(HEADERS, 0, OK);
    let flood = |frames: Vec<u8>| Act::Flood(frames);
    let more = on_this(CONTINUATION, 0, field("a", &"b".repeat(100)).repeat(150));
    vec![
        cut("closes at once", &[]),
        cut("closes in the head of a frame", &[0, 0, 100, HEADERS]),
        cut("closes in the head", &head()[..20]),
        cut("closes between the frames of a head", &half),
        cut("closes behind the head", &head()),
        cut("closes in the body", &[head(), data(TRUTH)].concat()[..50]),
        cut("closes before the end", &[head(), data(TRUTH)].concat()),
        hostility("says goodbye at once", vec![send(goodbye(0, 0)), Act::Hang], PASSES),
        hostility(
            "says goodbye in anger",
            vec![send(goodbye(0, 11)), Act::Hang],
            &["connection error received: detected excessive load"],
        ),
        hostility(
            "says goodbye in the answer",
            vec![send([head(), goodbye(LAST, 0)].concat()), send(answer())],
            FAULTY,
        ),
        cut("says goodbye in the body and goes", &[head(), data("{"), goodbye(LAST, 0)].concat()),
        breaks("goodbyes to more and more", [goodbye(LAST - 2, 0), goodbye(LAST, 0)].concat()),
        hostility("no HTTP/2", vec![send("HTTP/1.1 200 OK\r\n\r\n"), Act::Hang], SIZE),
        hostility("a frame too long", vec![send(data([b' '; 20_000])), Act::Hang], SIZE),
        breaks("data of nobody", frame(DATA, 0, LAST, TRUTH)),
        breaks("data of the connection", frame(DATA, 0, 0, TRUTH)),
        breaks("data before the head", data(TRUTH)),
        breaks("an answer of nobody", frame(HEADERS, END_HEADERS, 2, OK)),
        breaks("pushes", on_this(PUSH_PROMISE, END_HEADERS, [&[0, 0, 0, 2], &OK[..]].concat())),
        breaks("a status of letters", on_this(HEADERS, END_HEADERS, field(":status", "2xx"))),
        breaks("a pseudo-header of its own", answer_with(&[(":a", "b")])),
        breaks("a name in capitals", answer_with(&[("Audit-Id", "b")])),
        breaks("a broken header block", on_this(HEADERS, END_HEADERS, [0xff; 20])),
        breaks("a table too large", on_this(HEADERS, END_HEADERS, [0x3f, 0xff, 0xff, 0xff, 0x07, 0x88])),
        breaks("a head within a head", [half.clone(), answer()].concat()),
        hostility("headers without end", vec![send(&half), flood(more)], LOAD),
        hostility(
            "empty headers without end",
            vec![send(&half), flood(on_this(CONTINUATION, 0, []).repeat(500))],
            LOAD,
        ),
        hostility("empty data without end", vec![send(head()), flood(data("").repeat(500))], LOAD),
        breaks("settings that nobody sent are settled", frame(SETTINGS, 1, 0, [])),
        breaks("a setting of five bytes", frame(SETTINGS, 0, 0, [0; 5])),
        breaks("a first window beyond all bounds", setting(4, 0x8000_0000)),
        breaks("frames of no size", setting(5, 1)),
        hostility(
            "a window beyond all bounds",
            vec![send(frame(WINDOW_UPDATE, 0, 0, LAST.to_be_bytes())), Act::Hang],
            WINDOW,
        ),
        breaks("a ping of seven bytes", frame(PING, 0, 0, [0; 7])),
    ]
}

/// What keeps all waiting that is under way on the connection.
pub(super) fn silence() -> Vec<Act> {
    vec![Act::Hang]
}

pub(super) fn settings_without_end() -> Vec<Act> {
    vec![Act::Flood(frame(SETTINGS, 0, 0, []).repeat(500))]
}

pub(super) fn goodbyes_without_end() -> Vec<Act> {
    vec![Act::Flood(goodbye(LAST, 0).repeat(500))]
}
