//! The options in the query of a request.

use serde_json::json;

use kubeproof_apimachinery::request::Query;
use kubeproof_apimachinery::schema::FieldError;
use kubeproof_apimachinery::status::ApiError;

/// The treatment of unknown and duplicate fields of a body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    #[default]
    Warn,
    Strict,
}

/// The common options of POST, PUT and PATCH.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WriteOptions {
    pub(crate) dry_run: bool,
    pub(crate) validation: FieldValidation,
}

/// The longest name of a field manager.
const MAX_FIELD_MANAGER: usize = 128;

impl WriteOptions {
    /// Parses the options. Error messages contain `kind`, for example `CreateOptions`.
    pub(crate) fn parse(query: &Query, kind: &str) -> Result<Self, ApiError> {
        let mut errors = Vec::new();
        if kind == "PatchOptions" && query.get("force").is_some() {
            errors.push(FieldError::forbidden("force", "may not be specified for non-apply patch"));
        }
        Self::read(query, kind, errors)
    }

    /// Parses the options of server-side apply, which needs a field manager.
    pub(crate) fn of_apply(query: &Query) -> Result<Self, ApiError> {
        let mut errors = Vec::new();
        if query.text("fieldManager").is_none() {
            errors.push(FieldError::required("fieldManager", "is required for apply patch"));
        }
        Self::read(query, "PatchOptions", errors)
    }

    fn read(query: &Query, kind: &str, mut errors: Vec<FieldError>) -> Result<Self, ApiError> {
        let dry_run = dry_run(query.all("dryRun"), &mut errors);
        let validation = match query.get("fieldValidation") {
            None | Some("") => FieldValidation::default(),
            Some("Ignore") => FieldValidation::Ignore,
            Some("Warn") => FieldValidation::Warn,
            Some("Strict") => FieldValidation::Strict,
            Some(other) => {
                let supported = ["".into(), "Ignore".into(), "Strict".into(), "Warn".into()];
                errors.push(FieldError::not_supported(
                    "fieldValidation",
                    &other.into(),
                    &supported,
                ));
                FieldValidation::default()
            }
        };
        if let Some(manager) = query.text("fieldManager") {
            if manager.len() > MAX_FIELD_MANAGER {
                errors.push(FieldError::too_long("fieldManager", MAX_FIELD_MANAGER as u64));
            } else if manager.chars().any(char::is_control) {
                let why = "should contain only printable characters";
                errors.push(FieldError::invalid("fieldManager", &manager.into(), why));
            }
        }
        if errors.is_empty() {
            Ok(Self { dry_run, validation })
        } else {
            Err(ApiError::invalid_options(kind, &errors))
        }
    }
}

/// Returns whether any value requests a dry run. Values other than `All` are errors.
pub(crate) fn dry_run<'a>(
    values: impl Iterator<Item = &'a str>,
    errors: &mut Vec<FieldError>,
) -> bool {
    let values: Vec<&str> = values.collect();
    if values.iter().any(|value| *value != "All") {
        errors.push(FieldError::not_supported("dryRun", &json!(values), &["All".into()]));
    }
    !values.is_empty()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("UpdateOptions", "force=true".to_owned(), true)]
    #[case("PatchOptions", "force=true".to_owned(), false)]
    #[case("PatchOptions", "force=".to_owned(), false)]
    #[case("PatchOptions", "fieldManager=me".to_owned(), true)]
    #[case("PatchOptions", format!("fieldManager={}", "m".repeat(128)), true)]
    #[case("PatchOptions", format!("fieldManager={}", "m".repeat(129)), false)]
    #[case("PatchOptions", "fieldManager=a%07".to_owned(), false)]
    fn invalid_options_are_rejected(
        #[case] kind: &str,
        #[case] query: String,
        #[case] accepted: bool,
    ) {
        assert_eq!(WriteOptions::parse(&Query::parse(&query), kind).is_ok(), accepted);
    }

    #[rstest]
    #[case("", false)]
    #[case("fieldManager=", false)]
    #[case("force=true", false)]
    #[case("fieldManager=me&force=true", true)]
    fn who_applies_has_a_name_and_may_force(#[case] query: &str, #[case] accepted: bool) {
        assert_eq!(WriteOptions::of_apply(&Query::parse(query)).is_ok(), accepted);
    }
}
