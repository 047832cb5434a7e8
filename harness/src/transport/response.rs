//! Converts responses to [`Received`].

use std::io::Read as _;
use std::sync::Arc;

use bytes::Bytes;
use flate2::read::GzDecoder;
use http::{HeaderMap, StatusCode, Version};
use serde_json::Value;

use crate::exchange::Received;
use crate::json;

/// The longest text of a compressed body, in bytes.
const LONGEST_TEXT: u64 = 16 << 20;

/// Records the head of a response.
pub(super) fn head(
    status: StatusCode,
    version: Version,
    headers: Vec<(String, String)>,
) -> Received {
    let version = match version {
        Version::HTTP_10 => "HTTP/1.0",
        Version::HTTP_2 => "HTTP/2",
        _ => "HTTP/1.1",
    };
    Received::head(status.as_u16(), version, headers)
}

/// Adds the body to a response.
pub(super) fn with_body(mut head: Received, body: Bytes) -> Received {
    if !body.is_empty() {
        let (json, fault) = match unzipped(&head, &body) {
            Some(Ok(text)) => json_of(&text),
            Some(Err(error)) => (None, Some(format!("the gzip body is broken: {error}"))),
            None => json_of(&body),
        };
        head.json = json;
        head.json_fault = fault.filter(|_| head.json.is_some() || claims_json(&head));
    }
    head.body = body;
    head
}

/// Decompresses a body that the head declares as gzip.
fn unzipped(head: &Received, body: &[u8]) -> Option<std::io::Result<Vec<u8>>> {
    let is_gzip = header(head, "content-encoding")?.eq_ignore_ascii_case("gzip");
    is_gzip.then(|| {
        let mut text = Vec::new();
        // A cut text is no JSON.
        GzDecoder::new(body).take(LONGEST_TEXT).read_to_end(&mut text)?;
        Ok(text)
    })
}

/// Converts headers to text. Bytes beyond ASCII have no meaning in HTTP.
pub(super) fn text_headers(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    headers.iter().map(|(name, value)| (name.to_string(), text(value.as_bytes()))).collect()
}

/// Parses JSON and returns the value and its fault. A duplicate key has both, a syntax error no
/// value.
pub(crate) fn json_of(text: &[u8]) -> (Option<Arc<Value>>, Option<String>) {
    match json::parse(text) {
        Ok((value, duplicate)) => {
            (Some(Arc::new(value)), duplicate.map(|duplicate| duplicate.to_string()))
        }
        Err(fault) => (None, Some(fault.to_string())),
    }
}

/// Reports whether the response declares a JSON body.
fn claims_json(head: &Received) -> bool {
    let essence =
        header(head, "content-type").and_then(|value| value.split(';').next()).unwrap_or_default();
    let essence = essence.trim().to_ascii_lowercase();
    let plain = header(head, "content-encoding").is_none_or(|coding| {
        ["identity", "gzip"].iter().any(|known| coding.eq_ignore_ascii_case(known))
    });
    plain && (essence == "application/json" || essence.ends_with("+json"))
}

fn header<'a>(head: &'a Received, wanted: &str) -> Option<&'a str> {
    let (_, value) = head.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted))?;
    Some(value)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn received(body: &[u8]) -> Received {
        let headers = [("content-type", "application/json"), ("content-encoding", "gzip")]
            .map(|(a, b)| (a.to_owned(), b.to_owned()));
        let head = head(StatusCode::OK, Version::HTTP_11, headers.to_vec());
        with_body(head, Bytes::copy_from_slice(body))
    }

    #[test]
    fn gzip_is_read_to_its_end() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(br#"{"a": 1}"#).expect("a buffer");
        let bytes = encoder.finish().expect("a buffer");
        let whole = received(&bytes);
        assert_eq!(whole.json.as_deref(), Some(&serde_json::json!({ "a": 1 })));
        assert_eq!(whole.json_fault, None);
        let cut = received(&bytes[..bytes.len() - 8]);
        assert_eq!(cut.json, None);
        assert!(cut.json_fault.is_some_and(|fault| fault.contains("the gzip body is broken")));
    }
}
