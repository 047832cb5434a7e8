//! Labels and annotations, by the syntax rules that all servers share.

use rand::RngExt;
use serde_json::{Map, Value, json};

use super::Generator;

/// The most characters of a label value, and of the name in a key.
const NAME: usize = 63;

/// The most bytes of all annotations that this program sends.
const ANNOTATIONS: usize = 100_000;

impl Generator<'_> {
    /// Adds labels and annotations to an object.
    pub(super) fn add_metadata(&mut self, object: &mut Value) {
        if !self.once_in(4) {
            let labels = self.labels();
            merge(&mut object["metadata"]["labels"], labels);
        }
        if !self.once_in(4) {
            let annotations = self.annotations();
            merge(&mut object["metadata"]["annotations"], annotations);
        }
    }

    fn labels(&mut self) -> Map<String, Value> {
        let count = self.random.random_range(1..4);
        (0..count)
            .map(|_| {
                let length = self.one_of(&[0, 1, 9, NAME]).unwrap_or(1);
                (self.key(), json!(self.word(length, "-_.", true)))
            })
            .collect()
    }

    /// Returns annotations with any texts.
    pub(super) fn annotations(&mut self) -> Map<String, Value> {
        let count = self.random.random_range(1..5);
        let mut size = 0;
        let texts = (0..count).map(|_| (self.key(), self.text())).filter(|(_, text)| {
            size += text.len();
            size < ANNOTATIONS
        });
        texts.map(|(key, text)| (key, json!(text))).collect()
    }

    fn key(&mut self) -> String {
        let length = self.one_of(&[1, 5, 12, NAME]).unwrap_or(1);
        let name = self.word(length, "-_.", true);
        match self.random.random_range(0..3) {
            0 => name,
            1 => format!("kubeproof.dev/{name}"),
            _ => format!("{}.kubeproof.dev/{name}", self.word(NAME, "-", false)),
        }
    }

    /// Returns a map from keys of config maps to values.
    pub(super) fn data(&mut self, value: impl Fn(&mut Self) -> String) -> Value {
        let count = self.random.random_range(0..5);
        let mut entries = Map::new();
        for _ in 0..count {
            let length = self.one_of(&[1, 8, 253]).unwrap_or(1);
            let key = self.word(length, "-_.", true);
            let value = value(self);
            entries.insert(key, json!(value));
        }
        Value::Object(entries)
    }
}

/// Adds members to an object, which may be missing.
fn merge(object: &mut Value, members: Map<String, Value>) {
    if !object.is_object() {
        *object = json!({});
    }
    for (name, value) in members {
        object[name] = value;
    }
}
