//! Reads `generated.proto`: the messages, their fields and numbers.

use std::collections::BTreeMap;

use super::source::published_name;

/// A message by its short name.
pub(crate) type Messages = BTreeMap<String, Vec<Field>>;

/// A field of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) number: u32,
    pub(crate) ty: String,
    pub(crate) shape: Shape,
}

/// How often a field occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Single,
    Repeated,
    /// A map from strings.
    Map,
}

/// Returns the messages of a file. The types are scalars or published names.
pub(crate) fn parse(text: &str, package: &str) -> Messages {
    let mut messages = Messages::new();
    let mut current = None;
    for line in text.lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix("message ") {
            let name = rest.trim_end_matches(['{', ' ']).to_owned();
            messages.insert(name.clone(), Vec::new());
            current = Some(name);
        } else if line == "}" {
            current = None;
        } else if let (Some(name), Some(field)) = (&current, field(line, package))
            && let Some(fields) = messages.get_mut(name)
        {
            fields.push(field);
        }
    }
    messages
}

fn field(line: &str, package: &str) -> Option<Field> {
    let (declaration, number) = line.strip_suffix(';')?.rsplit_once(" = ")?;
    let number = number.parse().ok()?;
    let (ty, name) = declaration.rsplit_once(' ')?;
    let (shape, ty) = if let Some(ty) = ty.strip_prefix("repeated ") {
        (Shape::Repeated, ty)
    } else if let Some(pair) = ty.strip_prefix("map<string, ") {
        (Shape::Map, pair.strip_suffix('>')?)
    } else {
        (Shape::Single, ty.strip_prefix("optional ").or(ty.strip_prefix("required "))?)
    };
    Some(Field { name: name.to_owned(), number, ty: type_name(ty, package), shape })
}

fn type_name(ty: &str, package: &str) -> String {
    const SCALARS: [&str; 6] = ["string", "bytes", "bool", "int32", "int64", "double"];
    if SCALARS.contains(&ty) {
        ty.to_owned()
    } else if ty.starts_with('.') {
        published_name(ty)
    } else {
        format!("{package}.{ty}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_fields() {
        let text = "
message Pod {
  // Not a field = 7;
  optional .k8s.io.apimachinery.pkg.apis.meta.v1.ObjectMeta metadata = 1;
  repeated Port ports = 2;
  map<string, bytes> data = 12;
}

message Empty {
}
";
        let messages = parse(text, "io.k8s.api.core.v1");
        let field = |name: &str, number, ty: &str, shape| Field {
            name: name.to_owned(),
            number,
            ty: ty.to_owned(),
            shape,
        };
        let meta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
        assert_eq!(
            messages["Pod"],
            [
                field("metadata", 1, meta, Shape::Single),
                field("ports", 2, "io.k8s.api.core.v1.Port", Shape::Repeated),
                field("data", 12, "bytes", Shape::Map),
            ]
        );
        assert_eq!(messages["Empty"], []);
    }
}
