//! Channels: the first byte or character of a message is the number of its stream.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{BufMut as _, Bytes, BytesMut};
use tokio_tungstenite::tungstenite::Message;

/// The encoding of channels and content in messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// Binary messages: a byte for the channel, then the content.
    Binary,
    /// Text messages: a digit for the channel, then the content in base64.
    Base64,
}

/// The message is not a digit followed by base64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a digit and base64 in the standard alphabet")]
pub struct ChannelError;

impl ChannelError {
    /// Returns the stable code of this error.
    pub fn code(self) -> &'static str {
        "websocket-channel-base64"
    }
}

impl Coding {
    /// Returns the coding of a subprotocol, such as `v4.base64.channel.k8s.io`.
    pub fn of(protocol: &str) -> Self {
        if protocol.contains("base64") { Self::Base64 } else { Self::Binary }
    }

    /// Returns the payload of a message.
    pub fn encode(self, channel: u8, content: &[u8]) -> Bytes {
        match self {
            Self::Binary => {
                let mut message = BytesMut::with_capacity(1 + content.len());
                message.put_u8(channel);
                message.put_slice(content);
                message.freeze()
            }
            Self::Base64 => base64_text(channel, content).into(),
        }
    }

    /// Returns the channel and the content of a payload. An empty payload has neither.
    pub fn decode(self, mut payload: Bytes) -> Result<Option<(u8, Bytes)>, ChannelError> {
        if payload.is_empty() {
            return Ok(None);
        }
        let channel = payload.split_to(1)[0];
        match self {
            Self::Binary => Ok(Some((channel, payload))),
            Self::Base64 => {
                let channel = channel.checked_sub(b'0').ok_or(ChannelError)?;
                let content = STANDARD.decode(&payload).map_err(|_| ChannelError)?;
                Ok(Some((channel, content.into())))
            }
        }
    }

    /// Returns a message for this content.
    pub(crate) fn message(self, channel: u8, content: &[u8]) -> Message {
        match self {
            Self::Binary => Message::Binary(self.encode(channel, content)),
            Self::Base64 => Message::text(base64_text(channel, content)),
        }
    }

    /// Returns a message for `bytes`, whose first byte is the channel. Binary messages copy
    /// nothing.
    pub(crate) fn message_of(self, bytes: Bytes) -> Message {
        match self {
            Self::Binary => Message::Binary(bytes),
            Self::Base64 => {
                let channel = bytes.first().copied().unwrap_or_default();
                self.message(channel, bytes.get(1..).unwrap_or_default())
            }
        }
    }
}

/// Each message is padded separately.
fn base64_text(channel: u8, content: &[u8]) -> String {
    let mut text = String::from(char::from(b'0'.wrapping_add(channel)));
    STANDARD.encode_string(content, &mut text);
    text
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(Coding::Binary, 1, b"", Message::binary(vec![1]))]
    #[case(Coding::Binary, 1, b"hi\n", Message::binary(b"\x01hi\n".to_vec()))]
    #[case(Coding::Base64, 1, b"", Message::text("1"))]
    #[case(Coding::Base64, 1, b"hello", Message::text("1aGVsbG8="))]
    #[case(
        Coding::Base64,
        3,
        br#"{"status":"Success"}"#,
        Message::text("3eyJzdGF0dXMiOiJTdWNjZXNzIn0=")
    )]
    fn messages_match_those_of_kube_apiserver(
        #[case] coding: Coding,
        #[case] channel: u8,
        #[case] content: &[u8],
        #[case] expected: Message,
    ) {
        assert_eq!(coding.message(channel, content), expected);
        let prefixed = [&[channel], content].concat();
        assert_eq!(coding.message_of(prefixed.into()), expected);
    }

    #[rstest]
    #[case(Coding::Binary, b"\0hello", Ok(Some((0, Bytes::from_static(b"hello")))))]
    #[case(Coding::Binary, b"", Ok(None))]
    #[case(Coding::Binary, b"\x04", Ok(Some((4, Bytes::new()))))]
    #[case(Coding::Base64, b"0aGVsbG8=", Ok(Some((0, Bytes::from_static(b"hello")))))]
    #[case(Coding::Base64, b"0-_-_", Err(ChannelError))]
    #[case(Coding::Base64, b"\x01aGk=", Err(ChannelError))]
    fn client_messages_decode(
        #[case] coding: Coding,
        #[case] payload: &'static [u8],
        #[case] expected: Result<Option<(u8, Bytes)>, ChannelError>,
    ) {
        assert_eq!(coding.decode(Bytes::from_static(payload)), expected);
    }

    #[rstest]
    #[case("v5.channel.k8s.io", Coding::Binary)]
    #[case("base64.channel.k8s.io", Coding::Base64)]
    #[case("", Coding::Binary)]
    fn subprotocols_name_their_coding(#[case] protocol: &str, #[case] expected: Coding) {
        assert_eq!(Coding::of(protocol), expected);
    }
}
