//! Reads schemas from files: custom resource definitions and OpenAPI v3 documents, in YAML or JSON.
//!
//! The parser keeps line and column, so that findings have a position. A file without a schema is
//! an error.

use std::fmt;

use kubeproof_cases::case::{Action, Case, Edition};
use kubeproof_cases::yaml::{Node, Span, documents};
use serde_json::Value;

use super::model::{CrdError, Published};
use super::rules::judge;
use crate::event::{CaseResult, CheckResult, FilePosition, Judgement};

/// A published API in a file.
#[derive(Debug)]
pub struct Manifest {
    file: String,
    /// JSON Pointer to the definition in its document.
    root: String,
    document: Node,
    published: Published,
}

/// A position in a file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FileLocation {
    /// The file name as given.
    pub file: String,
    /// Line and column, counted from 1.
    pub at: Option<(u64, u64)>,
}

/// Why a file cannot be judged.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// The file is neither YAML nor JSON.
    #[error("{0}: {1}")]
    Syntax(FileLocation, String),
    /// The definition is invalid.
    #[error("{0}: {1}")]
    Definition(FileLocation, CrdError),
    /// The file contains no schema.
    #[error(
        "{file} holds {found}; expected a CustomResourceDefinition of apiextensions.k8s.io/v1, or \
         an OpenAPI v3 document"
    )]
    Nothing {
        /// The file name as given.
        file: String,
        /// The contents, with lines.
        found: String,
    },
}

/// Finds the published APIs of a file.
pub fn read(file: &str, text: &str) -> Result<Vec<Manifest>, ManifestError> {
    let documents = documents(text).map_err(|error| {
        let at = error.span.map(line_and_column);
        ManifestError::Syntax(FileLocation { file: file.to_owned(), at }, error.message)
    })?;
    let mut found = Vec::new();
    let mut others = Vec::new();
    for document in documents {
        let value = document.to_value();
        if value["openapi"].is_string() {
            let mut published = Published::default();
            published.add_document(&value, &|_| false);
            published.finish();
            found.push(Manifest {
                file: file.to_owned(),
                root: String::new(),
                document,
                published,
            });
            continue;
        }
        let roots = roots(&value);
        if roots.is_empty() {
            others.push(format!("{} (line {})", kind(&value), document.span.line));
        }
        for root in roots {
            let definition = value.pointer(&root).unwrap_or(&Value::Null);
            let mut published = Published::default();
            published.add_crd(definition).map_err(|error| {
                let at = line_and_column(document.find(&root));
                ManifestError::Definition(
                    FileLocation { file: file.to_owned(), at: Some(at) },
                    error,
                )
            })?;
            found.push(Manifest {
                file: file.to_owned(),
                root,
                document: document.clone(),
                published,
            });
        }
    }
    if found.is_empty() {
        let found = if others.is_empty() { "nothing".to_owned() } else { others.join(", ") };
        return Err(ManifestError::Nothing { file: file.to_owned(), found });
    }
    Ok(found)
}

impl Manifest {
    /// Returns the subjects to judge: each served version of a custom resource, or the whole
    /// OpenAPI document.
    pub fn subjects(&self) -> Vec<String> {
        let resources: Vec<String> = self.published.custom_types().map(str::to_owned).collect();
        if resources.is_empty() { vec![self.file.clone()] } else { resources }
    }

    /// Judges a subject by the rules of a case. `None` if the case has other steps than schemas.
    pub fn judge(
        &self,
        case: &Case,
        subject: &str,
        edition: Edition,
        letter: bool,
    ) -> Option<CaseResult> {
        let mut checks: Vec<CheckResult> = Vec::new();
        for step in &case.steps {
            let Action::Schema(step) = &step.action else { return None };
            let view = match self.published.custom_types().next() {
                Some(_) => self.published.view_of_type(subject),
                None => self.published.view(step.of),
            };
            let asked = step.expect.iter().filter(|check| check.editions.contains(&edition));
            let locate = |pointer: &str| Some(self.position(pointer));
            checks.extend(asked.map(|check| judge(check, &view, letter, "schema", &locate)));
        }

        let result = CaseResult::bare(case, subject.to_owned(), Judgement::of(&checks, case.level));
        Some(CaseResult { checks, ..result })
    }

    fn position(&self, pointer: &str) -> FilePosition {
        let (line, column) =
            line_and_column(self.document.find(&format!("{}{pointer}", self.root)));
        FilePosition { file: self.file.clone(), line, column }
    }
}

/// Returns pointers to the custom resource definitions of a document, which may be a list.
fn roots(document: &Value) -> Vec<String> {
    if document["kind"] == "CustomResourceDefinition" {
        return vec![String::new()];
    }
    let items = document["items"].as_array().into_iter().flatten().enumerate();
    let of_list = document["kind"] == "CustomResourceDefinitionList";
    items
        .filter(|(_, item)| of_list || item["kind"] == "CustomResourceDefinition")
        .map(|(nth, _)| format!("/items/{nth}"))
        .collect()
}

fn line_and_column(span: Span) -> (u64, u64) {
    (span.line.into(), span.column.into())
}

/// Describes a document by its kind.
fn kind(document: &Value) -> String {
    match document["kind"].as_str() {
        Some(kind) => format!("a {kind}"),
        None if document["swagger"].is_string() => "an OpenAPI v2 document".to_owned(),
        None => "a document without a kind".to_owned(),
    }
}

impl fmt::Display for FileLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            Some((line, column)) => write!(f, "{}:{line}:{column}", self.file),
            None => f.write_str(&self.file),
        }
    }
}
