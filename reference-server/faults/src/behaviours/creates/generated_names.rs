//! Names that the server makes from `generateName`.

use http::StatusCode;
use serde_json::Value;

use super::new_objects::create_or_replace;
use crate::behaviours::Fault;
use crate::behaviours::support::objects::{meta, random_letters, remove_meta};
use crate::behaviours::support::requests::{created, is_create, rewrite};
use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, Next, around, objects, uncompressed};

/// The longest prefix of a generated name, and the length of its random end.
const MAX_PREFIX: usize = 58;
const SUFFIX: usize = 5;

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::GeneratedNamesCollide => around(|mut request, next| {
            Box::pin(async move {
                if with_one_letter(&mut request) {
                    return create_or_replace(request, next).await;
                }
                next.send(request).await
            })
        }),
        Fault::GeneratedNamesRunOut => around(|request, next| Box::pin(run_out(request, next))),
        Fault::NamesMadeUp => created(|_, object| {
            if meta(object, "name").is_empty() && meta(object, "generateName").is_empty() {
                set_name(object, random_letters(SUFFIX));
            }
        }),
        Fault::GenerateNameIgnored => created(|_, object| {
            remove_meta(object, "generateName");
        }),
        Fault::GenerateNameNotStored => objects(|request, object| {
            if !is_create(request) {
                remove_meta(object, "generateName");
            }
        }),
        Fault::GenerateNameWins => created(|_, object| {
            if !meta(object, "generateName").is_empty() {
                remove_meta(object, "name");
            }
        }),
        Fault::GenerateNameIgnoresPrefix => generated(|_| Some(random_letters(SUFFIX))),
        Fault::GenerateNameAsItIs => {
            generated(|prefix| Some(prefix.trim_end_matches(['-', '.']).to_owned()))
        }
        Fault::GenerateNameCutAtEnd => generated(|prefix| {
            let longest = MAX_PREFIX + SUFFIX;
            (prefix.len() > longest).then(|| prefix.chars().take(longest).collect())
        }),
        Fault::GenerateNamePrefixFixed => created(|_, object| {
            let prefix = meta(object, "generateName");
            if !prefix.is_empty() {
                object["metadata"]["generateName"] = valid_prefix(prefix).into();
            }
        }),
        _ => return None,
    })
}

/// Chooses the name where the server would generate one, unless `name` returns `None`.
fn generated(name: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Box<dyn Middleware> {
    created(move |_, object| {
        if let Some(name) = prefix_of(object).and_then(&name) {
            set_name(object, name);
        }
    })
}

/// The prefix of an object whose name the server generates.
fn prefix_of(object: &Value) -> Option<&str> {
    let prefix = meta(object, "generateName");
    (meta(object, "name").is_empty() && !prefix.is_empty()).then_some(prefix)
}

fn set_name(object: &mut Value, name: String) {
    if object["metadata"].is_object() || object["metadata"].is_null() {
        object["metadata"]["name"] = name.into();
    }
}

/// Names a new object with its prefix and one random letter. Returns whether there was a prefix.
fn with_one_letter(request: &mut Request) -> bool {
    let mut generates = false;
    if is_create(request) {
        rewrite(request, |object| {
            if let Some(prefix) = prefix_of(object) {
                let prefix: String = prefix.chars().take(MAX_PREFIX).collect();
                set_name(object, prefix + &random_letters(1));
                generates = true;
            }
        });
    }
    generates
}

/// Returns 500 when the only generated name is taken.
async fn run_out(mut request: Request, next: Next<'_>) -> Response {
    uncompressed(&mut request);
    let generates = with_one_letter(&mut request);
    let response = next.send(request).await;
    if generates && response.has_reason("AlreadyExists") {
        let message = "Internal error occurred: all generated names are taken";
        return Response::failure(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message);
    }
    response
}

/// A prefix with which a name can begin.
fn valid_prefix(prefix: &str) -> String {
    let valid = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let prefix: String = prefix.chars().map(valid).collect();
    prefix.trim_start_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use http::Method;
    use serde_json::json;

    use super::*;

    #[test]
    fn only_generated_names_get_one_letter() {
        for (metadata, expected) in [
            (json!({ "generateName": "a-" }), true),
            (json!({ "generateName": "a-", "name": "b" }), false),
        ] {
            let request = Request::new(Method::POST, "/api/v1/namespaces/a/pods");
            let mut request =
                request.with_json("application/json", &json!({ "metadata": metadata }));
            assert_eq!(with_one_letter(&mut request), expected);
            let name = meta(&request.json().expect("a body"), "name").len();
            assert_eq!(name, if expected { 3 } else { 1 });
        }
    }

    #[test]
    fn a_fixed_prefix_is_valid() {
        assert_eq!(valid_prefix("_Not Valid."), "not-valid-");
    }
}
