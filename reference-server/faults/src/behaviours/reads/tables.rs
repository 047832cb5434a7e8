//! Wrong tables.

use serde_json::Value;

use crate::behaviours::Fault;
use crate::behaviours::support::objects::{remove, remove_meta};
use crate::exchange::Request;
use crate::middleware::{Middleware, documents, only, requests};

const INCLUDE: &str = "includeObject";

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::TableRowsWithoutObject => always_include("None"),
        Fault::TableAlwaysFullObject => always_include("Object"),
        Fault::IncludeObjectIgnored => always_include("Metadata"),
        Fault::WatchIgnoresIncludeObject => only(Request::is_watch, always_include("Metadata")),
        Fault::TableWatchesWithoutColumns => {
            only(Request::is_watch, tables(|table| table["columnDefinitions"] = Value::Null))
        }
        Fault::TablesOfOneWithoutVersion => only(
            |request| !request.target().name.is_empty(),
            tables(|table| drop(remove_meta(table, "resourceVersion"))),
        ),
        Fault::TablesOfListsWithoutVersion => only(
            |request| request.target().name.is_empty() && !request.is_watch(),
            tables(|table| drop(remove_meta(table, "resourceVersion"))),
        ),
        Fault::DeletionsWithoutRows => only(
            Request::is_watch,
            documents(|_, event| {
                if event["type"] == "DELETED" && event["object"]["kind"] == "Table" {
                    event["object"]["rows"] = Value::Array(Vec::new());
                }
            }),
        ),
        Fault::TableCellsMissing => tables(|table| {
            for row in table["rows"].as_array_mut().into_iter().flatten() {
                if let Some(cells) = row["cells"].as_array_mut() {
                    cells.retain(|cell| !cell.is_null() && cell != "" && cell != "<none>");
                }
            }
        }),
        Fault::ColumnPrioritiesLost => tables(|table| {
            for column in table["columnDefinitions"].as_array_mut().into_iter().flatten() {
                column["priority"] = 0.into();
            }
        }),
        Fault::TableColumnsWithoutFormat => tables(|table| {
            for column in table["columnDefinitions"].as_array_mut().into_iter().flatten() {
                column["format"] = "".into();
            }
        }),
        Fault::TableRowsWithoutAnnotations => row_objects(is_list, "annotations"),
        Fault::TablePagesWithoutLabels => {
            row_objects(|request| request.query().get("continue").is_some(), "labels")
        }
        Fault::TableEventsWithoutOwners => row_objects(Request::is_watch, "ownerReferences"),
        Fault::TableEventsWithOtherCells => cells(Request::is_watch, |cells| drop(cells.pop())),
        Fault::TableNamesCut => cells(is_list, |cells| {
            if let Some(Value::String(name)) = cells.first_mut() {
                name.truncate(12);
            }
        }),
        Fault::TablesOfOneWithOtherCells => cells(
            |request| !request.target().name.is_empty(),
            |cells| cells.iter_mut().skip(1).for_each(|cell| *cell = Value::Null),
        ),
        _ => return custom_cells(fault),
    })
}

/// Faults in the cells of custom resources, and in tables without rows.
fn custom_cells(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::CustomCellsAreText => cells(is_custom, |cells| {
            for cell in cells.iter_mut().filter(|cell| !cell.is_string() && !cell.is_null()) {
                *cell = cell.to_string().into();
            }
        }),
        Fault::TableEventsWithoutVersion => {
            only(Request::is_watch, tables(|table| drop(remove_meta(table, "resourceVersion"))))
        }
        Fault::EmptyTablesWithoutRows => tables(|table| {
            if table["rows"].as_array().is_some_and(Vec::is_empty) {
                remove(table, "rows");
            }
        }),
        Fault::EmptyTablesWithoutColumns => tables(|table| {
            if table["rows"].as_array().is_some_and(Vec::is_empty) {
                table["columnDefinitions"] = Value::Array(Vec::new());
            }
        }),
        Fault::MissingCellsLeftOut => {
            cells(is_custom, |cells| cells.retain(|cell| !cell.is_null()))
        }
        Fault::MissingCellsAreUnknown => cells(is_custom, |cells| {
            for cell in cells.iter_mut().filter(|cell| cell.is_null()) {
                *cell = "<unknown>".into();
            }
        }),
        _ => return None,
    })
}

fn is_custom(request: &Request) -> bool {
    request.target().is_custom()
}

fn is_list(request: &Request) -> bool {
    request.target().name.is_empty() && !request.is_watch()
}

fn rows(table: &mut Value) -> impl Iterator<Item = &mut Value> {
    table["rows"].as_array_mut().into_iter().flatten()
}

/// Removes a field of the metadata from the rows of the tables that some requests get.
fn row_objects(applies: fn(&Request) -> bool, field: &'static str) -> Box<dyn Middleware> {
    let edit = move |table: &mut Value| {
        for row in rows(table) {
            if row["object"].is_object() {
                remove_meta(&mut row["object"], field);
            }
        }
    };
    only(applies, tables(edit))
}

/// Edits the cells of the tables that some requests get.
fn cells(applies: fn(&Request) -> bool, edit: fn(&mut Vec<Value>)) -> Box<dyn Middleware> {
    let edit = move |table: &mut Value| {
        rows(table).filter_map(|row| row["cells"].as_array_mut()).for_each(edit);
    };
    only(applies, tables(edit))
}

fn asks_for_table(request: &Request) -> bool {
    request.header("accept").contains("as=Table")
}

/// Replaces a valid `includeObject`. An invalid one stays, and the server rejects it.
fn always_include(value: &'static str) -> Box<dyn Middleware> {
    only(
        asks_for_table,
        requests(move |request| {
            let query = request.query();
            if matches!(query.get(INCLUDE), None | Some("" | "Metadata" | "Object" | "None")) {
                request.edit_query(|query| query.set(INCLUDE, value));
            }
        }),
    )
}

/// Edits every table, also those in the events of a watch.
fn tables(edit: impl Fn(&mut Value) + Send + Sync + 'static) -> Box<dyn Middleware> {
    only(
        asks_for_table,
        documents(move |request, document| {
            let table = if request.is_watch() { &mut document["object"] } else { document };
            if table["kind"] == "Table" {
                edit(table);
            }
        }),
    )
}
