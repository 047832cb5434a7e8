//! The two ways in which JSON leaves the server.

use bytes::Bytes;
use serde::Serialize;
use serde_json::ser::{PrettyFormatter, Serializer};

/// One line with a newline at its end: the normal form of a response body.
pub fn compact<T: Serialize>(value: &T) -> Result<Bytes, serde_json::Error> {
    let mut text = serde_json::to_vec(value)?;
    text.push(b'\n');
    Ok(text.into())
}

/// Indented by two spaces, without a newline at its end: for people, when `?pretty` asks for it.
pub fn pretty<T: Serialize>(value: &T) -> Result<Bytes, serde_json::Error> {
    let mut text = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut text, PrettyFormatter::with_indent(b"  ")))?;
    Ok(text.into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn compact_ends_with_a_newline_and_pretty_does_not() {
        let value = json!({"kind": "Status", "metadata": {}});
        assert_eq!(compact(&value).unwrap(), "{\"kind\":\"Status\",\"metadata\":{}}\n");
        assert_eq!(pretty(&value).unwrap(), "{\n  \"kind\": \"Status\",\n  \"metadata\": {}\n}");
    }
}
