//! Which objects a request means: label and field selectors over what the store knows without parsing.

use crate::query::Query;
use crate::registry::ResourceType;
use crate::selector::{FieldSelector, LabelSelector};
use crate::status::ApiError;
use crate::store::Stored;
use crate::{Fault, Faults};

/// The selectors of one request.
#[derive(Debug)]
pub(crate) struct Selection {
    labels: Option<LabelSelector>,
    fields: Option<FieldSelector>,
    /// The fields by the names under which the store knows them, where it has others.
    stored_labels: Vec<(String, String)>,
    faults: Faults,
}

impl Selection {
    /// Everything.
    pub(crate) fn all() -> Self {
        Self { labels: None, fields: None, stored_labels: Vec::new(), faults: Faults::none() }
    }

    pub(crate) fn parse(query: &Query, ty: &ResourceType, faults: Faults) -> Result<Self, ApiError> {
        let labels = match query.text("labelSelector") {
            Some(text) if !faults.on(Fault::LabelSelectorIgnored) => match LabelSelector::parse(text) {
                Err(_) if faults.on(Fault::MalformedSelectorSelectsAll) => None,
                selector => Some(selector.map_err(|error| ApiError::bad_request(error.to_string()))?),
            },
            _ => None,
        };
        let fields = match query.text("fieldSelector") {
            Some(text) if !faults.on(Fault::FieldSelectorIgnored) => {
                let selector =
                    FieldSelector::parse(text).map_err(|error| ApiError::bad_request(error.to_string()))?;
                for term in selector.terms() {
                    known(&term.field, ty, faults)?;
                }
                Some(selector)
            }
            _ => None,
        };
        let terms = fields.iter().flat_map(FieldSelector::terms).map(|term| term.field.as_str());
        let stored_labels = terms.map(|label| (label.to_owned(), ty.stored_label(label).to_owned()));
        let stored_labels = stored_labels.filter(|(label, stored)| label != stored).collect();
        Ok(Self { labels, fields, stored_labels, faults })
    }

    fn stored_label<'a>(&'a self, label: &'a str) -> &'a str {
        self.stored_labels.iter().find(|(own, _)| own == label).map_or(label, |(_, stored)| stored)
    }

    /// Whether it leaves anything out.
    pub(crate) fn selects(&self) -> bool {
        self.labels.is_some() || self.fields.is_some()
    }

    /// Half of what is asked for.
    pub(crate) fn matches_labels(&self, object: &Stored) -> bool {
        self.labels.as_ref().is_none_or(|labels| labels.matches(&object.facts.labels, self.faults))
    }

    pub(crate) fn matches(&self, object: &Stored) -> bool {
        let faults = self.faults;
        self.matches_labels(object)
            && self.fields.as_ref().is_none_or(|fields| {
                // A fault that knows the metadata only takes any other field for a match.
                let blind = faults.on(Fault::FieldSelectorMetadataOnly)
                    && fields.terms().iter().any(|term| !term.field.starts_with("metadata."));
                blind || fields.matches(|label| field(object, self.stored_label(label)), faults)
            })
    }
}

/// The text of a field of an object.
fn field<'a>(object: &'a Stored, label: &str) -> &'a str {
    match label {
        "metadata.name" => &object.key.name,
        "metadata.namespace" => &object.key.namespace,
        _ => {
            let mut fields = object.facts.fields.iter();
            fields.find(|(known, _)| known == label).map(|(_, value)| value.as_str()).unwrap_or_default()
        }
    }
}

fn known(label: &str, ty: &ResourceType, faults: Faults) -> Result<(), ApiError> {
    let known = (ty.selects_by_name && matches!(label, "metadata.name" | "metadata.namespace"))
        || ty.selectable.iter().any(|field| field.label == label);
    if known || faults.on(Fault::UnknownFieldSelectorMatchesAll) {
        return Ok(());
    }
    Err(ApiError::bad_request(format!("{label:?} is not a known field selector: field label not supported")))
}
