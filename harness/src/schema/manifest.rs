//! Schemas in files: custom resource definitions and OpenAPI v3 documents, in YAML or JSON.
//!
//! A file is read into a tree that knows line and column of everything in it, so that a finding can be shown where it was
//! written. A file without anything to judge is an error: it was named for nothing.

use std::fmt;

use kubeproof_cases::case::{Case, Edition, Step};
use serde_json::Value;

use super::judge::judge;
use super::model::{CrdError, Published};
use super::tree::{self, Node};
use crate::event::{CaseResult, CheckResult, FilePosition};
use crate::run::{bare_result, verdict_of};

/// Something in a file that publishes an API.
#[derive(Debug)]
pub struct Manifest {
    file: String,
    /// Where in its document the definition stands: a JSON Pointer.
    root: String,
    document: Node,
    published: Published,
}

/// Where something stands in a file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Whereabouts {
    /// As it was named.
    pub file: String,
    /// Counted from 1; none where nobody knows.
    pub at: Option<(u64, u64)>,
}

/// Why a file cannot be judged.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// It is neither YAML nor JSON.
    #[error("{0}: {1}")]
    Syntax(Whereabouts, String),
    /// A definition is none that can be judged.
    #[error("{0}: {1}")]
    Definition(Whereabouts, CrdError),
    /// There is nothing to judge in it.
    #[error(
        "{file} holds {found}; expected a CustomResourceDefinition of apiextensions.k8s.io/v1, or an OpenAPI v3 document"
    )]
    Nothing {
        /// As it was named.
        file: String,
        /// What it holds instead, with lines.
        found: String,
    },
}

/// Finds what a file publishes.
pub fn read(file: &str, text: &str) -> Result<Vec<Manifest>, ManifestError> {
    let documents = tree::documents(text).map_err(|error| {
        let at = error.place;
        ManifestError::Syntax(Whereabouts { file: file.to_owned(), at }, error.message)
    })?;
    let mut found = Vec::new();
    let mut others = Vec::new();
    for document in documents {
        let value = document.to_value();
        if value["openapi"].is_string() {
            let mut published = Published::default();
            published.add_document(&value, &|_| false);
            published.finish();
            found.push(Manifest { file: file.to_owned(), root: String::new(), document, published });
            continue;
        }
        let roots = roots(&value);
        if roots.is_empty() {
            others.push(format!("{} (line {})", kind(&value), document.line));
        }
        for root in roots {
            let definition = value.pointer(&root).unwrap_or(&Value::Null);
            let mut published = Published::default();
            published.add_crd(definition).map_err(|error| {
                let at = document.find(&root);
                ManifestError::Definition(Whereabouts { file: file.to_owned(), at: Some(at) }, error)
            })?;
            found.push(Manifest { file: file.to_owned(), root, document: document.clone(), published });
        }
    }
    if found.is_empty() {
        let found = if others.is_empty() { "nothing".to_owned() } else { others.join(", ") };
        return Err(ManifestError::Nothing { file: file.to_owned(), found });
    }
    Ok(found)
}

impl Manifest {
    /// What is judged by itself: each served version of a custom resource, or a whole OpenAPI document.
    pub fn subjects(&self) -> Vec<String> {
        let resources: Vec<String> = self.published.custom_types().map(str::to_owned).collect();
        if resources.is_empty() { vec![self.file.clone()] } else { resources }
    }

    /// Holds a subject against the rules of a case under an edition; `None` if the case asks for more than schemas.
    pub fn judge(&self, case: &Case, subject: &str, edition: Edition, letter: bool) -> Option<CaseResult> {
        let mut checks: Vec<CheckResult> = Vec::new();
        for step in &case.steps {
            let Step::Schema(step) = step else { return None };
            let view = match self.published.custom_types().next() {
                Some(_) => self.published.view_of_type(subject),
                None => self.published.view(step.of),
            };
            let asked = step.expect.iter().filter(|check| check.editions.contains(&edition));
            let locate = |pointer: &str| Some(self.position(pointer));
            checks.extend(asked.map(|check| judge(check, &view, letter, "schema", &locate)));
        }
        let (verdict, reason) = verdict_of(&checks);
        Some(CaseResult { checks, ..bare_result(case, subject.to_owned(), verdict, reason) })
    }

    fn position(&self, pointer: &str) -> FilePosition {
        let (line, column) = self.document.find(&format!("{}{pointer}", self.root));
        FilePosition { file: self.file.clone(), line, column }
    }
}

/// The custom resource definitions of a document, which may be a list of them.
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

/// What a document says of itself.
fn kind(document: &Value) -> String {
    match document["kind"].as_str() {
        Some(kind) => format!("a {kind}"),
        None if document["swagger"].is_string() => "an OpenAPI v2 document".to_owned(),
        None => "a document without a kind".to_owned(),
    }
}

impl fmt::Display for Whereabouts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            Some((line, column)) => write!(f, "{}:{line}:{column}", self.file),
            None => f.write_str(&self.file),
        }
    }
}
