//! `kubeproof schema`: prints the JSON Schemas of files.

use std::io::Write;

use kubeproof_cases::{Catalogue, LoadError, schemas};
use kubeproof_reports::formats;

use super::write_json;
use crate::args::high::FileKind;
use crate::error::Error;
use crate::exit_code::Exit;

pub(super) fn schema(kind: FileKind, out: &mut dyn Write) -> Result<Exit, Error> {
    let [case, fragment, subject, requirements, faults, profiles, history] =
        schemas(&Catalogue::embedded().map_err(LoadError::from)?).map(|file| file.schema);
    let schema = match kind {
        FileKind::Case => case,
        FileKind::Fragment => fragment,
        FileKind::Subject => subject,
        FileKind::Requirements => requirements,
        FileKind::Faults => faults,
        FileKind::Profiles => profiles,
        FileKind::SchemaHistory => history,
        FileKind::Report => formats::schema(),
    };
    write_json(out, &schema)?;
    Ok(Exit::CONFORMANT)
}
