//! HTTP/2 frames as bytes. Invalid frames can be written, too.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::malicious_server::proxy::Action;

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PRIORITY: u8 = 2;
pub(super) const PUSH_PROMISE: u8 = 5;
pub(super) const PING: u8 = 6;
pub(super) const GOAWAY: u8 = 7;
pub(super) const WINDOW_UPDATE: u8 = 8;
pub(super) const CONTINUATION: u8 = 9;

pub(super) const ACK: u8 = 1;
pub(super) const END_STREAM: u8 = 1;
pub(super) const END_HEADERS: u8 = 4;

pub(super) const INITIAL_WINDOW_SIZE: u16 = 4;

/// The setting that disables the dynamic table of HPACK.
pub(super) const NO_TABLE: [u8; 6] = [0, 1, 0, 0, 0, 0];

/// A placeholder in scripts for the attacked stream.
pub(super) const THIS: u32 = 0x0bad_cafe;

const HEAD: usize = 9;

/// A frame on the wire.
pub(super) struct Frame {
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
    pub(super) payload: Vec<u8>,
}

impl Frame {
    pub(super) async fn read(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Self> {
        let mut head = [0; HEAD];
        from.read_exact(&mut head).await?;
        let [a, b, c, kind, flags, stream @ ..] = head;
        let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        from.read_exact(&mut payload).await?;
        Ok(Self { kind, flags, stream: u32::from_be_bytes(stream), payload })
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        frame(self.kind, self.flags, self.stream, &self.payload)
    }
}

pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: impl AsRef<[u8]>) -> Vec<u8> {
    let payload = payload.as_ref();
    let length = u32::try_from(payload.len()).expect("a frame").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Returns a setting from the payload of a SETTINGS frame.
pub(super) fn setting(payload: &[u8], name: u16) -> Option<u32> {
    let (settings, _) = payload.as_chunks::<6>();
    let [.., a, b, c, d] = settings.iter().find(|setting| setting[..2] == name.to_be_bytes())?;
    Some(u32::from_be_bytes([*a, *b, *c, *d]))
}

/// Returns the action with the id of a stream in place of the placeholder.
pub(super) fn to_stream(action: &Action, stream: u32) -> Action {
    match action {
        Action::Send(bytes) => Action::Send(addressed(bytes, stream)),
        Action::Flood(bytes) => Action::Flood(addressed(bytes, stream)),
        Action::FloodWithin(bytes) => Action::FloodWithin(addressed(bytes, stream)),
        Action::Hang | Action::RealHead => action.clone(),
    }
}

/// Replaces the placeholder. The last frame may be incomplete.
fn addressed(bytes: &[u8], stream: u32) -> Vec<u8> {
    let (mut bytes, mut at) = (bytes.to_vec(), 0);
    while let Some([a, b, c, _, _, address @ ..]) = bytes.get_mut(at..at + HEAD) {
        at += HEAD + u32::from_be_bytes([0, *a, *b, *c]) as usize;
        if *address == THIS.to_be_bytes() {
            address.copy_from_slice(&stream.to_be_bytes());
        }
    }
    bytes
}

/// Encodes a header field as an HPACK literal without indexing.
pub(super) fn field(name: &str, value: &str) -> Vec<u8> {
    let text =
        |text: &str| [&[u8::try_from(text.len()).expect("short") & 0x7f], text.as_bytes()].concat();
    [vec![0], text(name), text(value)].concat()
}
