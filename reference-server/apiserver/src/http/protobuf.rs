//! Protobuf bodies and documents of built-in types.

use bytes::Bytes;
use kubeproof_api::Version;
use kubeproof_apimachinery::schema::definitions::Definitions;
use kubeproof_apimachinery::serializer::protobuf::{self, DecodeError, EncodeError};
use serde_json::Value;

/// Returns the definitions of the built-in types. Field numbers never change, so the newest
/// definitions fit each version of Kubernetes. Only alpha fields are ever removed.
fn definitions() -> &'static Definitions {
    Version::default().definitions()
}

/// Converts a body to JSON. A body that names no kind has the default one.
pub(crate) fn to_json(body: &[u8], default: (&str, &str)) -> Result<Bytes, DecodeError> {
    let object = protobuf::decode(definitions(), body, default)?;
    Ok(object.to_string().into())
}

/// Encodes a document in its envelope.
pub(crate) fn encode(document: &Value) -> Result<Bytes, EncodeError> {
    protobuf::encode(definitions(), document).map(Bytes::from)
}

/// Encodes a watch event.
pub(crate) fn watch_event(event: &str, object: &Value) -> Result<Vec<u8>, EncodeError> {
    protobuf::watch_event(definitions(), event, object)
}
