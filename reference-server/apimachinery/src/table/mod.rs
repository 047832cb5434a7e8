//! Tables: objects as rows of cells. Clients use them to show objects of any kind.

pub mod column;
mod duration;
mod jsonpath;

use jiff::Timestamp;
use serde_json::{Value, json};

pub use column::{Cell, Column};
pub use duration::human_duration;
pub use jsonpath::{JsonPath, JsonPathError};

/// The object that each row contains: the query parameter `includeObject`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IncludeObject {
    /// Nothing.
    None,
    /// The metadata of the object.
    #[default]
    Metadata,
    /// The object.
    Object,
}

/// An invalid value of `includeObject` (400, reason `BadRequest`).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "Unable to convert to Table as requested: includeObject: Invalid value: {0:?}: must be \
     'Metadata', 'Object', 'None', or empty"
)]
pub struct UnknownInclude(String);

impl IncludeObject {
    /// Parses the query parameter.
    pub fn parse(text: &str) -> Result<Self, UnknownInclude> {
        match text {
            "" | "Metadata" => Ok(Self::Metadata),
            "Object" => Ok(Self::Object),
            "None" => Ok(Self::None),
            other => Err(UnknownInclude(other.to_owned())),
        }
    }
}

/// The parameters of a table for one resource.
#[derive(Clone, Copy, Debug)]
pub struct View<'c> {
    /// The columns after `Name`.
    pub columns: &'c [Column],
    /// The version of the table itself.
    pub version: MetaVersion,
    /// The object that each row contains.
    pub include: IncludeObject,
    /// The current time, from which ages are computed.
    pub now: Timestamp,
}

impl View<'_> {
    /// Renders objects as a table. `metadata` is that of the list, or that of the object for a
    /// single one.
    pub fn render<'o>(
        &self,
        metadata: &Value,
        objects: impl IntoIterator<Item = &'o Value>,
    ) -> Value {
        let makers: Vec<_> = self.columns.iter().map(CellMaker::new).collect();
        let rows: Vec<_> = objects.into_iter().map(|object| self.row(&makers, object)).collect();
        json!({
            "kind": "Table",
            "apiVersion": self.version.api_version(),
            "metadata": metadata,
            "columnDefinitions": self.column_definitions(),
            "rows": rows,
        })
    }

    fn column_definitions(&self) -> Vec<Value> {
        let name = json!({
            "name": "Name", "type": "string", "format": "name", "priority": 0,
            "description": "Name of the object, unique among its kind in its namespace.",
        });
        let definition = |column: &Column| {
            json!({
                "name": column.name,
                "type": column.kind,
                "format": column.format,
                "description": column.description,
                "priority": column.priority,
            })
        };
        let first = (!self.has_own_name()).then_some(name);
        first.into_iter().chain(self.columns.iter().map(definition)).collect()
    }

    /// Reports whether the type has a column for the name. Other tables begin with the name.
    fn has_own_name(&self) -> bool {
        self.columns.iter().any(|column| column.format == "name" && column.name == "Name")
    }

    fn row(&self, makers: &[CellMaker<'_>], object: &Value) -> Value {
        let mut cells = Vec::new();
        if !self.has_own_name() {
            cells.push(object.pointer("/metadata/name").cloned().unwrap_or_default());
        }
        cells.extend(makers.iter().map(|maker| maker.cell(object, self.now)));
        let object = match self.include {
            IncludeObject::None => Value::Null,
            IncludeObject::Object => object.clone(),
            IncludeObject::Metadata => json!({
                "kind": "PartialObjectMetadata",
                "apiVersion": self.version.api_version(),
                "metadata": object["metadata"],
            }),
        };
        json!({"cells": cells, "object": object})
    }
}

/// The text of an empty cell.
const NONE: &str = "<none>";

/// A column with its parsed path.
struct CellMaker<'c> {
    column: &'c Column,
    path: Option<JsonPath>,
}

impl<'c> CellMaker<'c> {
    fn new(column: &'c Column) -> Self {
        let path = match &column.cell {
            // The server rejects a CRD with an invalid path on create.
            Cell::JsonPath(path) => JsonPath::parse(path).ok(),
            _ => None,
        };
        Self { column, path }
    }

    fn cell(&self, object: &Value, now: Timestamp) -> Value {
        match &self.column.cell {
            Cell::Computed(make) => make(object),
            Cell::Age(pointer) => match object.pointer(pointer).and_then(Value::as_str) {
                Some(time) => age(time, now),
                None => "<unknown>".into(),
            },
            Cell::AgeOf(pointers) => {
                let mut times =
                    pointers.iter().filter_map(|pointer| object.pointer(pointer)?.as_str());
                times.next().map_or_else(|| "<unknown>".into(), |time| age(time, now))
            }
            Cell::Pointer(pointer) => match object.pointer(pointer) {
                None | Some(Value::Null) => NONE.into(),
                Some(value) => scalar(value),
            },
            Cell::JsonPath(_) => {
                let found = self.path.as_ref().and_then(|path| path.first(object));
                found.map_or(Value::Null, |value| self.typed(value, now))
            }
        }
    }

    /// Returns the value if it has the type of the column. Other values leave the cell empty.
    fn typed(&self, value: &Value, now: Timestamp) -> Value {
        match (&*self.column.kind, value) {
            (_, Value::Null) => Value::Null,
            ("integer", Value::Number(number)) => match number.as_f64() {
                Some(double) if number.is_f64() => whole(double),
                _ => value.clone(),
            },
            ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => value.clone(),
            ("string", value) => {
                scalar(value).as_str().map_or_else(|| value.to_string().into(), Value::from)
            }
            ("date", Value::String(time)) => age(time, now),
            _ => Value::Null,
        }
    }
}

/// Returns lists and objects as JSON text.
fn scalar(value: &Value) -> Value {
    if value.is_array() || value.is_object() { value.to_string().into() } else { value.clone() }
}

/// Returns the integer part of a double, if it fits into an integer.
fn whole(double: f64) -> Value {
    format!("{:.0}", double.trunc()).parse::<i64>().map_or(Value::Null, Value::from)
}

fn age(time: &str, now: Timestamp) -> Value {
    match time.parse::<Timestamp>() {
        Ok(time) => human_duration(now.as_second() - time.as_second()).into(),
        Err(_) => "<invalid>".into(),
    }
}

/// A version of the group `meta.k8s.io`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetaVersion {
    /// `v1`
    V1,
    /// `v1beta1`
    V1Beta1,
}

impl MetaVersion {
    /// Returns the `apiVersion` of objects of this version.
    pub const fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "meta.k8s.io/v1",
            Self::V1Beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &'static str, kind: &'static str, cell: Cell) -> Column {
        let (name, kind) = (name.into(), kind.into());
        Column { name, kind, format: "".into(), description: "".into(), priority: 0, cell }
    }

    fn table(columns: &[Column], include: IncludeObject) -> Value {
        let object = json!({
            "kind": "Widget",
            "metadata": {"name": "w", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"size": 3, "ratio": 2.0, "tags": ["a"], "on": true},
        });
        let now = "2026-01-01T01:30:00Z".parse().unwrap();
        let view = View { columns, version: MetaVersion::V1, include, now };
        view.render(&json!({"resourceVersion": "7"}), [&object])
    }

    fn cells(columns: &[Column]) -> Value {
        table(columns, IncludeObject::None)["rows"][0]["cells"].clone()
    }

    #[test]
    fn a_table_has_a_definition_and_a_cell_per_column() {
        let columns = [column("Age", "string", Cell::Age("/metadata/creationTimestamp"))];
        let shown = table(&columns, IncludeObject::Metadata);
        assert_eq!(
            (&shown["kind"], &shown["apiVersion"]),
            (&json!("Table"), &json!("meta.k8s.io/v1"))
        );
        assert_eq!(shown["metadata"]["resourceVersion"], "7");
        assert_eq!(shown["columnDefinitions"][0]["format"], "name");
        assert_eq!(shown["columnDefinitions"][1]["name"], "Age");
        assert_eq!(shown["rows"][0]["cells"], json!(["w", "90m"]));
        assert_eq!(shown["rows"][0]["object"]["kind"], "PartialObjectMetadata");
        assert_eq!(shown["rows"][0]["object"].get("spec"), None);
    }

    #[test]
    fn built_in_columns_show_placeholders_for_missing_values() {
        let columns = [
            column("Size", "integer", Cell::Pointer("/spec/size")),
            column("Tags", "string", Cell::Pointer("/spec/tags")),
            column("None", "string", Cell::Pointer("/spec/none")),
            column("Unknown", "string", Cell::Age("/spec/none")),
            column("First", "string", Cell::AgeOf(&["/spec/none", "/metadata/creationTimestamp"])),
            column("Computed", "string", Cell::Computed(|object| object["kind"].clone())),
        ];
        assert_eq!(
            cells(&columns),
            json!(["w", 3, "[\"a\"]", "<none>", "<unknown>", "90m", "Widget"])
        );
    }

    #[rstest::rstest]
    #[case("integer", ".spec.size", json!(3))]
    #[case("integer", ".spec.ratio", json!(2))]
    #[case("integer", ".spec.on", json!(null))]
    #[case("number", ".spec.ratio", json!(2.0))]
    #[case("boolean", ".spec.on", json!(true))]
    #[case("string", ".spec.size", json!("3"))]
    #[case("string", ".spec.tags", json!("[\"a\"]"))]
    #[case("string", ".kind", json!("Widget"))]
    #[case("string", ".spec.none", json!(null))]
    #[case("date", ".metadata.creationTimestamp", json!("90m"))]
    #[case("date", ".kind", json!("<invalid>"))]
    fn printer_columns_convert_to_their_type(
        #[case] kind: &'static str,
        #[case] path: &str,
        #[case] expected: Value,
    ) {
        let columns = [column("X", kind, Cell::JsonPath(path.to_owned()))];
        assert_eq!(cells(&columns)[1], expected);
    }

    #[test]
    fn unknown_values_of_include_object_are_rejected() {
        assert_eq!(IncludeObject::parse(""), Ok(IncludeObject::Metadata));
        assert_eq!(IncludeObject::parse("None"), Ok(IncludeObject::None));
        assert!(
            IncludeObject::parse("none")
                .unwrap_err()
                .to_string()
                .contains("Invalid value: \"none\"")
        );
        assert_eq!(table(&[], IncludeObject::None)["rows"][0]["object"], json!(null));
        assert_eq!(table(&[], IncludeObject::Object)["rows"][0]["object"]["spec"]["size"], 3);
    }
}
