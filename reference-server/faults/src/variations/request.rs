//! Changes requests: restores the original tokens, and adds fields to new objects like an admission
//! webhook.

use bytes::Bytes;
use http::Method;
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use rand::RngExt;
use rand::rngs::StdRng;
use serde_json::{Map, Value};

use super::responses::{NOTE, shift_times};
use super::{Variation, Variations, tokens};
use crate::exchange::Request;
use kubeproof_apimachinery::serializer::json;

/// Kinds that are requests or options, so admission webhooks do not change them.
const NOT_ADMITTED: &[&str] = &["Binding", "Eviction", "Scale", "DeleteOptions", "TokenRequest"];

/// Changes a request before the server receives it.
pub(super) fn change(
    request: &mut Request,
    variations: Variations,
    clock: i64,
    random: &mut StdRng,
) {
    restore_url(request);
    if variations.on(Variation::ItemsOnePerPage) {
        limit_page(request);
    }
    request.body = body(request, variations, clock, random);
}

/// Restores the original tokens in the URL.
fn restore_url(request: &mut Request) {
    request.path = tokens::restored(&request.path);
    request.raw_query = query_of(&tokens::restored(&request.raw_query));
}

fn query_of(query: &str) -> String {
    let original = |parameter: &str| {
        let token = percent_decode_str(parameter.strip_prefix("continue=")?).decode_utf8().ok()?;
        let original = tokens::original_page(&token)?;
        Some(format!("continue={}", utf8_percent_encode(&original, NON_ALPHANUMERIC)))
    };
    let parameters = query
        .split('&')
        .map(|parameter| original(parameter).unwrap_or_else(|| parameter.to_owned()));
    parameters.collect::<Vec<_>>().join("&")
}

/// Lowers the limit of a page. A limit of zero is none, and the server rejects other texts.
fn limit_page(request: &mut Request) {
    let limit = request.query().get("limit").and_then(|limit| limit.parse::<u64>().ok());
    if limit.is_some_and(|limit| limit > 1) {
        request.edit_query(|query| query.set("limit", "1"));
    }
}

/// Changes the body of a request. A malformed body stays as it is, because the server must reject
/// it.
fn body(request: &Request, variations: Variations, clock: i64, random: &mut StdRng) -> Bytes {
    let Ok(text) = std::str::from_utf8(&request.body) else { return request.body.clone() };
    let restored = tokens::restored(text);
    let changes = [
        Variation::UnknownFields,
        Variation::ClockOff,
        Variation::MetadataAtAdmission,
        Variation::DefaultsAtAdmission,
        Variation::OtherSuffixes,
        Variation::ImagesAlwaysPulled,
    ];
    let wanted = changes.into_iter().any(|variation| variations.on(variation));
    match wanted.then(|| object(&restored)).flatten() {
        Some(mut object) => {
            object.metadata.remove(NOTE);
            if variations.on(Variation::ClockOff) {
                shift_times(&mut object.metadata, -clock);
            }
            if request.method == Method::POST && is_json(request) && object.is_admitted() {
                object.admit(variations, random);
            }
            object.into_value().to_string().into()
        }
        None => restored.into(),
    }
}

fn is_json(request: &Request) -> bool {
    matches!(request.media_type().as_str(), "" | "application/json")
}

struct Document {
    fields: Map<String, Value>,
    metadata: Map<String, Value>,
}

/// Parses an object. Returns `None` if writing it again would lose something, such as a duplicate
/// key.
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
        let kind = kind.to_owned();
        if variations.on(Variation::MetadataAtAdmission) {
            self.derive_labels(&kind);
            for field in ["labels", "annotations"] {
                let map = self.metadata.entry(field).or_insert_with(|| Value::Object(Map::new()));
                if let Some(map) = map.as_object_mut() {
                    map.entry("admission.example.com/seen").or_insert_with(|| "yes".into());
                }
            }
        }
        let keeps_data = matches!(kind.as_str(), "ConfigMap" | "Secret");
        if variations.on(Variation::DefaultsAtAdmission) && keeps_data {
            self.fields.entry("immutable").or_insert(false.into());
        }
        if variations.on(Variation::OtherSuffixes) {
            self.name(random);
        }
        if variations.on(Variation::ImagesAlwaysPulled) && kind == "Pod" {
            self.pull_images();
        }
    }

    /// Sets the labels that the server derives before admission. The server behind derives none for
    /// an object with labels.
    fn derive_labels(&mut self, kind: &str) {
        let template = Value::Object(self.fields.clone());
        let labels = template.pointer("/spec/template/metadata/labels");
        if let Some(labels) = labels.filter(|_| kind == "ReplicationController") {
            self.metadata.entry("labels").or_insert_with(|| labels.clone());
        }
    }

    fn pull_images(&mut self) {
        let spec = self.fields.get_mut("spec");
        let containers = spec.and_then(|spec| spec.get_mut("containers")?.as_array_mut());
        for container in containers.into_iter().flatten().filter_map(Value::as_object_mut) {
            container.insert("imagePullPolicy".to_owned(), "Always".into());
        }
    }

    /// Generates a name from the prefix if the client left the name to the server and the prefix is
    /// valid for any kind.
    fn name(&mut self, random: &mut StdRng) {
        const LETTERS: &[u8] = b"aeiou0123456789";
        let named = self.metadata.get("name").is_some_and(|name| name.as_str() != Some(""));
        let prefix = self.metadata.get("generateName").and_then(Value::as_str).unwrap_or_default();
        let begins_a_name =
            prefix.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-')
                && prefix.starts_with(|c: char| c.is_ascii_lowercase())
                && prefix.len() <= 50;
        if !named && begins_a_name {
            let letters =
                (0..12).map(|_| char::from(LETTERS[random.random_range(0..LETTERS.len())]));
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
    use rand::SeedableRng;
    use rstest::rstest;

    use super::*;

    fn through(variation: Variation, body: &'static str) -> String {
        let mut request = Request::new(Method::POST, "/api/v1/namespaces/n/configmaps");
        request.body = Bytes::from(body);
        let mut random = StdRng::seed_from_u64(1);
        change(&mut request, Variations::none().with(variation), 0, &mut random);
        String::from_utf8(request.body.to_vec()).unwrap()
    }

    #[test]
    fn a_page_and_a_version_are_asked_for_by_what_they_stand_for() {
        let (page, version) = (tokens::next_page("abc="), tokens::version("12").unwrap());
        let path = format!("/api/v1/pods?limit=1&continue={page}&resourceVersion={version}");
        let mut request = Request::new(Method::GET, &path);
        restore_url(&mut request);
        assert_eq!(request.path, "/api/v1/pods");
        assert_eq!(request.raw_query, "limit=1&continue=abc%3D&resourceVersion=12");
    }

    #[test]
    fn a_new_object_is_given_a_label_and_a_name() {
        let labelled = through(Variation::MetadataAtAdmission, r#"{"metadata":{"name":"a"}}"#);
        assert!(
            labelled.contains(r#""labels":{"admission.example.com/seen":"yes"}"#),
            "{labelled}"
        );
        let named = through(Variation::OtherSuffixes, r#"{"metadata":{"generateName":"a-"}}"#);
        assert!(named.contains(r#""name":"a-"#), "{named}");
    }

    #[rstest]
    #[case("limit=500&watch=0", "watch=0&limit=1")]
    #[case("limit=0", "limit=0")]
    #[case("limit=a", "limit=a")]
    fn pages_have_one_item(#[case] asked: &str, #[case] expected: &str) {
        let mut request = Request::new(Method::GET, &format!("/api/v1/pods?{asked}"));
        limit_page(&mut request);
        assert_eq!(request.raw_query, expected);
    }

    #[test]
    fn admission_changes_the_pull_policy() {
        let pod = r#"{"kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"c"}]}}"#;
        let pod = through(Variation::ImagesAlwaysPulled, pod);
        assert!(pod.contains(r#"[{"imagePullPolicy":"Always","name":"c"}]"#), "{pod}");
    }

    #[test]
    fn admission_adds_to_derived_labels() {
        let body = r#"{"kind":"ReplicationController","metadata":{"name":"a"},
            "spec":{"template":{"metadata":{"labels":{"app":"a"}}}}}"#;
        let labelled = through(Variation::MetadataAtAdmission, body);
        assert!(
            labelled.contains(r#""labels":{"admission.example.com/seen":"yes","app":"a"}"#)
                || labelled.contains(r#""labels":{"app":"a","admission.example.com/seen":"yes"}"#),
            "{labelled}"
        );
    }

    #[test]
    fn what_cannot_be_written_again_as_it_was_stays() {
        for body in
            [r#"{"metadata":{"name":"a"},"data":{"k":"1","k":"2"}}"#, "{\"metadata\":", "[1]"]
        {
            assert_eq!(through(Variation::MetadataAtAdmission, body), body);
        }
    }
}
