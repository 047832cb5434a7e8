//! Places of built-in types that hold any value, and attempts at others.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rand::RngExt;
use serde_json::{Value, json};

use super::{Generator, MANAGED, member_names};
use crate::explore::schema::escaped;

/// The most characters of texts in an attempt.
const LONGEST: usize = 300;

/// Depth of the values of an attempt.
const DEPTH: usize = 3;

impl Generator<'_> {
    /// Fills the places of a built-in type that hold any value.
    pub(super) fn fill(&mut self, object: &mut Value) {
        match self.resource {
            "configmaps.v1" => {
                object["data"] = self.data(Self::text);
                if self.once_in(3) {
                    object["binaryData"] = self.binary_data(object);
                }
            }
            "secrets.v1" => object["data"] = self.data(Self::bytes),
            "serviceaccounts.v1" => {
                object["automountServiceAccountToken"] = json!(self.once_in(2));
            }
            "deployments.v1.apps" => self.fill_deployment(object),
            "leases.v1.coordination.k8s.io" => self.fill_lease(object),
            "roles.v1.rbac.authorization.k8s.io" => object["rules"] = self.rules(),
            _ => {}
        }
    }

    /// Returns the base64 form of any bytes.
    fn bytes(&mut self) -> String {
        if self.once_in(2) {
            return STANDARD.encode(self.text());
        }
        let size = self.random.random_range(0..40);
        let bytes: Vec<u8> = (0..size).map(|_| self.random.random()).collect();
        STANDARD.encode(bytes)
    }

    fn binary_data(&mut self, object: &Value) -> Value {
        let mut data = self.data(Self::bytes);
        if let Some(entries) = data.as_object_mut() {
            entries.retain(|key, _| object["data"].get(key).is_none());
        }
        data
    }

    fn fill_deployment(&mut self, object: &mut Value) {
        let spec = &mut object["spec"];
        if self.once_in(2) {
            spec["template"]["metadata"]["annotations"] = Value::Object(self.annotations());
        }
        for name in ["args", "command"] {
            if self.once_in(2) {
                let count = self.random.random_range(1..5);
                let words: Vec<String> = (0..count).map(|_| self.text()).collect();
                spec["template"]["spec"]["containers"][0][name] = json!(words);
            }
        }
        if self.once_in(2) {
            let count = self.random.random_range(1..5);
            let variable = |n| json!({"name": format!("VAR_{n}"), "value": self.text()});
            let mut variables: Vec<Value> = (0..count).map(variable).collect();
            variables.reverse();
            spec["template"]["spec"]["containers"][0]["env"] = json!(variables);
        }
        for name in ["minReadySeconds", "revisionHistoryLimit"] {
            if self.once_in(2) {
                spec[name] = json!(self.one_of(&[0, 1, 10, 500]));
            }
        }
        if self.once_in(3) {
            spec["paused"] = json!(true);
        }
    }

    fn fill_lease(&mut self, object: &mut Value) {
        let spec = &mut object["spec"];
        let holder = self.text();
        if !holder.is_empty() {
            spec["holderIdentity"] = json!(holder);
        }
        spec["leaseDurationSeconds"] = json!(self.one_of(&[1, 15, i32::MAX]));
        if self.once_in(2) {
            spec["leaseTransitions"] = json!(self.one_of(&[0, 1, i32::MAX]));
        }
        for name in ["acquireTime", "renewTime"] {
            let times = ["2024-02-29T23:59:59.123456Z", "1970-01-01T00:00:00.000001Z"];
            if self.once_in(2) {
                spec[name] = json!(self.one_of(&times));
            }
        }
    }

    fn rules(&mut self) -> Value {
        let count = self.random.random_range(0..4);
        let words = |generator: &mut Self| {
            let count = generator.random.random_range(1..4);
            let words = (0..count).map(|_| generator.word(6, "-.", true));
            words.collect::<Vec<_>>()
        };
        let rule = |generator: &mut Self| {
            json!({
                "apiGroups": words(generator),
                "resources": words(generator),
                "verbs": words(generator),
                "resourceNames": words(generator),
            })
        };
        (0..count).map(|_| rule(self)).collect()
    }

    /// Adds values that the published schema permits. The server may have further rules.
    pub(in crate::explore) fn attempt(&mut self, object: &Value) -> Option<Value> {
        if self.schema.is_complete || !self.schema.root().is_object() {
            return None;
        }
        self.longest = LONGEST;
        let mut places = Vec::new();
        self.absent("", object, &mut places);
        let mut attempt = object.clone();
        for _ in 0..self.random.random_range(1..3) {
            let Some((parent, name)) = self.one_of(&places) else { continue };
            let node = self.schema.at(&format!("{parent}/{}", escaped(&name)))?;
            let Some(value) = self.value(node, DEPTH) else { continue };
            if let Some(parent) = attempt.pointer_mut(&parent) {
                parent[&name] = value;
            }
        }
        (attempt != *object).then_some(attempt)
    }

    /// Collects declared members that an object lacks: the JSON Pointer of the parent, and a name.
    fn absent(&self, at: &str, value: &Value, found: &mut Vec<(String, String)>) {
        let Some(node) = self.schema.at(at) else { return };
        for name in member_names(&node["properties"]) {
            if at.is_empty() && MANAGED.contains(&name.as_str()) || name == "metadata" {
                continue;
            }
            match value.get(&name) {
                None if value.is_object() => found.push((at.to_owned(), name)),
                None => {}
                Some(member) => {
                    self.absent(&format!("{at}/{}", escaped(&name)), member, found);
                }
            }
        }
        for (index, item) in value.as_array().into_iter().flatten().enumerate() {
            self.absent(&format!("{at}/{index}"), item, found);
        }
    }
}
