//! A broken property as a case file.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::prober::media_type;
use super::property::requirement;
use super::violation::{Claim, Failure, Scope};
use crate::exchange::Exchange;

/// Returns the text of a case file that repeats the check.
pub fn case_file(failure: &Failure) -> String {
    let Failure { subject, violation, .. } = failure;
    let exchanges = failure.shown();
    let writer = Writer { failure, exchanges };
    let name = violation.property.name();
    let case = json!({
        "summary": format!("The property '{name}' holds for {}", subject.resource),
        "why": violation.message,
        "requirements": [requirement(violation.property)],
        "subject": {"of": subject.to_string(), "verbs": writer.verbs()},
        "needs": writer.needs(),
        "steps": writer.steps(),
    });
    let mut case = case;
    if case["needs"].as_array().is_some_and(Vec::is_empty) {
        super::generate::remove(&mut case, "/needs");
    }
    // JSON is YAML. Each step is one line.
    let mut text = String::new();
    for key in ["summary", "why", "requirements", "subject", "needs"] {
        if !case[key].is_null() {
            let _ = writeln!(text, "{key}: {}", case[key]);
        }
    }
    text.push_str("steps:\n");
    for step in case["steps"].as_array().into_iter().flatten() {
        let _ = writeln!(text, "  - {step}");
    }
    text
}

struct Writer<'a> {
    failure: &'a Failure,
    /// The requests up to the wrong response.
    exchanges: &'a [Exchange],
}

impl Writer<'_> {
    fn verbs(&self) -> BTreeSet<&'static str> {
        let verb = |exchange: &Exchange| {
            let target = &exchange.request.target;
            let path = target.split('?').next().unwrap_or_default();
            match exchange.request.method.as_str() {
                "POST" => "create",
                "PUT" => "update",
                "PATCH" => "patch",
                "DELETE" => "delete",
                _ if target.contains("watch=true") => "watch",
                _ if path == self.failure.collection => "list",
                _ => "get",
            }
        };
        self.exchanges.iter().map(verb).collect()
    }

    fn needs(&self) -> BTreeSet<&'static str> {
        let need = |exchange: &Exchange| match media_type(exchange) {
            "application/merge-patch+json" => Some("merge-patch"),
            "application/json-patch+json" => Some("json-patch"),
            "application/strategic-merge-patch+json" => Some("strategic-merge-patch"),
            "application/apply-patch+yaml" => Some("server-side-apply"),
            _ if exchange.request.target.contains("sendInitialEvents") => Some("streaming-lists"),
            _ if exchange.request.target.contains("limit=") => Some("paging"),
            _ => None,
        };
        self.exchanges.iter().filter_map(need).collect()
    }

    fn steps(&self) -> Vec<Value> {
        let wrong = self.failure.violation.step;
        let mut steps: Vec<Value> =
            (0..self.exchanges.len()).map(|number| self.step(number, number == wrong)).collect();
        let is_watch = |exchange: &&Exchange| exchange.request.target.contains("watch=true");
        // The events of a watch are read after all requests.
        let watch = self.exchanges.get(wrong).filter(is_watch);
        if watch.is_some() {
            steps.extend(self.awaited(&format!("s{wrong}")));
        }
        steps
    }

    fn step(&self, number: usize, is_wrong: bool) -> Value {
        let request = &self.exchanges[number].request;
        let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
        let path = path.replace(&self.failure.collection, "${collection}");
        let path = path.replace(&self.failure.name, "${name}");
        let query: Map<String, Value> = url::form_urlencoded::parse(query.as_bytes())
            .filter(|(key, _)| key != "watch")
            .map(|(key, value)| (key.into_owned(), self.portable(&json!(value), number)))
            .collect();
        if request.target.contains("watch=true") {
            return json!({"watch": {"id": format!("s{number}"), "path": path, "query": query}});
        }
        let mut step = json!({
            "id": format!("s{number}"),
            "method": request.method,
            "path": path,
        });
        if !query.is_empty() {
            step["query"] = Value::Object(query);
        }
        if let Ok(body) = serde_json::from_slice::<Value>(&request.body) {
            step["contentType"] = json!(media_type(&self.exchanges[number]));
            step["body"] = self.portable(&body, number);
        }
        let captures = self.captures(number);
        if !captures.is_empty() {
            step["capture"] = Value::Object(captures);
        }
        if is_wrong {
            step["expect"] = json!([self.expectation(number)]);
        }
        json!({"request": step})
    }

    /// Replaces what differs in each run by variables.
    fn portable(&self, value: &Value, number: usize) -> Value {
        match value {
            Value::String(text) => json!(self.portable_text(text, number)),
            Value::Array(items) => items.iter().map(|item| self.portable(item, number)).collect(),
            Value::Object(members) => Value::Object(
                members.iter().map(|(k, v)| (k.clone(), self.portable(v, number))).collect(),
            ),
            other => other.clone(),
        }
    }

    fn portable_text(&self, text: &str, number: usize) -> String {
        for (earlier, exchange) in self.exchanges[..number].iter().enumerate() {
            for (member, letter) in [("resourceVersion", 'v'), ("uid", 'u')] {
                if !text.is_empty() && of_metadata(exchange, member) == Some(text) {
                    return format!("${{{letter}{earlier}}}");
                }
            }
        }
        let namespace = self.failure.input.objects.iter().find_map(namespace);
        if namespace.is_some_and(|namespace| namespace == text) {
            return "${ns}".to_owned();
        }
        let version = self.failure.input.objects.first().map(|object| &object["apiVersion"]);
        if version.and_then(Value::as_str) == Some(text) {
            return "${subject.apiVersion}".to_owned();
        }
        text.replace(&self.failure.name, "${name}")
    }

    /// Captures the values of this response that later requests or the expectation use.
    fn captures(&self, number: usize) -> Map<String, Value> {
        let mut captures = Map::new();
        for (member, letter) in [("resourceVersion", 'v'), ("uid", 'u')] {
            let Some(value) = of_metadata(&self.exchanges[number], member) else { continue };
            let is_first = self.exchanges[..number]
                .iter()
                .all(|earlier| of_metadata(earlier, member) != Some(value));
            let later = &self.exchanges[number + 1..];
            let quoted = format!("\"{value}\"");
            let is_used = later.iter().any(|exchange| {
                let body = String::from_utf8_lossy(&exchange.request.body);
                let query = format!("resourceVersion={value}");
                body.contains(&quoted) || exchange.request.target.contains(&query)
            });
            let is_claimed = match &self.failure.violation.claim {
                Claim::Member { value: Some(claimed), .. } => claimed.to_string().contains(&quoted),
                _ => false,
            };
            if is_first && (is_used || is_claimed) {
                captures.insert(format!("{letter}{number}"), json!(format!("/metadata/{member}")));
            }
        }
        captures
    }

    fn expectation(&self, number: usize) -> Value {
        match &self.failure.violation.claim {
            Claim::Accepted | Claim::Event(_) => json!({"id": "accepted", "status": [200, 201]}),
            Claim::Status(code) => json!({"id": "status", "status": code}),
            Claim::Rejected { field } => rejection(field),
            Claim::Present(at) => {
                json!({"id": "present", "body": nested(at, json!({"$present": true}))})
            }
            Claim::Names(names) => {
                let item =
                    |name: &String| json!({"metadata": {"name": self.portable_text(name, number)}});
                let some: Vec<Value> = names.iter().map(item).collect();
                json!({"id": "complete", "body": {"items": {"$some": some}}})
            }
            Claim::Member { scope, at, value } => {
                let pattern = self.pattern(at, value.as_ref(), number);
                let pattern = match scope {
                    Scope::Item(name) => {
                        let name = json!({"name": self.portable_text(name, number)});
                        let mut item = pattern;
                        merge(&mut item, json!({"metadata": name}));
                        json!({"items": {"$some": [item]}})
                    }
                    Scope::Body | Scope::Event(_) => pattern,
                };
                json!({"id": "same", "body": pattern})
            }
        }
    }

    /// Returns a pattern for the value of a JSON Pointer.
    fn pattern(&self, at: &str, value: Option<&Value>, number: usize) -> Value {
        let leaf = match value {
            None => json!({"$absent": true}),
            Some(Value::Object(members)) if members.is_empty() => json!({"$exactly": {}}),
            Some(value) => json!({"$exactly": self.portable(value, number)}),
        };
        nested(at, leaf)
    }

    /// Returns the steps that wait for the events of the last watch.
    fn awaited(&self, watch: &str) -> Vec<Value> {
        let number = self.exchanges.len();
        let until = |id: &str, kind: &str, object: Value| {
            json!({"await": {
                "id": id, "watch": watch, "until": {"type": kind, "object": object},
            }})
        };
        match &self.failure.violation.claim {
            Claim::Names(names) => {
                let wait = |(n, name): (usize, &String)| {
                    let name = self.portable_text(name, number);
                    until(&format!("e{n}"), "ADDED", json!({"metadata": {"name": name}}))
                };
                names.iter().enumerate().map(wait).collect()
            }
            Claim::Member { scope, at, value } => {
                let kind = match scope {
                    Scope::Event(kind) => kind.as_str(),
                    Scope::Body | Scope::Item(_) => "ADDED",
                };
                let mut object = self.pattern(at, value.as_ref(), number);
                merge(&mut object, json!({"metadata": {"name": "${name}"}}));
                vec![until("event", kind, object)]
            }
            Claim::Event(kind) => {
                vec![until("event", kind, json!({"metadata": {"name": "${name}"}}))]
            }
            _ => Vec::new(),
        }
    }
}

/// Returns the pattern of an object that has another pattern at a JSON Pointer.
fn nested(at: &str, leaf: Value) -> Value {
    at.split('/').skip(1).collect::<Vec<_>>().into_iter().rev().fold(leaf, |inner, segment| {
        let name = segment.replace("~1", "/").replace("~0", "~");
        match name.parse::<usize>() {
            Ok(_) => json!({"$some": [inner]}),
            Err(_) => json!({name: inner}),
        }
    })
}

fn rejection(field: &str) -> Value {
    let bad = json!({"rejected": {"code": 400, "reason": "BadRequest"}});
    let mut invalid = json!({"rejected": {"code": 422, "reason": "Invalid"}});
    if !field.is_empty() {
        let cause = json!({"field": {"$present": true}});
        invalid["rejected"]["details"] = json!({"causes": {"$some": [cause]}});
    }
    json!({"id": "rejected", "anyOf": [bad, invalid]})
}

fn merge(pattern: &mut Value, more: Value) {
    let Value::Object(more) = more else { return };
    for (name, value) in more {
        match pattern.get_mut(&name) {
            Some(inner) if inner.is_object() => merge(inner, value),
            _ => pattern[name] = value,
        }
    }
}

fn of_metadata<'a>(exchange: &'a Exchange, member: &str) -> Option<&'a str> {
    exchange.json()?["metadata"][member].as_str()
}

fn namespace(object: &Value) -> Option<&str> {
    object["metadata"]["namespace"].as_str()
}
