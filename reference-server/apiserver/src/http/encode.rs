//! Encodes documents for responses.

use http::StatusCode;
use kubeproof_apimachinery::serializer::json::Bounded;
use kubeproof_apimachinery::status::ApiError;
use serde_json::Value;

use super::negotiate::{Encoding, Representation};
use super::protobuf;
use super::respond::{ApiResponse, MAX_INDENTED};

impl ApiResponse {
    /// Returns a response of a document in the encoding of the representation.
    pub(crate) fn document(
        representation: Representation,
        status: StatusCode,
        document: &Value,
    ) -> Self {
        let mut response = match representation.encoding {
            Encoding::Json => Self::json(status, document),
            Encoding::Yaml => yaml(status, document),
            Encoding::Protobuf => match protobuf::encode(document) {
                Ok(bytes) => Self::bytes(status, bytes),
                Err(error) => {
                    let error = ApiError::internal(format!("protobuf encoding failed: {error}"));
                    return Self::from_error(&error, Representation::JSON);
                }
            },
        };
        response.content_type = representation.content_type();
        response
    }
}

fn yaml(status: StatusCode, document: &Value) -> ApiResponse {
    let plain = document.to_string();
    let mut text = Bounded::new(MAX_INDENTED.max(4 * plain.len()));
    match serde_saphyr::to_io_writer(&mut text, document) {
        Ok(()) => ApiResponse::bytes(status, text.into_bytes()),
        // JSON is valid YAML, and does not grow with its depth.
        Err(_) => ApiResponse::bytes(status, plain),
    }
}
