//! Reads `types.go`: JSON names, pointers, `omitempty`, and enumerations.

use std::collections::{BTreeMap, BTreeSet};

/// The declarations of a package.
#[derive(Debug, Default)]
pub(crate) struct Package {
    /// The structures by name.
    pub(crate) structs: BTreeMap<String, Vec<Field>>,
    /// The values of the types that are marked as enumerations.
    pub(crate) enums: BTreeMap<String, BTreeSet<String>>,
    /// The values of all string constants by name.
    pub(crate) constants: BTreeMap<String, String>,
    /// Constants that are converted from others, such as `A = Color(other.B)`: type and constant.
    pub(crate) conversions: Vec<(String, String)>,
    /// The names of types that are lists, such as `type Verbs []string`.
    pub(crate) lists: BTreeSet<String>,
    /// The imported packages by their name in the file.
    pub(crate) imports: BTreeMap<String, String>,
}

/// A field of a structure.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "they are independent facts of a field")]
pub(crate) struct Field {
    /// The type without `*`, `[]` and `map[...]`.
    pub(crate) ty: String,
    pub(crate) pointer: bool,
    /// A list or a map.
    pub(crate) collection: bool,
    /// The name in JSON. It is empty for an inlined structure, and if there is no tag.
    pub(crate) json: String,
    pub(crate) omit_empty: bool,
    pub(crate) omit_zero: bool,
    /// The fields of the structure appear in its place in JSON.
    pub(crate) inline: bool,
    /// The number in protobuf, if the field has one.
    pub(crate) number: Option<u32>,
}

/// Adds the declarations of a file.
pub(crate) fn parse(text: &str, package: &mut Package) {
    let mut constants: Vec<(String, String)> = Vec::new();
    let mut marked = BTreeSet::new();
    let (mut is_enum, mut current) = (false, None);
    for line in text.lines() {
        let code = line.trim();
        if let Some(comment) = code.strip_prefix("//") {
            is_enum |= comment.trim() == "+enum";
            continue;
        }
        if let Some(rest) = line.strip_prefix("type ") {
            let mut words = rest.split_whitespace();
            let (name, ty) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            if ty.starts_with("struct") {
                package.structs.insert(name.to_owned(), Vec::new());
                current = (!rest.ends_with('}')).then(|| name.to_owned());
            } else if ty.starts_with("[]") {
                package.lists.insert(name.to_owned());
            } else if is_enum {
                marked.insert(name.to_owned());
            }
        } else if line == "}" {
            current = None;
        } else if let Some(fields) = current.as_ref().and_then(|it| package.structs.get_mut(it)) {
            fields.extend(field(code));
        } else if let Some((name, path)) = import(code) {
            package.imports.insert(name, path);
        } else {
            if let Some((name, ty, value)) = constant(code) {
                package.constants.insert(name, value.clone());
                constants.push((ty, value));
            }
            package.conversions.extend(conversion(code));
        }
        if !code.is_empty() {
            is_enum = false;
        }
    }
    for name in marked {
        let own = constants.iter().filter(|(ty, _)| *ty == name);
        let values = own.map(|(_, value)| value.clone()).collect();
        package.enums.insert(name, values);
    }
}

/// Parses `Name *Type` and its tags in backquotes, or an embedded `Type` with tags.
fn field(code: &str) -> Option<Field> {
    let (declaration, tags) = code.split_once('`')?;
    let mut words = declaration.split_whitespace();
    let first = words.next()?;
    let mut ty = words.next().unwrap_or(first);
    let pointer = ty.starts_with('*');
    let mut collection = false;
    loop {
        let inner = ty.strip_prefix('*').or_else(|| {
            let is_list = ty.starts_with("[]") || ty.starts_with("map[");
            collection |= is_list;
            ty.split_once(']').filter(|_| is_list).map(|(_, inner)| inner)
        });
        let Some(inner) = inner else { break };
        ty = inner;
    }
    let tags = tags.trim_end_matches('`');
    let json = tag(tags, "json").unwrap_or_default();
    let mut json = json.split(',');
    let name = json.next().unwrap_or_default().to_owned();
    let options: Vec<_> = json.collect();
    let number = tag(tags, "protobuf").and_then(|tag| tag.split(',').nth(1)?.parse().ok());
    Some(Field {
        ty: ty.to_owned(),
        pointer,
        collection,
        json: name,
        omit_empty: options.contains(&"omitempty"),
        omit_zero: options.contains(&"omitzero"),
        inline: options.contains(&"inline"),
        number,
    })
}

/// Returns the text of a tag: `a` of `json:"a" protobuf:"b"`.
fn tag<'t>(tags: &'t str, name: &str) -> Option<&'t str> {
    let (_, rest) = tags.split_once(&format!("{name}:\""))?;
    rest.split('"').next()
}

/// Parses `name "path"` in a list of imports.
fn import(code: &str) -> Option<(String, String)> {
    let (name, path) = code.strip_suffix('"')?.split_once('"')?;
    let is_path = path.contains('/') && !code.contains('=');
    let last = path.rsplit('/').next()?;
    let name = if name.trim().is_empty() { last } else { name.trim() };
    is_path.then(|| (name.to_owned(), path.to_owned()))
}

/// Parses `Name Type = "value"` or `Name = Type("value")`, also after `const`.
fn constant(code: &str) -> Option<(String, String, String)> {
    let code = code.strip_prefix("const ").unwrap_or(code);
    let (declaration, value) = code.split_once('=')?;
    let (conversion, value) = value.split_once('"')?;
    let mut words = declaration.split_whitespace();
    let name = words.next()?;
    let ty = words.next().or(conversion.trim().strip_suffix('('))?;
    let value = value.split('"').next()?;
    Some((name.to_owned(), ty.to_owned(), value.to_owned()))
}

/// Parses `Name = Type(other.Constant)`.
fn conversion(code: &str) -> Option<(String, String)> {
    let (ty, constant) = code.split_once(" = ")?.1.strip_suffix(')')?.split_once('(')?;
    (!constant.contains('"')).then(|| (ty.trim().to_owned(), constant.to_owned()))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn parsed(text: &str) -> Package {
        let mut package = Package::default();
        parse(text, &mut package);
        package
    }

    #[test]
    fn declarations_are_found() {
        let package = parsed(
            "import (
\tmetav1 \"k8s.io/apimachinery/pkg/apis/meta/v1\"
\t\"k8s.io/api/core/v1\"
)
// +enum
type Color string

const (
\t// The first one.
\tRed Color = \"Red\"
\tBlue Color = \"Blue\" // A comment.
\tGreen = Color(\"Green\")
\tGrey = Color(v1.Dark)
\tOther Size = \"Big\"
)

type Size string

type Verbs []string

type Thing struct {
\tmetav1.TypeMeta `json:\",inline\"`
\t// Not a field.
\tSize *Size `json:\"size,omitempty\" protobuf:\"bytes,3,opt,name=size\"`
}
",
        );
        let colors: Vec<_> = package.enums["Color"].iter().map(String::as_str).collect();
        assert_eq!(colors, ["Blue", "Green", "Red"]);
        assert_eq!(package.conversions, [("Color".to_owned(), "v1.Dark".to_owned())]);
        assert_eq!(package.constants["Other"], "Big");
        assert!(!package.enums.contains_key("Size") && package.lists.contains("Verbs"));
        assert_eq!(package.imports["metav1"], "k8s.io/apimachinery/pkg/apis/meta/v1");
        assert_eq!(package.imports["v1"], "k8s.io/api/core/v1");
        let fields = &package.structs["Thing"];
        assert_eq!((&*fields[0].ty, &*fields[0].json), ("metav1.TypeMeta", ""));
        assert_eq!((fields[1].number, fields[1].pointer), (Some(3), true));
    }

    #[rstest]
    #[case("A string `json:\"a\"`", "string", false, false)]
    #[case("A []string `json:\"a\"`", "string", false, true)]
    #[case("A *v1.Time `json:\"a\"`", "v1.Time", true, false)]
    #[case("A map[Name][]B `json:\"a\"`", "B", false, true)]
    #[case("A []*B `json:\"a\"`", "B", false, true)]
    fn types_are_unwrapped(
        #[case] code: &str,
        #[case] ty: &str,
        #[case] pointer: bool,
        #[case] collection: bool,
    ) {
        let field = field(code).unwrap();
        assert_eq!((&*field.ty, field.pointer, field.collection), (ty, pointer, collection));
        assert_eq!((&*field.json, field.omit_empty), ("a", false));
    }
}
