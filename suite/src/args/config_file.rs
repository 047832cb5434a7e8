//! The configuration file of `kubeproof run`: TOML with the long names of options as keys.

use std::fs;
use std::path::Path;

use toml_edit::{Document, Item, Value};

use super::layers::Kind;
use crate::error::Error;

/// An option with its values. A flag has the value `true` or `false`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Setting {
    /// The long name without dashes.
    pub(super) name: String,
    pub(super) values: Vec<String>,
    /// The file or the variable.
    pub(super) source: String,
}

/// Reads a file. Relative paths in it start at its directory. `kind` returns the kind of an option,
/// or the nearest name.
pub(super) fn read(
    path: &Path,
    kind: impl Fn(&str) -> Result<Kind, Option<String>>,
) -> Result<Vec<Setting>, Error> {
    let text =
        fs::read_to_string(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
    let failed = |reason: String| Error::Config { path: path.to_owned(), reason };
    let document = Document::parse(text.as_str())
        .map_err(|error| failed(position(&text, &error) + error.message()))?;
    let directory = path.parent().unwrap_or(Path::new(""));
    let mut settings = Vec::new();
    for (name, item) in document.iter() {
        let kind = kind(name).map_err(|nearest| failed(unknown(name, nearest)))?;
        let values = values(item, kind, directory)
            .map_err(|expected| failed(format!("{name}: expected {expected}")))?;
        let source = path.display().to_string();
        settings.push(Setting { name: name.to_owned(), values, source });
    }
    Ok(settings)
}

fn unknown(name: &str, nearest: Option<String>) -> String {
    let nearest = nearest.map(|name| format!("; did you mean {name:?}?")).unwrap_or_default();
    format!("`kubeproof run` has no option {name:?}{nearest}")
}

/// Returns the values of an option, or what it expects.
fn values(item: &Item, kind: Kind, directory: &Path) -> Result<Vec<String>, &'static str> {
    let value = item.as_value().ok_or("a value, not a table")?;
    let one = |value: &Value, is_path: bool| {
        let text = match value {
            Value::String(text) => text.value().clone(),
            Value::Integer(number) => number.value().to_string(),
            _ => return Err("one value: a string or a number"),
        };
        Ok(if is_path { directory.join(text).to_string_lossy().into_owned() } else { text })
    };
    match kind {
        Kind::Flag => match value.as_bool() {
            Some(truth) => Ok(vec![truth.to_string()]),
            None => Err("true or false"),
        },
        Kind::Count => match value.as_integer() {
            Some(count @ 0..=9) => Ok(vec![count.to_string()]),
            _ => Err("a small number"),
        },
        Kind::Optional { .. } if value.as_bool() == Some(true) => Ok(vec!["true".to_owned()]),
        Kind::One { is_path } | Kind::Optional { is_path } => Ok(vec![one(value, is_path)?]),
        Kind::Many { is_path } => match value.as_array() {
            Some(all) => all.iter().map(|value| one(value, is_path)).collect(),
            None => Ok(vec![one(value, is_path)?]),
        },
    }
}

/// Returns `LINE:COLUMN: ` of a syntax error, counted from 1.
fn position(text: &str, error: &toml_edit::TomlError) -> String {
    let Some(before) = error.span().and_then(|span| text.get(..span.start)) else {
        return String::new();
    };
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    format!("{line}:{column}: ")
}
