//! Writes that change the values of the user instead of rejecting or keeping them.

use serde_json::{Map, Value};

use crate::behaviours::Fault;
use crate::behaviours::support::objects::everywhere;
use crate::behaviours::support::requests::{is_post_or_put, is_update, rewrite};
use crate::exchange::Request;
use crate::middleware::{Middleware, requests};

/// Fields with the number of a port. Some also accept the name of a port.
const PORTS: [&str; 5] = ["port", "containerPort", "hostPort", "nodePort", "targetPort"];
/// Enumerated values of built-in types, as the API spells them.
const ENUMERATED: [&str; 12] = [
    "Always",
    "OnFailure",
    "IfNotPresent",
    "ClusterFirst",
    "TCP",
    "UDP",
    "ClusterIP",
    "NodePort",
    "ClientIP",
    "Recreate",
    "RollingUpdate",
    "NoSchedule",
];
/// Letters with a combining accent, and the letters that look the same.
const COMPOSED: [(&str, &str); 3] =
    [("e\u{301}", "\u{e9}"), ("u\u{308}", "\u{fc}"), ("A\u{30a}", "\u{c5}")];

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    let edit: fn(&Request, &mut Value) = match fault {
        Fault::PortsClamped => |request, body| {
            if !request.target().group.contains("kubeproof") {
                fields(body, &PORTS, clamp);
            }
        },
        Fault::CountsClamped => |request, body| {
            if request.target().subresource.is_empty() {
                fields(body, &["minReadySeconds", "leaseTransitions", "minAvailable"], |count| {
                    if count.as_i64().is_some_and(|count| count < 0) {
                        *count = 0.into();
                    }
                });
            }
        },
        Fault::PatchedLabelsLowerCased => |request, body| {
            if is_update(request) && !is_post_or_put(request) {
                values(body, "/metadata/labels", str::to_lowercase);
            }
        },
        Fault::LettersComposed => |_, body| everywhere(body, &mut compose),
        Fault::LineEndsChanged => |_, body| {
            values(body, "/data", |text| text.replace("\r\n", "\n"));
        },
        Fault::MetadataNamesInAnyCase => |_, body| {
            if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
                for name in ["labels", "annotations", "finalizers", "generateName"] {
                    let other = metadata.keys().find(|key| key.eq_ignore_ascii_case(name)).cloned();
                    if let Some(value) = other.and_then(|other| metadata.remove(&other)) {
                        metadata.insert(name.to_owned(), value);
                    }
                }
            }
        },
        Fault::KindsInAnyCase => |_, body| {
            for kind in ["ConfigMap", "Pod", "Deployment", "Service", "Widget", "Gauge"] {
                if body["kind"].as_str().is_some_and(|given| given.eq_ignore_ascii_case(kind)) {
                    body["kind"] = kind.into();
                }
            }
        },
        Fault::EnumsInAnyCase => |_, body| everywhere(body, &mut |value| spell(value, false)),
        Fault::EnumsTrimmed => |_, body| everywhere(body, &mut |value| spell(value, true)),
        _ => texts(fault).or_else(|| maps(fault)).or_else(|| tidied(fault))?,
    };
    Some(requests(move |request| {
        if request.target().is_resource() && !request.body.is_empty() {
            let copy = request.clone();
            rewrite(request, |body| edit(&copy, body));
        }
    }))
}

/// Faults that change texts and lists of texts.
fn texts(fault: Fault) -> Option<fn(&Request, &mut Value)> {
    Some(match fault {
        Fault::EmptyTextsDropped => |_, body| {
            lists_of_texts(body, |list| list.retain(|text| text != ""));
        },
        Fault::RepeatedTextsDropped => |_, body| lists_of_texts(body, Vec::dedup),
        Fault::FinalizersSorted => |_, body| {
            let finalizers = body.pointer_mut("/metadata/finalizers");
            if let Some(finalizers) = finalizers.and_then(Value::as_array_mut) {
                finalizers.sort_by(|one, other| one.as_str().cmp(&other.as_str()));
            }
        },
        Fault::LongTextsCut => |_, body| {
            everywhere(body, &mut |value| {
                if let Value::String(text) = value
                    && text.len() > 4096
                {
                    *text = text.chars().take(4096).collect();
                }
            });
        },
        Fault::ControlCharactersDropped => |_, body| {
            each_text(body, |text| {
                let is_kept = |letter: &char| !letter.is_control() || "\t\r\n".contains(*letter);
                text.chars().filter(is_kept).collect()
            });
        },
        Fault::ByteOrderMarksDropped => {
            |_, body| each_text(body, |text| text.replace('\u{feff}', ""))
        }
        _ => return None,
    })
}

/// Faults that change the values of annotations and of data.
fn maps(fault: Fault) -> Option<fn(&Request, &mut Value)> {
    Some(match fault {
        Fault::TabsToSpaces => |_, body| values(body, "/data", |text| text.replace('\t', "  ")),
        Fault::LastLineEndsDropped => |_, body| {
            values(body, "/data", |text| text.strip_suffix('\n').unwrap_or(text).to_owned());
        },
        Fault::JsonTextsReformatted => |_, body| {
            values(body, "/metadata/annotations", |text| {
                let json = serde_json::from_str(text).ok().filter(|json: &Value| json.is_object());
                json.map_or_else(|| text.to_owned(), |json| json.to_string())
            });
        },
        Fault::NumericTextsNormalised => |_, body| {
            values(body, "/metadata/annotations", |text| match text.parse::<f64>() {
                Ok(number) if number.is_finite() => number.to_string(),
                _ => text.to_owned(),
            });
        },
        Fault::EntitiesEscaped => |_, body| {
            values(body, "/metadata/annotations", |text| {
                text.replace('&', "&amp;").replace('<', "&lt;")
            });
        },
        _ => return None,
    })
}

/// Faults that tidy the specification of a pod.
fn tidied(fault: Fault) -> Option<fn(&Request, &mut Value)> {
    Some(match fault {
        Fault::DollarsUnescaped => |_, body| {
            fields(body, &["args", "command", "value"], |value| {
                each_text(value, |text| text.replace("$$", "$"));
            });
        },
        Fault::FalseDropped => |request, body| {
            if !request.target().group.contains("kubeproof") {
                fields_without(body, |value| *value == false);
            }
        },
        Fault::EmptySelectorsDropped => |_, body| {
            everywhere(body, &mut |value| {
                if let Value::Object(fields) = value {
                    fields.retain(|name, value| {
                        !(name == "namespaceSelector" && *value == Value::Object(Map::new()))
                    });
                }
            });
        },
        Fault::MountPathsCleaned => |_, body| {
            fields(body, &["mountPath"], |path| {
                each_text(path, |text| match text.trim_end_matches('/') {
                    "" => text.to_owned(),
                    trimmed => trimmed.to_owned(),
                });
            });
        },
        _ => return None,
    })
}

/// Removes the fields with some values, at any depth.
fn fields_without(body: &mut Value, is_removed: fn(&Value) -> bool) {
    everywhere(body, &mut |value| {
        if let Value::Object(fields) = value {
            fields.retain(|_, value| !is_removed(value));
        }
    });
}

/// Edits all texts, at any depth.
fn each_text(body: &mut Value, edit: fn(&str) -> String) {
    everywhere(body, &mut |value| {
        if let Value::String(text) = value {
            *text = edit(text);
        }
    });
}

/// Edits all lists of texts, at any depth. Patches are no such lists.
fn lists_of_texts(body: &mut Value, edit: fn(&mut Vec<Value>)) {
    everywhere(body, &mut |value| {
        if let Value::Array(list) = value
            && list.iter().all(Value::is_string)
        {
            edit(list);
        }
    });
}

/// Edits all fields with these names, at any depth.
fn fields(body: &mut Value, names: &[&str], edit: fn(&mut Value)) {
    everywhere(body, &mut |value| {
        let fields = value.as_object_mut().into_iter().flat_map(Map::iter_mut);
        fields
            .filter(|(name, _)| names.contains(&name.as_str()))
            .for_each(|(_, field)| edit(field));
    });
}

/// Edits the texts of the map at a JSON pointer.
fn values(body: &mut Value, pointer: &str, edit: fn(&str) -> String) {
    let map = body.pointer_mut(pointer).and_then(Value::as_object_mut);
    for value in map.into_iter().flat_map(Map::values_mut) {
        if let Value::String(text) = value {
            *text = edit(text);
        }
    }
}

fn clamp(port: &mut Value) {
    if let Some(number) = port.as_i64() {
        *port = number.clamp(1, 65535).into();
    }
}

fn compose(value: &mut Value) {
    if let Value::String(text) = value {
        for (letters, letter) in COMPOSED {
            *text = text.replace(letters, letter);
        }
    }
}

/// Spells an enumerated value as the API does, if it differs in case, or in white space around it.
fn spell(value: &mut Value, trims: bool) {
    if let Value::String(text) = value {
        let known = ENUMERATED.iter().find(|known| {
            if trims { text.trim() == **known } else { text.eq_ignore_ascii_case(known) }
        });
        if let Some(known) = known {
            *text = (*known).to_owned();
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ports_are_clamped_at_any_depth_and_names_stay() {
        let mut body = json!({ "spec": { "ports": [{ "port": 70000, "targetPort": "http" }] } });
        fields(&mut body, &PORTS, clamp);
        assert_eq!(body, json!({ "spec": { "ports": [{ "port": 65535, "targetPort": "http" }] } }));
    }

    #[test]
    fn values_are_spelled_as_the_api_does() {
        for (given, trims, expected) in
            [("always", false, "Always"), (" TCP ", true, "TCP"), ("tcp", true, "tcp")]
        {
            let mut value = json!(given);
            spell(&mut value, trims);
            assert_eq!(value, json!(expected));
        }
    }
}
