//! Paths, queries, selectors and names that match although they differ in spelling.

use http::Method;
use serde_json::Value;

use crate::behaviours::Fault;
use crate::behaviours::support::requests::{is_update, rewrite};
use crate::exchange::Request;
use crate::middleware::{Middleware, requests};

/// The parameters of queries, as the API spells them.
const PARAMETERS: [&str; 9] = [
    "labelSelector",
    "fieldSelector",
    "limit",
    "continue",
    "watch",
    "dryRun",
    "fieldManager",
    "fieldValidation",
    "resourceVersion",
];

/// Parameters with enumerated values.
const OPTIONS: [(&str, &[&str]); 4] = [
    ("dryRun", &["All"]),
    ("fieldValidation", &["Strict", "Warn", "Ignore"]),
    ("propagationPolicy", &["Background", "Foreground", "Orphan"]),
    ("resourceVersionMatch", &["Exact", "NotOlderThan"]),
];

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    let edit = paths(fault).or_else(|| parameters(fault)).or_else(|| bodies(fault))?;
    // The query of a proxied request stays as the client encoded it.
    Some(requests(move |request| {
        if request.target().subresource != "proxy" {
            edit(request);
        }
    }))
}

/// Faults in what a path names.
fn paths(fault: Fault) -> Option<fn(&mut Request)> {
    Some(match fault {
        Fault::PathsNormalised => |request| request.path = normalised(&request.path),
        Fault::PathsInAnyCase => |request| request.path = in_lower_case(&request.path),
        Fault::PathsDecodedTwice => |request| request.path = request.path.replace("%25", "%"),
        Fault::WrittenNamesInAnyCase => |request| {
            let writes = is_update(request) || request.method == Method::DELETE;
            let target = request.target();
            if writes && !target.name.is_empty() {
                let name = target.name.to_lowercase();
                request.path = request.path.replace(&target.name, &name);
            }
        },
        Fault::ReadNamesInAnyCase => |request| {
            let target = request.target();
            if request.method == Method::GET && target.is_object() {
                request.path = request.path.replace(&target.name, &target.name.to_lowercase());
            }
        },
        Fault::NamespacesInAnyCase => |request| {
            let namespace = request.target().namespace;
            if !namespace.is_empty() {
                let (given, lower) =
                    (format!("/namespaces/{namespace}/"), namespace.to_lowercase());
                request.path = request.path.replace(&given, &format!("/namespaces/{lower}/"));
            }
        },
        Fault::SubresourcesInAnyCase => |request| {
            let subresource = request.target().subresource;
            if let Some(parent) = request.path.strip_suffix(&format!("/{subresource}"))
                && !subresource.is_empty()
            {
                request.path = format!("{parent}/{}", subresource.to_lowercase());
            }
        },
        _ => return None,
    })
}

/// Faults in parameters and selectors.
fn parameters(fault: Fault) -> Option<fn(&mut Request)> {
    Some(match fault {
        Fault::QueriesInAnyCase => |request| {
            request.edit_query(|query| {
                for name in PARAMETERS {
                    let lower = name.to_lowercase();
                    if lower != name
                        && let Some(value) = query.get(&lower).map(str::to_owned)
                    {
                        query.set(name, value);
                    }
                }
            });
        },
        Fault::PlusIsNoSpace => |request| {
            request.raw_query = request.raw_query.replace('+', "%2B");
        },
        Fault::OptionsInAnyCase => |request| {
            request.edit_query(|query| {
                for (name, values) in OPTIONS {
                    let given = query.get(name).unwrap_or_default().trim().to_owned();
                    let known = values.iter().find(|known| given.eq_ignore_ascii_case(known));
                    if let Some(known) = known {
                        query.set(name, *known);
                    }
                }
            });
        },
        Fault::LabelSelectorsInAnyCase => |request| selector(request, "labelSelector"),
        Fault::FieldSelectorsInAnyCase => |request| selector(request, "fieldSelector"),
        Fault::LabelKeysInAnyCase => |request| {
            request.edit_query(|query| {
                if let Some(given) = query.get("labelSelector").map(str::to_owned) {
                    query.set("labelSelector", with_lower_keys(&given));
                }
            });
        },
        Fault::LabelPrefixesIgnored => |request| {
            request.edit_query(|query| {
                if let Some(given) = query.get("labelSelector").map(str::to_owned) {
                    query.set("labelSelector", given.replace("example.com/", "kubeproof/"));
                }
            });
        },
        Fault::FieldSelectorValuesTrimmed => |request| {
            request.edit_query(|query| {
                if let Some(given) = query.get("fieldSelector").map(str::to_owned) {
                    let trimmed = given.split('=').map(str::trim).collect::<Vec<_>>().join("=");
                    query.set("fieldSelector", trimmed);
                }
            });
        },
        _ => return None,
    })
}

/// Faults in what a body refers to.
fn bodies(fault: Fault) -> Option<fn(&mut Request)> {
    Some(match fault {
        Fault::UidsInAnyCase => |request| {
            rewrite(request, |body| {
                for at in ["/preconditions/uid", "/metadata/uid"] {
                    if let Some(Value::String(uid)) = body.pointer_mut(at) {
                        *uid = uid.to_lowercase();
                    }
                }
            });
        },
        Fault::VersionsInAnyNotation => |request| {
            rewrite(request, |body| {
                if let Some(Value::String(version)) = body.pointer_mut("/metadata/resourceVersion")
                    && let Ok(number) = version.trim().parse::<u64>()
                {
                    *version = number.to_string();
                }
            });
        },
        _ => return None,
    })
}

/// Resolves `.`, `..` and empty segments, as a file system does.
fn normalised(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment.to_lowercase().replace("%2e", ".").as_str() {
            "" | "." => {}
            ".." => drop(kept.pop()),
            _ => kept.push(segment),
        }
    }
    let end = if path.len() > 1 && path.ends_with('/') { "/" } else { "" };
    format!("/{}{end}", kept.join("/"))
}

/// Lowers the case of the resource and of what is before it. Names keep theirs.
fn in_lower_case(path: &str) -> String {
    let lower = path.to_lowercase();
    let segments: Vec<&str> = path.split('/').collect();
    let lower: Vec<&str> = lower.split('/').collect();
    let start = match lower.get(1).copied() {
        Some("api") => 3,
        Some("apis") => 4,
        _ => return path.to_owned(),
    };
    let resource = if lower.get(start) == Some(&"namespaces") && lower.len() > start + 2 {
        start + 2
    } else {
        start
    };
    let folded = segments.iter().zip(&lower).enumerate().map(|(i, (given, lower))| {
        let name = i > resource || (resource != start && i == start + 1);
        if name { *given } else { *lower }
    });
    folded.collect::<Vec<_>>().join("/")
}

fn selector(request: &mut Request, name: &str) {
    request.edit_query(|query| {
        if let Some(value) = query.get(name).map(str::to_owned) {
            let folded: Vec<String> = value.split(',').map(folded).collect();
            query.set(name, folded.join(","));
        }
    });
}

/// Lowers the case of the value of a requirement, and keeps its key.
fn folded(requirement: &str) -> String {
    match requirement.rsplit_once('=') {
        Some((key, value)) => format!("{key}={}", value.to_lowercase()),
        None => requirement.to_owned(),
    }
}

/// Lowers the case of the keys of requirements for equality, and keeps their values.
fn with_lower_keys(selector: &str) -> String {
    let requirements = selector.split(',').map(|requirement| match requirement.split_once('=') {
        Some((key, value)) => format!("{}={value}", key.to_lowercase()),
        None => requirement.to_owned(),
    });
    requirements.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_resolved() {
        for (path, expected) in [
            ("/api/v1/namespaces/x/../y/pods", "/api/v1/namespaces/y/pods"),
            ("/api/v1//pods/", "/api/v1/pods/"),
            ("/api/%2E/v1/pods", "/api/v1/pods"),
        ] {
            assert_eq!(normalised(path), expected);
        }
    }

    #[test]
    fn only_names_keep_their_case() {
        for (path, expected) in [
            ("/API/V1/Namespaces/Mine/ConfigMaps/A", "/api/v1/namespaces/Mine/configmaps/A"),
            ("/apis/APPS/v1/Deployments", "/apis/apps/v1/deployments"),
            ("/api/v1/NODES/A", "/api/v1/nodes/A"),
            ("/healthZ", "/healthZ"),
        ] {
            assert_eq!(in_lower_case(path), expected);
        }
    }
}
