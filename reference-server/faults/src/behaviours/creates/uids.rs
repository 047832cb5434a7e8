//! Uids that are chosen in a wrong way.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::behaviours::Fault;
use crate::behaviours::support::deletions::{edit_delete_options, is_delete};
use crate::behaviours::support::objects::{meta, remove_meta};
use crate::behaviours::support::requests::{is_create, rewrite};
use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, Next, around, edit_documents, edit_objects, uncompressed};

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::UidFromClient => Box::new(Uids::new(Source::Client)),
        Fault::UidFromClock => Box::new(Uids::new(Source::CreationTime)),
        Fault::UidReused => Box::new(Uids::new(Source::Name)),
        Fault::UidWithoutDashes => around(|request, next| Box::pin(without_dashes(request, next))),
        _ => return None,
    })
}

/// The source of the uid of an object.
#[derive(Clone, Copy)]
enum Source {
    /// The uid in the body of the create.
    Client,
    /// The time of the creation, in seconds.
    CreationTime,
    /// Namespace and name.
    Name,
}

/// Shows other uids than the server.
struct Uids {
    source: Source,
    known: Arc<Mutex<Known>>,
}

/// The uids that clients have seen.
#[derive(Default)]
struct Known {
    /// The uid and the creation time that clients see, by the uid of the server.
    shown: HashMap<String, (String, Option<Value>)>,
    /// The uid of the server, by the shown one and the name of the object.
    real: HashMap<(String, String), String>,
}

impl Known {
    /// Replaces the uid of an object and those of its owners.
    fn show(&mut self, source: Source, object: &mut Value) {
        let real = meta(object, "uid").to_owned();
        if real.is_empty() {
            return;
        }
        let made = match source {
            Source::Client => None,
            Source::CreationTime => Some(hash(&["", meta(object, "creationTimestamp")])),
            Source::Name => Some(hash(&[meta(object, "namespace"), meta(object, "name")])),
        };
        if let Some(uid) = made {
            self.shown.entry(real.clone()).or_insert((uid, None));
        }
        if let Some((uid, time)) = self.shown.get(&real).cloned() {
            self.real.insert((uid.clone(), meta(object, "name").to_owned()), real);
            object["metadata"]["uid"] = uid.into();
            if let Some(time) = time {
                object["metadata"]["creationTimestamp"] = time;
            }
        }
        for owner in owners(object) {
            if let Some((uid, _)) = owner["uid"].as_str().and_then(|uid| self.shown.get(uid)) {
                owner["uid"] = uid.as_str().into();
            }
        }
    }

    /// Replaces the shown uids of a body by those of the server.
    fn restore(&self, body: &mut Value) {
        let sent = (meta(body, "uid").to_owned(), meta(body, "name").to_owned());
        if self.real.contains_key(&sent) {
            remove_meta(body, "uid");
        }
        for owner in owners(body) {
            let text = |field: &str| owner[field].as_str().unwrap_or_default().to_owned();
            if let Some(real) = self.real.get(&(text("uid"), text("name"))) {
                owner["uid"] = real.as_str().into();
            }
        }
    }
}

impl Uids {
    fn new(source: Source) -> Self {
        Self { source, known: Arc::default() }
    }

    fn restore(&self, request: &mut Request) {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if is_delete(request) {
            let name = request.target().name;
            edit_delete_options(request, |options| {
                let Some(uid) =
                    options.get_mut("preconditions").and_then(|given| given.get_mut("uid"))
                else {
                    return;
                };
                let shown = (uid.as_str().unwrap_or_default().to_owned(), name);
                if let Some(real) = known.real.get(&shown) {
                    *uid = real.as_str().into();
                }
            });
        } else if !is_create(request) || !matches!(self.source, Source::Client) {
            rewrite(request, |body| known.restore(body));
        }
    }

    /// Remembers the uid that a client chose.
    fn remember(&self, request: &Request, response: &Response) {
        if !is_create(request)
            || response.status != StatusCode::CREATED
            || request.method != Method::POST
        {
            return;
        }
        let sent = request.json().unwrap_or_default();
        let object = response.value().unwrap_or_default();
        let (chosen, real) = (meta(&sent, "uid"), meta(&object, "uid"));
        if !chosen.is_empty() && !real.is_empty() {
            let time = Some(sent["metadata"]["creationTimestamp"].clone()).filter(Value::is_string);
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            known.shown.insert(real.to_owned(), (chosen.to_owned(), time));
        }
    }
}

impl Middleware for Uids {
    fn handle<'a>(&'a self, mut request: Request, next: Next<'a>) -> BoxFuture<'a, Response> {
        async move {
            uncompressed(&mut request);
            self.restore(&mut request);
            let mut response = next.send(request.clone()).await;
            if matches!(self.source, Source::Client) {
                self.remember(&request, &response);
            }
            let (source, known) = (self.source, self.known.clone());
            edit_objects(&request, &mut response, move |object| {
                known.lock().unwrap_or_else(PoisonError::into_inner).show(source, object);
            });
            response
        }
        .boxed()
    }
}

fn owners(object: &mut Value) -> impl Iterator<Item = &mut Value> {
    let owners = object.pointer_mut("/metadata/ownerReferences").and_then(Value::as_array_mut);
    owners.into_iter().flatten()
}

/// A uid that is the same for the same texts.
fn hash(texts: &[&str]) -> String {
    let mut hasher = DefaultHasher::new();
    texts.hash(&mut hasher);
    let hash = format!("{:016x}", hasher.finish());
    format!("{}-{}-4{}-8000-000000000000", &hash[..8], &hash[8..12], &hash[13..16])
}

/// Writes uids without dashes in responses, and accepts them in requests.
async fn without_dashes(mut request: Request, next: Next<'_>) -> Response {
    uncompressed(&mut request);
    rewrite(&mut request, |body| {
        edit_uids(body, &|uid| {
            let dashed = uid.len() == 32 && uid.bytes().all(|byte| byte.is_ascii_hexdigit());
            dashed.then(|| {
                format!(
                    "{}-{}-{}-{}-{}",
                    &uid[..8],
                    &uid[8..12],
                    &uid[12..16],
                    &uid[16..20],
                    &uid[20..]
                )
            })
        });
    });
    let mut response = next.send(request.clone()).await;
    let edit = |_: &Request, document: &mut Value| {
        edit_uids(document, &|uid| (uid.len() == 36).then(|| uid.replace('-', "")));
    };
    edit_documents(&request, &mut response, Arc::new(edit));
    response
}

/// Edits every field with the name uid.
fn edit_uids(value: &mut Value, edit: &dyn Fn(&str) -> Option<String>) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| edit_uids(item, edit)),
        Value::Object(fields) => {
            for (name, field) in fields {
                match field.as_str().and_then(edit) {
                    Some(uid) if name == "uid" => *field = json!(uid),
                    _ => edit_uids(field, edit),
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_shown_and_restored_with_its_object() {
        let mut known = Known::default();
        let mut owner = json!({ "metadata": { "name": "a", "namespace": "n", "uid": "real" } });
        known.show(Source::Name, &mut owner);
        let shown = meta(&owner, "uid").to_owned();
        let reference =
            |uid: &str| json!({ "metadata": { "ownerReferences": [{ "name": "a", "uid": uid }] } });
        let mut body = reference(&shown);
        known.restore(&mut body);
        assert_eq!(body, reference("real"));
        known.restore(&mut owner);
        assert_eq!(owner["metadata"].get("uid"), None);
    }

    #[test]
    fn dashes_are_removed_from_uids_alone() {
        let uid = "01234567-89ab-4cde-8f01-23456789abcd";
        let mut object = json!({ "metadata": { "uid": uid, "name": uid } });
        edit_uids(&mut object, &|uid| (uid.len() == 36).then(|| uid.replace('-', "")));
        assert_eq!(object["metadata"]["uid"], "0123456789ab4cde8f0123456789abcd");
        assert_eq!(object["metadata"]["name"], uid);
    }
}
