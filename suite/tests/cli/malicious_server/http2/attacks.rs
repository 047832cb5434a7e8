//! Attacks with HTTP/2 frames.

use super::frames::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PING, PRIORITY, PUSH_PROMISE,
    RST_STREAM, SETTINGS, THIS, WINDOW_UPDATE, field, frame,
};
use crate::malicious_server::attacks::{LATE, TOO_MUCH, attack};
use crate::malicious_server::proxy::{Action, Attack, send};

/// The client tolerates the attack.
pub(super) const PASSES: &[&str] = &[r#""verdict":"pass""#];

const CUT: &[&str] = &["stream closed because of a broken pipe", "bytes remaining on stream"];
/// The client reports an invalid response, and keeps the connection.
const FAULTY: &[&str] = &["stream error detected: unspecific protocol error"];
/// The client closes the connection.
const BROKEN: &[&str] = &["connection error detected: unspecific protocol error"];
const SIZE: &[&str] = &["connection error detected: frame with invalid size"];
const WINDOW: &[&str] = &["connection error detected: flow-control protocol violated"];
/// The client may have opened its windows before the data arrived.
const BEYOND: &[&str] =
    &["stream error detected: flow-control protocol violated", "the body is longer than"];
const LOAD: &[&str] = &["connection error detected: detected excessive load"];

/// The body of a correct response.
const BODY: &str = r#"{"status":{"allowed":true}}"#;

/// `:status: 200` as an index of the static HPACK table.
const OK: [u8; 1] = [0x88];

/// The highest stream id.
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

/// A response head with only these fields.
fn bare(fields: &[(&str, &str)]) -> Action {
    send(on_this(HEADERS, END_HEADERS | END_STREAM, block(fields)))
}

fn data(bytes: impl AsRef<[u8]>) -> Vec<u8> {
    on_this(DATA, 0, bytes)
}

fn response_with(fields: &[(&str, &str)]) -> Vec<u8> {
    [head_with(fields), on_this(DATA, END_STREAM, BODY)].concat()
}

fn response() -> Vec<u8> {
    response_with(&[])
}

fn reset(code: u32) -> Vec<u8> {
    on_this(RST_STREAM, 0, code.to_be_bytes())
}

fn goaway(last: u32, code: u32) -> Vec<u8> {
    frame(GOAWAY, 0, 0, [last.to_be_bytes(), code.to_be_bytes()].concat())
}

fn setting(name: u8, value: u32) -> Vec<u8> {
    frame(SETTINGS, 0, 0, [&[0, name], &value.to_be_bytes()[..]].concat())
}

/// A head above the limit of the client, in several frames.
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

/// Enables the dynamic table, adds an entry of 4000 bytes, and repeats its index.
fn bomb() -> Vec<u8> {
    let entry = [&[0x40, 1, b'a', 0x7f, 0x81, 0x1e], &[b'b'; 4000][..]].concat();
    on_this(HEADERS, END_HEADERS, [&[0x3f, 0xe1, 0x1f], &OK[..], &entry, &[0xbe; 12_000]].concat())
}

/// Attacks on a single request.
pub(super) fn of_a_stream() -> Vec<Attack> {
    let interim = on_this(HEADERS, END_HEADERS, block(&[(":status", "103"), ("link", "</a>")]));
    let endless_trailers = [head(), data(BODY), head()].concat();
    let wide = on_this(WINDOW_UPDATE, 0, LAST.to_be_bytes());
    let two_lengths = response_with(&[("content-length", "27"), ("content-length", "28")]);
    let one = |name, frames: Vec<u8>, messages| attack(name, vec![send(frames)], messages);
    vec![
        one("resets the stream", reset(8), &["stream error received: stream no longer needed"]),
        one("resets by a code of its own", reset(0xdead_beef), &["stream error received"]),
        one("rejects the stream", reset(7), PASSES),
        one(
            "resets in the body",
            [head(), data("{"), reset(2)].concat(),
            &["stream error received"],
        ),
        one("resets what is whole", [response(), reset(0)].concat(), PASSES),
        one("a length too long", response_with(&[("content-length", "100")]), FAULTY),
        one("a length too short", response_with(&[("content-length", "9")]), FAULTY),
        one("two lengths", two_lengths, FAULTY),
        one("a length below nothing", response_with(&[("content-length", "-1")]), FAULTY),
        one("a field of HTTP/1.1", response_with(&[("transfer-encoding", "chunked")]), FAULTY),
        attack("no status", vec![bare(&[("content-type", "application/json")])], FAULTY),
        attack("two states", vec![bare(&[(":status", "200"), (":status", "201")])], FAULTY),
        attack("a status too late", vec![bare(&[("a", "b"), (":status", "200")])], FAULTY),
        attack("switches protocols", vec![bare(&[(":status", "101")])], FAULTY),
        attack("a head and no body", vec![bare(&[(":status", "200")])], &["its body is not JSON"]),
        one("trailers that do not end", endless_trailers, FAULTY),
        one("a head too large", [large_head(), response()].concat(), FAULTY),
        one("a packed bomb", bomb(), FAULTY),
        one("many interim responses", [interim.repeat(50), response()].concat(), PASSES),
        one("a window beyond all bounds", [response(), wide].concat(), PASSES),
        attack(
            "data beyond all windows",
            vec![send(head()), Action::Flood(data([b' '; 16 << 10]))],
            BEYOND,
        ),
        one("data behind the end", [response(), data(BODY)].concat(), PASSES),
    ]
}

/// Attacks that keep a request waiting.
pub(super) fn without_end() -> Vec<Attack> {
    let flood = |name, frame: Vec<u8>| attack(name, vec![Action::Flood(frame.repeat(500))], LATE);
    let hang = |name, frames: Vec<u8>| attack(name, vec![send(frames), Action::Hang], LATE);
    vec![
        hang("hangs before the head", vec![]),
        hang("hangs behind the head", head()),
        hang("hangs in the body", [head_with(&[("content-length", "27")]), data("{")].concat()),
        hang("does not end what is whole", [head(), data(BODY)].concat()),
        flood(
            "interim responses without end",
            on_this(HEADERS, END_HEADERS, field(":status", "100")),
        ),
        flood("pings without end", frame(PING, 0, 0, [0; 8])),
        flood("windows without end", on_this(WINDOW_UPDATE, 0, 1_u32.to_be_bytes())),
        flood("priorities without end", on_this(PRIORITY, 0, [0; 5])),
        flood("frames of no known kind without end", on_this(0xfa, 0xff, [0; 100])),
    ]
}

/// Attacks with more bytes than the client reads, within its windows.
pub(super) fn floods() -> Vec<Attack> {
    let announced = head_with(&[("content-length", "10000000000")]);
    vec![
        attack("announces 10 GB", vec![send(announced), Action::Hang], TOO_MUCH),
        attack("10 GB", vec![send(head()), Action::FloodWithin(data([b' '; 16 << 10]))], TOO_MUCH),
    ]
}

/// Attacks that end the connection with all its requests.
pub(super) fn of_a_connection() -> Vec<Attack> {
    let cut = |name, frames: &[u8]| attack(name, vec![send(frames)], CUT);
    let breaks = |name, frames: Vec<u8>| attack(name, vec![send(frames), Action::Hang], BROKEN);
    let half = on_this(HEADERS, 0, OK);
    let flood = |frames: Vec<u8>| Action::Flood(frames);
    let more = on_this(CONTINUATION, 0, field("a", &"b".repeat(100)).repeat(150));
    vec![
        cut("closes at once", &[]),
        cut("closes in the head of a frame", &[0, 0, 100, HEADERS]),
        cut("closes in the head", &head()[..20]),
        cut("closes between the frames of a head", &half),
        cut("closes behind the head", &head()),
        cut("closes in the body", &[head(), data(BODY)].concat()[..50]),
        cut("closes before the end", &[head(), data(BODY)].concat()),
        attack("sends GOAWAY at once", vec![send(goaway(0, 0)), Action::Hang], PASSES),
        attack(
            "sends GOAWAY with an error",
            vec![send(goaway(0, 11)), Action::Hang],
            &["connection error received: detected excessive load"],
        ),
        attack(
            "sends GOAWAY in the response",
            vec![send([head(), goaway(LAST, 0)].concat()), send(response())],
            FAULTY,
        ),
        cut("sends GOAWAY in the body and closes", &[head(), data("{"), goaway(LAST, 0)].concat()),
        breaks("GOAWAY with a rising last stream", [goaway(LAST - 2, 0), goaway(LAST, 0)].concat()),
        attack("no HTTP/2", vec![send("HTTP/1.1 200 OK\r\n\r\n"), Action::Hang], SIZE),
        attack("a frame too long", vec![send(data([b' '; 20_000])), Action::Hang], SIZE),
        breaks("data without a stream", frame(DATA, 0, LAST, BODY)),
        breaks("data of the connection", frame(DATA, 0, 0, BODY)),
        breaks("data before the head", data(BODY)),
        breaks("a response without a request", frame(HEADERS, END_HEADERS, 2, OK)),
        breaks("pushes", on_this(PUSH_PROMISE, END_HEADERS, [&[0, 0, 0, 2], &OK[..]].concat())),
        breaks("a status of letters", on_this(HEADERS, END_HEADERS, field(":status", "2xx"))),
        breaks("a pseudo-header of its own", response_with(&[(":a", "b")])),
        breaks("a name in capitals", response_with(&[("Audit-Id", "b")])),
        breaks("a broken header block", on_this(HEADERS, END_HEADERS, [0xff; 20])),
        breaks(
            "a table too large",
            on_this(HEADERS, END_HEADERS, [0x3f, 0xff, 0xff, 0xff, 0x07, 0x88]),
        ),
        breaks("a head within a head", [half.clone(), response()].concat()),
        attack("headers without end", vec![send(&half), flood(more)], LOAD),
        attack(
            "empty headers without end",
            vec![send(&half), flood(on_this(CONTINUATION, 0, []).repeat(500))],
            LOAD,
        ),
        attack("empty data without end", vec![send(head()), flood(data("").repeat(500))], LOAD),
        breaks("an acknowledgement without settings", frame(SETTINGS, 1, 0, [])),
        breaks("a setting of five bytes", frame(SETTINGS, 0, 0, [0; 5])),
        breaks("a first window beyond all bounds", setting(4, 0x8000_0000)),
        breaks("frames of no size", setting(5, 1)),
        attack(
            "a window beyond all bounds",
            vec![send(frame(WINDOW_UPDATE, 0, 0, LAST.to_be_bytes())), Action::Hang],
            WINDOW,
        ),
        breaks("a ping of seven bytes", frame(PING, 0, 0, [0; 7])),
    ]
}

/// Attacks that keep all requests of the connection waiting.
pub(super) fn silence() -> Vec<Action> {
    vec![Action::Hang]
}

pub(super) fn settings_without_end() -> Vec<Action> {
    vec![Action::Flood(frame(SETTINGS, 0, 0, []).repeat(500))]
}

pub(super) fn goaways_without_end() -> Vec<Action> {
    vec![Action::Flood(goaway(LAST, 0).repeat(500))]
}
