//! Columns of tables: the default columns of `kubectl get`, and the additional ones of `-o wide`.

use std::borrow::Cow;

use serde_json::Value;

/// One column.
#[derive(Clone, Debug)]
pub struct Column {
    /// The heading.
    pub name: Cow<'static, str>,
    /// The JSON type of the cells: string, integer, number, boolean or date.
    pub kind: Cow<'static, str>,
    /// The format of the cells, such as `name`; usually empty.
    pub format: Cow<'static, str>,
    /// The description for users.
    pub description: Cow<'static, str>,
    /// 0 for columns that are always shown. Wide output also shows higher priorities.
    pub priority: i32,
    /// The source of the cells.
    pub cell: Cell,
}

/// The source of the cells of a column.
#[derive(Clone, Debug)]
pub enum Cell {
    /// The value at a JSON pointer; `<none>` if it is absent.
    Pointer(&'static str),
    /// The time since the timestamp at a JSON pointer; `<unknown>` if it is absent.
    Age(&'static str),
    /// The time since the first of these timestamps that exists; `<unknown>` if none does.
    AgeOf(&'static [&'static str]),
    /// The value at a `JSONPath`, for custom resources.
    JsonPath(String),
    /// The result of a function on the object.
    Computed(fn(&Value) -> Value),
}

/// Builds a column that is always shown.
pub fn column(name: &'static str, kind: &'static str, cell: Cell) -> Column {
    Column {
        name: name.into(),
        kind: kind.into(),
        format: "".into(),
        description: "".into(),
        priority: 0,
        cell,
    }
}

/// Builds a column of wide output.
pub fn wide(name: &'static str, kind: &'static str, cell: Cell) -> Column {
    Column { priority: 1, ..column(name, kind, cell) }
}

/// Builds the column for the age of the object.
pub fn age() -> Column {
    column("Age", "string", Cell::Age("/metadata/creationTimestamp"))
}

/// Returns the number of entries in the list or map at a pointer.
pub fn count(object: &Value, pointer: &str) -> usize {
    match object.pointer(pointer) {
        Some(Value::Array(items)) => items.len(),
        Some(Value::Object(fields)) => fields.len(),
        _ => 0,
    }
}
