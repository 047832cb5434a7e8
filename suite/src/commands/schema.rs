//! `kubeproof schema`: JSON Schemas of what people and programs read and write.

use std::io::Write;

use kubeproof_cases::schema::schemas;

use super::write_json;
use crate::args::low;
use crate::error::Error;
use crate::exit_code::Exit;

/// Prints a schema.
pub(super) fn schema(schema: &low::Schema, out: &mut dyn Write) -> Result<Exit, Error> {
    let [case, subject, requirements, faults, history] = schemas().map(|file| file.schema);
    let schema = match schema.of {
        low::SchemaOf::Case => case,
        low::SchemaOf::Subject => subject,
        low::SchemaOf::Requirements => requirements,
        low::SchemaOf::Faults => faults,
        low::SchemaOf::SchemaHistory => history,
        low::SchemaOf::Report => kubeproof_reports::json::schema(),
    };
    write_json(out, &schema)?;
    Ok(Exit::CONFORMANT)
}
