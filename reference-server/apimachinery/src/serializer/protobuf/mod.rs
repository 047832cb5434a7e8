//! The protobuf encoding of Kubernetes: objects of built-in types, in an envelope.
//!
//! The envelope is the magic prefix `k8s\0` and the message `runtime.Unknown`, which names the kind
//! of the object in it. The definitions have the numbers and types of the fields, so one codec
//! converts all types between JSON and protobuf. Protobuf has no absent and empty lists, so empty
//! lists and maps of JSON disappear. Zero values disappear if Go omits them from JSON.

mod decode;
mod encode;
mod envelope;
mod error;
mod kinds;
mod scalar;
mod shape;
mod text;
mod wire;

pub use self::decode::decode;
pub use self::encode::{encode, watch_event};
pub use self::envelope::MAGIC;
pub use self::error::{DecodeError, EncodeError};
pub use self::kinds::is_known;

#[cfg(test)]
mod tests;

/// The media type.
pub const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// The media type of a stream of watch events. Each event has its length in front.
pub const STREAM_MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf;stream=watch";

/// The maximum nesting depth of messages, and of lists and maps when decoding. Protobuf libraries
/// have the same limit for messages.
const MAX_DEPTH: usize = 100;
