//! What goes in: tokens become what they stand for, and new objects pass through an admission of the front.

use bytes::Bytes;
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{Method, Uri, header};
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use rand::RngExt;
use rand::rngs::StdRng;
use serde_json::{Map, Value};

use super::answer::{NOTE, shift_times};
use super::{Variation, Variations, tokens};
use crate::json;

/// Kinds that are questions and commands, not objects that are admitted.
const NOT_ADMITTED: &[&str] = &["Binding", "Eviction", "Scale", "DeleteOptions", "TokenRequest"];

/// The address that the server behind understands.
pub(super) fn uri(uri: &Uri) -> Uri {
    let Some(asked) = uri.path_and_query() else { return uri.clone() };
    let text = tokens::restored(asked.as_str());
    let text = match text.split_once('?') {
        Some((path, query)) => format!("{path}?{}", query_of(query)),
        None => text,
    };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = PathAndQuery::try_from(text).ok().or(parts.path_and_query);
    Uri::from_parts(parts).unwrap_or_else(|_| uri.clone())
}

fn query_of(query: &str) -> String {
    let original = |parameter: &str| {
        let token = percent_decode_str(parameter.strip_prefix("continue=")?).decode_utf8().ok()?;
        let original = tokens::original_page(&token)?;
        Some(format!("continue={}", utf8_percent_encode(&original, NON_ALPHANUMERIC)))
    };
    let parameters =
        query.split('&').map(|parameter| original(parameter).unwrap_or_else(|| parameter.to_owned()));
    parameters.collect::<Vec<_>>().join("&")
}

/// The body that the server behind understands. What is not well-formed stays as it is: it is not ours to refuse.
pub(super) fn body(
    variations: Variations,
    clock: i64,
    parts: &Parts,
    bytes: &Bytes,
    random: &mut StdRng,
) -> Bytes {
    let Ok(text) = std::str::from_utf8(bytes) else { return bytes.clone() };
    let restored = tokens::restored(text);
    let changes = [
        Variation::UnknownFields,
        Variation::ClockOff,
        Variation::MetadataAtAdmission,
        Variation::DefaultsAtAdmission,
        Variation::OtherSuffixes,
    ];
    let wanted = changes.into_iter().any(|variation| variations.on(variation));
    match wanted.then(|| object(&restored)).flatten() {
        Some(mut object) => {
            object.metadata.remove(NOTE);
            if variations.on(Variation::ClockOff) {
                shift_times(&mut object.metadata, -clock);
            }
            if parts.method == Method::POST && is_json(parts) && object.is_admitted() {
                object.admit(variations, random);
            }
            object.into_value().to_string().into()
        }
        None => restored.into(),
    }
}

fn is_json(parts: &Parts) -> bool {
    let value = parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    value.is_none_or(|value| value.starts_with("application/json"))
}

/// An object that has metadata, taken apart.
struct Document {
    fields: Map<String, Value>,
    metadata: Map<String, Value>,
}

/// The object that a text is; `None` also where rewriting it would lose something, as a key that stands twice.
fn object(text: &str) -> Option<Document> {
    let json::Decoded { value, duplicates } = json::decode(text.as_bytes()).ok()?;
    let Value::Object(mut fields) = value else { return None };
    let metadata = fields.get_mut("metadata").and_then(Value::as_object_mut).map(std::mem::take)?;
    duplicates.is_empty().then_some(Document { fields, metadata })
}

impl Document {
    fn is_admitted(&self) -> bool {
        let kind = self.fields.get("kind").and_then(Value::as_str).unwrap_or_default();
        !kind.ends_with("Review") && !NOT_ADMITTED.contains(&kind)
    }

    fn admit(&mut self, variations: Variations, random: &mut StdRng) {
        let kind = self.fields.get("kind").and_then(Value::as_str).unwrap_or_default();
        // Labels of these are derived, which admission comes after.
        let derived = kind == "ReplicationController";
        if variations.on(Variation::MetadataAtAdmission) && !derived {
            for field in ["labels", "annotations"] {
                let map = self.metadata.entry(field).or_insert_with(|| Value::Object(Map::new()));
                if let Some(map) = map.as_object_mut() {
                    map.entry("admission.example.com/seen").or_insert_with(|| "yes".into());
                }
            }
        }
        let keeps_data = matches!(kind, "ConfigMap" | "Secret");
        if variations.on(Variation::DefaultsAtAdmission) && keeps_data {
            self.fields.entry("immutable").or_insert(false.into());
        }
        if variations.on(Variation::OtherSuffixes) {
            self.name(random);
        }
    }

    /// Makes a name of the prefix, if the client left that to the server and the prefix begins a name of any kind.
    fn name(&mut self, random: &mut StdRng) {
        const LETTERS: &[u8] = b"aeiou0123456789";
        let named = self.metadata.get("name").is_some_and(|name| name.as_str() != Some(""));
        let prefix = self.metadata.get("generateName").and_then(Value::as_str).unwrap_or_default();
        let begins_a_name = prefix.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-')
            && prefix.starts_with(|c: char| c.is_ascii_lowercase())
            && prefix.len() <= 50;
        if !named && begins_a_name {
            let letters = (0..12).map(|_| char::from(LETTERS[random.random_range(0..LETTERS.len())]));
            let name: String = prefix.chars().chain(letters).collect();
            self.metadata.insert("name".to_owned(), name.into());
        }
    }

    fn into_value(mut self) -> Value {
        self.fields.insert("metadata".to_owned(), Value::Object(self.metadata));
        Value::Object(self.fields)
    }
}

#[cfg(test)]
mod tests {
    use http::Request;
    use rand::SeedableRng;

    use super::*;

    fn through(variation: Variation, body: &'static str) -> String {
        let (parts, ()) = Request::post("/api/v1/namespaces/n/configmaps").body(()).unwrap().into_parts();
        let mut random = StdRng::seed_from_u64(1);
        let body =
            super::body(Variations::none().with(variation), 0, &parts, &Bytes::from(body), &mut random);
        String::from_utf8(body.to_vec()).unwrap()
    }

    #[test]
    fn a_page_and_a_version_are_asked_for_by_what_they_stand_for() {
        let (page, version) = (tokens::next_page("abc="), tokens::version("12").unwrap());
        let asked: Uri =
            format!("/api/v1/pods?limit=1&continue={page}&resourceVersion={version}").parse().unwrap();
        assert_eq!(uri(&asked), "/api/v1/pods?limit=1&continue=abc%3D&resourceVersion=12");
    }

    #[test]
    fn a_new_object_is_given_a_label_and_a_name() {
        let labelled = through(Variation::MetadataAtAdmission, r#"{"metadata":{"name":"a"}}"#);
        assert!(labelled.contains(r#""labels":{"admission.example.com/seen":"yes"}"#), "{labelled}");
        let named = through(Variation::OtherSuffixes, r#"{"metadata":{"generateName":"a-"}}"#);
        assert!(named.contains(r#""name":"a-"#), "{named}");
    }

    #[test]
    fn what_cannot_be_written_again_as_it_was_stays() {
        for body in [r#"{"metadata":{"name":"a"},"data":{"k":"1","k":"2"}}"#, "{\"metadata\":", "[1]"] {
            assert_eq!(through(Variation::MetadataAtAdmission, body), body);
        }
    }
}
