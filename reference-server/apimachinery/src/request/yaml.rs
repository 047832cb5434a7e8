//! Conversion of YAML bodies to JSON.

use bytes::Bytes;
use serde::de;
use serde_saphyr::DuplicateKeyPolicy;

use crate::status::ApiError;

/// Converts a YAML body to JSON. Duplicate keys are kept, so that field validation can report them.
pub fn to_json(bytes: &[u8]) -> Result<Bytes, ApiError> {
    let mut json = Vec::new();
    let options = serde_saphyr::options! { duplicate_keys: DuplicateKeyPolicy::LastWins };
    serde_saphyr::with_deserializer_from_slice_with_options(bytes, options, |yaml| {
        serde_transcode::transcode(yaml, &mut serde_json::Serializer::new(&mut json))
            .map_err(de::Error::custom)
    })
    .map_err(|error| ApiError::bad_request(format!("the body is not YAML: {error}")))?;
    Ok(json.into())
}
