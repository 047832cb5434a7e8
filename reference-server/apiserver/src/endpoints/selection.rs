//! Label and field selectors, evaluated on indexed fields without parsing objects.

use crate::registry::ResourceType;
use kubeproof_apimachinery::request::Query;
use kubeproof_apimachinery::selector::{FieldSelector, LabelSelector};
use kubeproof_apimachinery::status::ApiError;
use kubeproof_storage::Stored;

/// The selectors of one request.
#[derive(Debug)]
pub(crate) struct Selection {
    labels: Option<LabelSelector>,
    fields: Option<FieldSelector>,
    /// The fields with another name in the store.
    stored_labels: Vec<(String, String)>,
}

impl Selection {
    pub(crate) fn parse(query: &Query, ty: &ResourceType) -> Result<Self, ApiError> {
        let labels = match query.text("labelSelector") {
            Some(text) => Some(
                LabelSelector::parse(text)
                    .map_err(|error| ApiError::bad_request(error.to_string()))?,
            ),
            None => None,
        };
        let fields = match query.text("fieldSelector") {
            Some(text) => {
                let selector = FieldSelector::parse(text)
                    .map_err(|error| ApiError::bad_request(error.to_string()))?;
                for term in selector.terms() {
                    known(&term.field, ty)?;
                }
                Some(selector)
            }
            None => None,
        };
        let terms = fields.iter().flat_map(FieldSelector::terms).map(|term| term.field.as_str());
        let stored_labels =
            terms.map(|label| (label.to_owned(), ty.stored_label(label).to_owned()));
        let stored_labels = stored_labels.filter(|(label, stored)| label != stored).collect();
        Ok(Self { labels, fields, stored_labels })
    }

    fn stored_label<'a>(&'a self, label: &'a str) -> &'a str {
        self.stored_labels.iter().find(|(own, _)| own == label).map_or(label, |(_, stored)| stored)
    }

    /// Returns whether the selection excludes any object.
    pub(crate) fn selects(&self) -> bool {
        self.labels.is_some() || self.fields.is_some()
    }

    pub(crate) fn matches(&self, object: &Stored) -> bool {
        self.labels.as_ref().is_none_or(|labels| labels.matches(&object.facts.labels))
            && self.fields.as_ref().is_none_or(|fields| {
                fields.matches(|label| field(object, self.stored_label(label)))
            })
    }
}

/// Returns the value of a field of an object.
fn field<'a>(object: &'a Stored, label: &str) -> &'a str {
    match label {
        "metadata.name" => &object.key.name,
        "metadata.namespace" => &object.key.namespace,
        _ => {
            let mut fields = object.facts.fields.iter();
            fields
                .find(|(known, _)| known == label)
                .map(|(_, value)| value.as_str())
                .unwrap_or_default()
        }
    }
}

fn known(label: &str, ty: &ResourceType) -> Result<(), ApiError> {
    let known = (ty.selects_by_name && matches!(label, "metadata.name" | "metadata.namespace"))
        || ty.selectable.iter().any(|field| field.label == label);
    if known {
        return Ok(());
    }
    Err(ApiError::bad_request(format!(
        "{label:?} is not a known field selector: field label not supported"
    )))
}
