//! Wrong tables.

use serde_json::Value;

use crate::exchange::Request;
use crate::middleware::{Middleware, documents, only, requests};
use crate::set::Fault;

const INCLUDE: &str = "includeObject";

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::TableRowsWithoutObject => always_include("None"),
        Fault::TableAlwaysFullObject => always_include("Object"),
        Fault::IncludeObjectIgnored => always_include("Metadata"),
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
        _ => return None,
    })
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
fn tables(edit: fn(&mut Value)) -> Box<dyn Middleware> {
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
