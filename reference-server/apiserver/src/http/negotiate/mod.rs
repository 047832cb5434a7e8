//! Content negotiation: selects the form of the response by `Accept`.
//!
//! Quality values and wildcards follow RFC 9110. This is stricter than kube-apiserver in one place
//! (`q=0` rejects) and more lenient in another (media types ignore case). A form needs all three
//! parameters `as`, `g` and `v`. An incomplete or unknown triple makes an entry unacceptable, and
//! the next entry is tried. Other parameters are ignored.

mod accept;

use http::{HeaderMap, header};

pub(crate) use accept::Entry;

use kubeproof_apimachinery::serializer::protobuf;
use kubeproof_apimachinery::table::MetaVersion;

use crate::config::disabled::Capability;
use crate::config::disabled::DisabledCapabilities;

/// The encoding of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// `application/json`.
    Json,
    /// `application/yaml`.
    Yaml,
    /// `application/vnd.kubernetes.protobuf`.
    Protobuf,
}

/// The content of a response: the object or list itself, or another view of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// The object, list or document itself.
    Plain,
    /// A `Table` for people.
    Table(MetaVersion),
    /// `PartialObjectMetadata`, or its list for a list.
    Metadata(MetaVersion),
    /// `APIGroupDiscoveryList`, all groups in one document.
    AggregatedDiscovery,
}

/// The content of an endpoint, which determines the possible forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// One persisted object.
    Object,
    /// A list of persisted objects.
    List,
    /// A stream of events about persisted objects.
    Watch,
    /// `/api` and `/apis`.
    DiscoveryRoot,
    /// Content with one form only: other discovery documents, reviews, scales, `Status`.
    Document,
}

/// The negotiated encoding and form of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Representation {
    /// The encoding.
    pub encoding: Encoding,
    /// The form.
    pub form: Form,
}

/// No entry of `Accept` is available (406, reason `NotAcceptable`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("only the following media types are accepted: {}", self.accepted())]
pub(crate) struct NotAcceptable {
    target: Target,
    disabled: DisabledCapabilities,
}

impl NotAcceptable {
    fn accepted(self) -> String {
        let mut types = vec!["application/json"];
        if !self.disabled.on(Capability::Yaml) && self.target != Target::Watch {
            types.push("application/yaml");
        }
        if !self.disabled.on(Capability::Protobuf) {
            types.push(protobuf::MEDIA_TYPE);
        }
        types.join(", ")
    }
}

impl Representation {
    /// The default: JSON of the object itself.
    pub(crate) const JSON: Self = Self { encoding: Encoding::Json, form: Form::Plain };

    /// Returns whether a server without these capabilities has the representation.
    const fn remains(self, disabled: DisabledCapabilities) -> bool {
        let form = match self.form {
            Form::Plain => None,
            Form::Table(_) => Some(Capability::Table),
            Form::Metadata(_) => Some(Capability::PartialMetadata),
            Form::AggregatedDiscovery => Some(Capability::AggregatedDiscovery),
        };
        let form_is_disabled = match form {
            Some(capability) => disabled.on(capability),
            None => false,
        };
        let encoding_is_disabled = match self.encoding {
            Encoding::Json => false,
            Encoding::Yaml => disabled.on(Capability::Yaml),
            Encoding::Protobuf => disabled.on(Capability::Protobuf),
        };
        !form_is_disabled && !encoding_is_disabled
    }

    /// Returns the `Content-Type` of the response. Only aggregated discovery repeats the
    /// parameters.
    pub(crate) const fn content_type(self) -> &'static str {
        match (self.encoding, self.form) {
            (Encoding::Json, Form::AggregatedDiscovery) => {
                "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
            }
            (Encoding::Yaml, Form::AggregatedDiscovery) => {
                "application/yaml;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
            }
            (Encoding::Protobuf, Form::AggregatedDiscovery) => {
                "application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;\
                 as=APIGroupDiscoveryList"
            }
            (Encoding::Json, _) => "application/json",
            (Encoding::Yaml, _) => "application/yaml",
            (Encoding::Protobuf, _) => protobuf::MEDIA_TYPE,
        }
    }
}

/// Selects the representation for `headers` among those of `target`. Custom resources have no
/// protobuf encoding except for their metadata.
pub(crate) fn negotiate(
    headers: &HeaderMap,
    target: Target,
    disabled: DisabledCapabilities,
    custom: bool,
) -> Result<Representation, NotAcceptable> {
    let exists = |offered: &Representation| {
        let typed = matches!(offered.form, Form::Metadata(_)) || !custom;
        offered.remains(disabled) && (offered.encoding != Encoding::Protobuf || typed)
    };
    preferred(headers, Representation::JSON, |entry| offer(entry, target).filter(exists))
        .ok_or(NotAcceptable { target, disabled })
}

/// Selects the encoding of an error.
pub(crate) fn negotiate_error(
    headers: &HeaderMap,
    disabled: DisabledCapabilities,
) -> Representation {
    negotiate(headers, Target::Document, disabled, false).unwrap_or(Representation::JSON)
}

/// Returns the value of the first entry that has one, or the default if the client accepts
/// everything.
pub(crate) fn preferred<T>(
    headers: &HeaderMap,
    default: T,
    offer: impl FnMut(&Entry<'_>) -> Option<T>,
) -> Option<T> {
    let lines =
        headers.get_all(header::ACCEPT).iter().map(|line| line.to_str().unwrap_or_default());
    let wanted = accept::parse(lines);
    if wanted.is_empty() { Some(default) } else { wanted.iter().find_map(offer) }
}

/// Returns the representation of the target for one entry.
fn offer(entry: &Entry<'_>, target: Target) -> Option<Representation> {
    let encoding = match entry.media_range.to_ascii_lowercase().as_str() {
        "*/*" | "application/*" | "application/json" => Encoding::Json,
        "application/yaml" if target != Target::Watch => Encoding::Yaml,
        protobuf::MEDIA_TYPE => Encoding::Protobuf,
        _ => return None,
    };
    let form = match (entry.parameter("g"), entry.parameter("v"), entry.parameter("as")) {
        (None, None, None) => Form::Plain,
        (Some("apidiscovery.k8s.io"), Some("v2"), Some("APIGroupDiscoveryList")) => {
            Form::AggregatedDiscovery
        }
        (Some("meta.k8s.io"), Some(version), Some(kind)) => {
            let version = match version {
                "v1" => MetaVersion::V1,
                "v1beta1" => MetaVersion::V1Beta1,
                _ => return None,
            };
            match (kind, target) {
                // A table has no protobuf encoding.
                ("Table", _) if encoding != Encoding::Protobuf => Form::Table(version),
                ("PartialObjectMetadata", Target::Object | Target::Watch)
                | ("PartialObjectMetadataList", Target::List | Target::Watch) => {
                    Form::Metadata(version)
                }
                _ => return None,
            }
        }
        _ => return None,
    };
    let offered = match target {
        Target::Object | Target::List | Target::Watch => form != Form::AggregatedDiscovery,
        Target::DiscoveryRoot => matches!(form, Form::Plain | Form::AggregatedDiscovery),
        Target::Document => form == Form::Plain,
    };
    offered.then_some(Representation { encoding, form })
}

#[cfg(test)]
mod tests;
