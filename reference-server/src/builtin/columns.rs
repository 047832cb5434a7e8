//! Columns of tables: what `kubectl get` shows, and with `-o wide` the rest.

use std::borrow::Cow;

use serde_json::Value;

/// One column.
#[derive(Clone, Debug)]
pub struct Column {
    /// Heading.
    pub name: Cow<'static, str>,
    /// JSON type of the cells: string, integer, number, boolean, date.
    pub kind: Cow<'static, str>,
    /// Format of the cells, such as `name`; usually empty.
    pub format: Cow<'static, str>,
    /// Text for people.
    pub description: Cow<'static, str>,
    /// 0 is always shown, anything higher in wide output only.
    pub priority: i32,
    /// Where the cells come from.
    pub cell: Cell,
}

/// Where the cell of a column comes from.
#[derive(Clone, Debug)]
pub enum Cell {
    /// The value at a JSON pointer; nothing there shows as `<none>`.
    Pointer(&'static str),
    /// The time since the timestamp at a JSON pointer; nothing there shows as `<unknown>`.
    Age(&'static str),
    /// The time since the first of these timestamps that is there; `<unknown>` if there is none.
    AgeOf(&'static [&'static str]),
    /// The value of a `JSONPath`, as custom resources give it.
    JsonPath(String),
    /// What a function makes of the object.
    Computed(fn(&Value) -> Value),
}

/// A column that is always shown.
pub(super) fn column(name: &'static str, kind: &'static str, cell: Cell) -> Column {
    Column {
        name: name.into(),
        kind: kind.into(),
        format: "".into(),
        description: "".into(),
        priority: 0,
        cell,
    }
}

/// A column of wide output.
pub(super) fn wide(name: &'static str, kind: &'static str, cell: Cell) -> Column {
    Column { priority: 1, ..column(name, kind, cell) }
}

/// The age of the object.
pub(super) fn age() -> Column {
    column("Age", "string", Cell::Age("/metadata/creationTimestamp"))
}

/// The number of entries in the list or map at a pointer.
pub(super) fn count(object: &Value, pointer: &str) -> usize {
    match object.pointer(pointer) {
        Some(Value::Array(items)) => items.len(),
        Some(Value::Object(fields)) => fields.len(),
        _ => 0,
    }
}
