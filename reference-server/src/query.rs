//! The query of a request, and the option sets that are read from it.

use percent_encoding::percent_decode_str;
use serde_json::json;

use crate::schema::FieldError;
use crate::status::ApiError;
use crate::{Fault, Faults};

/// The parameters of a request, decoded, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(text: &str) -> Self {
        let decode =
            |part: &str| percent_decode_str(&part.replace('+', " ")).decode_utf8_lossy().into_owned();
        let pairs = text.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(key), decode(value))
        });
        Self(pairs.collect())
    }

    /// The first value of a parameter.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.all(key).next()
    }

    /// The first value of a parameter; an empty one counts as absent.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.get(key).filter(|value| !value.is_empty())
    }

    /// Every value of a parameter.
    pub(crate) fn all(&self, key: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// A switch: present with any value but `0` and `false`.
    pub(crate) fn flag(&self, key: &str) -> bool {
        self.get(key).is_some_and(|value| value != "0" && !value.eq_ignore_ascii_case("false"))
    }

    /// A whole number.
    pub(crate) fn number(&self, key: &str) -> Result<Option<i64>, ApiError> {
        let Some(text) = self.text(key) else { return Ok(None) };
        text.parse().map(Some).map_err(|error| {
            ApiError::bad_request(format!(
                "parameter {key} is {text:?}, which is not a whole number: {error}"
            ))
        })
    }
}

/// What to do about unknown and repeated fields of a body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    #[default]
    Warn,
    Strict,
}

/// The options that POST, PUT and PATCH share.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WriteOptions {
    pub(crate) dry_run: bool,
    pub(crate) validation: FieldValidation,
}

/// The longest field manager.
const MAX_FIELD_MANAGER: usize = 128;

impl WriteOptions {
    /// Reads them; `kind` is what a refusal calls them, `CreateOptions` and the like.
    pub(crate) fn parse(query: &Query, kind: &str, faults: Faults) -> Result<Self, ApiError> {
        let mut errors = Vec::new();
        if kind == "PatchOptions" && query.get("force").is_some() {
            errors.push(FieldError::forbidden("force", "may not be specified for non-apply patch"));
        }
        Self::read(query, kind, errors, faults)
    }

    /// Reads those of server-side apply, which must know who applies.
    pub(crate) fn of_apply(query: &Query, faults: Faults) -> Result<Self, ApiError> {
        let mut errors = Vec::new();
        if query.text("fieldManager").is_none() && !faults.on(Fault::ApplyNeedsNoManager) {
            errors.push(FieldError::required("fieldManager", "is required for apply patch"));
        }
        Self::read(query, "PatchOptions", errors, faults)
    }

    fn read(
        query: &Query,
        kind: &str,
        mut errors: Vec<FieldError>,
        faults: Faults,
    ) -> Result<Self, ApiError> {
        let dry_run = dry_run(query.all("dryRun"), &mut errors);
        let validation = match query.get("fieldValidation") {
            None | Some("") if faults.on(Fault::SilentByDefault) => FieldValidation::Ignore,
            None | Some("") => FieldValidation::default(),
            Some("Ignore") => FieldValidation::Ignore,
            Some("Warn") => FieldValidation::Warn,
            Some("Strict") => FieldValidation::Strict,
            Some(_) if faults.on(Fault::FieldValidationUnchecked) => FieldValidation::default(),
            Some(other) => {
                let supported = ["".into(), "Ignore".into(), "Strict".into(), "Warn".into()];
                errors.push(FieldError::not_supported("fieldValidation", &other.into(), &supported));
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

/// Whether any value asks for a dry run; a value other than `All` is a mistake.
pub(crate) fn dry_run<'a>(values: impl Iterator<Item = &'a str>, errors: &mut Vec<FieldError>) -> bool {
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
    #[case("", false)]
    #[case("pretty=0", false)]
    #[case("pretty=false", false)]
    #[case("pretty=False", false)]
    #[case("other=true", false)]
    #[case("pretty", true)]
    #[case("pretty=", true)]
    #[case("pretty=1", true)]
    #[case("pretty=yes", true)]
    fn a_switch_is_on_unless_it_says_otherwise(#[case] query: &str, #[case] expected: bool) {
        assert_eq!(Query::parse(query).flag("pretty"), expected);
    }

    #[rstest]
    #[case("UpdateOptions", "force=true".to_owned(), true)]
    #[case("PatchOptions", "force=true".to_owned(), false)]
    #[case("PatchOptions", "force=".to_owned(), false)]
    #[case("PatchOptions", "fieldManager=me".to_owned(), true)]
    #[case("PatchOptions", format!("fieldManager={}", "m".repeat(128)), true)]
    #[case("PatchOptions", format!("fieldManager={}", "m".repeat(129)), false)]
    #[case("PatchOptions", "fieldManager=a%07".to_owned(), false)]
    fn options_that_make_no_sense_are_refused(
        #[case] kind: &str,
        #[case] query: String,
        #[case] accepted: bool,
    ) {
        assert_eq!(WriteOptions::parse(&Query::parse(&query), kind, Faults::none()).is_ok(), accepted);
    }

    #[rstest]
    #[case("", false)]
    #[case("fieldManager=", false)]
    #[case("force=true", false)]
    #[case("fieldManager=me&force=true", true)]
    fn who_applies_has_a_name_and_may_force(#[case] query: &str, #[case] accepted: bool) {
        assert_eq!(WriteOptions::of_apply(&Query::parse(query), Faults::none()).is_ok(), accepted);
    }
}
