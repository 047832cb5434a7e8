//! Channels: the first byte, or character, of a message says which stream the rest belongs to.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, PAD, STANDARD, URL_SAFE};
use bytes::{BufMut as _, Bytes, BytesMut};
use tokio_tungstenite::tungstenite::Message;

use super::socket::bytes_of;
use crate::{Fault, Faults};

/// How much of a stream goes into one message.
pub(crate) const CHUNK: usize = 32 * 1024;

/// How bytes stand in messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coding {
    /// Binary messages: a byte for the channel, then the content.
    Binary,
    /// Text messages: a digit for the channel, then the content in base64.
    Base64,
}

/// Writes and reads messages of channels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Channels {
    pub(crate) coding: Coding,
    pub(crate) faults: Faults,
}

/// The text of a message is no base64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a digit and base64 in the standard alphabet")]
pub(crate) struct Undecodable;

impl Channels {
    pub(crate) fn encode(self, channel: u8, content: &[u8]) -> Message {
        let mut message = BytesMut::with_capacity(1 + content.len());
        message.put_u8(channel);
        message.put_slice(content);
        self.finish(message.freeze())
    }

    /// A message whose first byte is the channel.
    pub(crate) fn finish(self, message: Bytes) -> Message {
        let message = self.bend(message);
        match self.coding {
            Coding::Binary => Message::Binary(message),
            Coding::Base64 => {
                let channel = message.first().copied().unwrap_or_default();
                let content = message.get(1..).unwrap_or_default();
                let mut text = String::new();
                text.push(char::from(b'0'.wrapping_add(channel)));
                text.push_str(&encode_base64(content, self.faults));
                text_message(text, self.faults)
            }
        }
    }

    /// The faults of framing.
    fn bend(self, message: Bytes) -> Bytes {
        let faults = self.faults;
        if faults.on(Fault::ChannelByteMissing) {
            return message.slice(1.min(message.len())..);
        }
        if faults.on(Fault::FrameBorderLosesByte) && message.len() > 2 {
            return message.slice(..message.len() - 1);
        }
        if faults.on(Fault::ChannelsCountFromOne)
            && let [channel, content @ ..] = message.as_ref()
        {
            return [&[channel + 1], content].concat().into();
        }
        message
    }

    /// The channel and the content of a message; nothing for one that is empty.
    pub(crate) fn decode(self, message: Message) -> Result<Option<(u8, Bytes)>, Undecodable> {
        let mut bytes = bytes_of(message);
        if bytes.is_empty() {
            return Ok(None);
        }
        let channel = bytes.split_to(1)[0];
        match self.coding {
            Coding::Binary => Ok(Some((channel, bytes))),
            Coding::Base64 => {
                let channel = channel.checked_sub(b'0').ok_or(Undecodable)?;
                let content = STANDARD.decode(&bytes).map_err(|_| Undecodable)?;
                Ok(Some((channel, content.into())))
            }
        }
    }
}

/// Each message is a unit of its own, with its own padding.
pub(crate) fn encode_base64(content: &[u8], faults: Faults) -> String {
    if faults.on(Fault::Base64UrlAlphabet) {
        return URL_SAFE.encode(content);
    }
    if faults.on(Fault::Base64WithoutPadding) {
        let unpadded = GeneralPurpose::new(&alphabet::STANDARD, PAD.with_encode_padding(false));
        return unpadded.encode(content);
    }
    STANDARD.encode(content)
}

pub(crate) fn text_message(text: String, faults: Faults) -> Message {
    if faults.on(Fault::Base64InBinaryFrames) { Message::Binary(text.into()) } else { Message::text(text) }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const BINARY: Channels = Channels { coding: Coding::Binary, faults: Faults::none() };
    const BASE64: Channels = Channels { coding: Coding::Base64, faults: Faults::none() };

    #[rstest]
    #[case(BINARY.encode(1, b""), Message::binary(vec![1]))]
    #[case(BINARY.encode(1, b"hi\n"), Message::binary(b"\x01hi\n".to_vec()))]
    #[case(BASE64.encode(1, b""), Message::text("1"))]
    #[case(BASE64.encode(1, b"hello"), Message::text("1aGVsbG8="))]
    #[case(BASE64.encode(3, br#"{"status":"Success"}"#), Message::text("3eyJzdGF0dXMiOiJTdWNjZXNzIn0="))]
    fn messages_as_a_real_server_sends_them(#[case] message: Message, #[case] expected: Message) {
        assert_eq!(message, expected);
    }

    #[rstest]
    #[case(BINARY, Message::binary(b"\0hello".to_vec()), Ok(Some((0, Bytes::from_static(b"hello")))))]
    #[case(BINARY, Message::text("\0text"), Ok(Some((0, Bytes::from_static(b"text")))))]
    #[case(BINARY, Message::binary(vec![]), Ok(None))]
    #[case(BINARY, Message::binary(vec![4]), Ok(Some((4, Bytes::new()))))]
    #[case(BASE64, Message::text("0aGVsbG8="), Ok(Some((0, Bytes::from_static(b"hello")))))]
    #[case(BASE64, Message::binary(b"0aGk=".to_vec()), Ok(Some((0, Bytes::from_static(b"hi")))))]
    #[case(BASE64, Message::text("0-_-_"), Err(Undecodable))]
    #[case(BASE64, Message::text("\x01aGk="), Err(Undecodable))]
    fn messages_of_clients(
        #[case] channels: Channels,
        #[case] message: Message,
        #[case] expected: Result<Option<(u8, Bytes)>, Undecodable>,
    ) {
        assert_eq!(channels.decode(message), expected);
    }
}
