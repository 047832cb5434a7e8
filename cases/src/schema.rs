//! JSON Schemas of the files that people write, generated from the types that read them.
//!
//! They are committed under `cases/schema/`, so that editors complete case files; a test fails when they drift.

use serde_json::Value;

use crate::breakage::RawBreakage;
use crate::ledger::Requirement;
use crate::raw::RawCase;
use crate::rule::Exemption;
use crate::subject::RawSubjectDefinition;

/// The schema of one kind of file.
#[derive(Clone, Debug)]
pub struct FileSchema {
    /// As `case`, `subject`, `requirements`; the committed file is `<name>.schema.json`.
    pub name: &'static str,
    /// The document.
    pub schema: Value,
}

/// All schemas; that of case files comes first.
pub fn schemas() -> [FileSchema; 5] {
    [
        FileSchema { name: "case", schema: schemars::schema_for!(RawCase).to_value() },
        FileSchema { name: "subject", schema: schemars::schema_for!(RawSubjectDefinition).to_value() },
        FileSchema { name: "requirements", schema: schemars::schema_for!(Vec<Requirement>).to_value() },
        FileSchema { name: "faults", schema: schemars::schema_for!(RawBreakage).to_value() },
        FileSchema { name: "schema-history", schema: schemars::schema_for!(Vec<Exemption>).to_value() },
    ]
}
