//! Reads a file into its raw type, or says everything that does not fit.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::diagnostic::Diagnostic;
use crate::syntax::{Source, yaml};

/// Reads a file.
pub(crate) fn read<T: DeserializeOwned + JsonSchema>(source: &Source) -> Result<T, Vec<Diagnostic>> {
    yaml::read(source).map_err(|error| {
        let diagnostic = Diagnostic::new(source, error.place, "yaml", error.message);
        vec![if diagnostic.message.starts_with("mapping values are not allowed") {
            diagnostic.help("text with `: ` in it stands in quotes, or below `key: >-`")
        } else {
            diagnostic
        }]
    })
}
