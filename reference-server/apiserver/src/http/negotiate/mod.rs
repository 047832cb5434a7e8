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
mod tests {
    use http::HeaderValue;

    use super::*;

    fn chosen(accept: &'static str, target: Target) -> Option<Representation> {
        let headers = HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static(accept))]);
        negotiate(&headers, target, DisabledCapabilities::none(), false).ok()
    }

    fn encoding(accept: &'static str) -> Option<Encoding> {
        chosen(accept, Target::Object).map(|representation| representation.encoding)
    }

    #[rstest::rstest]
    #[case("", Some(Encoding::Json))]
    #[case("*/*", Some(Encoding::Json))]
    #[case("application/*", Some(Encoding::Json))]
    #[case("application/json;charset=utf-8", Some(Encoding::Json))]
    #[case("Application/JSON", Some(Encoding::Json))]
    #[case("application/json; stream=watch", Some(Encoding::Json))]
    #[case("text/html, application/yaml", Some(Encoding::Yaml))]
    #[case("application/yaml;q=0.1, application/json;q=0.9", Some(Encoding::Json))]
    #[case("application/vnd.kubernetes.protobuf, application/json", Some(Encoding::Protobuf))]
    #[case("application/json, application/vnd.kubernetes.protobuf", Some(Encoding::Json))]
    #[case("application/json;q=0", None)]
    #[case("text/html", None)]
    #[case("application/vnd.kubernetes.protobuf", Some(Encoding::Protobuf))]
    #[case("nonsense", None)]
    fn the_best_entry_that_can_be_served_wins(
        #[case] accept: &'static str,
        #[case] expected: Option<Encoding>,
    ) {
        assert_eq!(encoding(accept), expected);
    }

    #[rstest::rstest]
    #[case(
        "application/json;as=Table;g=meta.k8s.io;v=v1",
        Target::List,
        Some(Form::Table(MetaVersion::V1))
    )]
    #[case(
        "application/json;v=v1beta1;g=meta.k8s.io;as=Table",
        Target::Object,
        Some(Form::Table(MetaVersion::V1Beta1))
    )]
    #[case(
        "application/json;as=Table;g=meta.k8s.io;v=v9,application/json",
        Target::List,
        Some(Form::Plain)
    )]
    #[case("application/json;as=Table;g=meta.k8s.io;v=v9", Target::List, None)]
    #[case("application/json;as=Table", Target::List, None)]
    #[case("application/json;g=meta.k8s.io;v=v1", Target::List, None)]
    #[case("application/json;as=Table;g=meta.k8s.io;v=v1", Target::Document, None)]
    #[case("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", Target::List, None)]
    #[case(
        "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
        Target::List,
        Some(Form::Metadata(MetaVersion::V1))
    )]
    #[case(
        "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
        Target::Watch,
        Some(Form::Metadata(MetaVersion::V1))
    )]
    #[case(
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        Target::DiscoveryRoot,
        Some(Form::AggregatedDiscovery)
    )]
    #[case(
        "application/json;g=apidiscovery.k8s.io;v=v3;as=APIGroupDiscoveryList",
        Target::DiscoveryRoot,
        None
    )]
    #[case(
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        Target::Object,
        None
    )]
    fn forms_are_offered_where_they_make_sense(
        #[case] accept: &'static str,
        #[case] target: Target,
        #[case] expected: Option<Form>,
    ) {
        assert_eq!(chosen(accept, target).map(|representation| representation.form), expected);
    }

    #[rstest::rstest]
    #[case("application/vnd.kubernetes.protobuf", Target::Object, None)]
    #[case("application/vnd.kubernetes.protobuf, */*", Target::Watch, Some(Encoding::Json))]
    #[case(
        "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
        Target::Object,
        Some(Encoding::Protobuf)
    )]
    fn only_the_metadata_of_custom_resources_is_protobuf(
        #[case] accept: &'static str,
        #[case] target: Target,
        #[case] expected: Option<Encoding>,
    ) {
        let headers = HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static(accept))]);
        let chosen = negotiate(&headers, target, DisabledCapabilities::none(), true).ok();
        assert_eq!(chosen.map(|chosen| chosen.encoding), expected);
    }

    #[test]
    fn a_table_is_never_protobuf() {
        const TABLE: &str = "application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1";
        for target in [Target::Object, Target::List, Target::Watch] {
            assert_eq!(chosen(TABLE, target), None, "{target:?}");
        }
    }

    #[test]
    fn a_watch_is_never_yaml() {
        assert_eq!(chosen("application/yaml", Target::Watch), None);
        assert_eq!(
            chosen("application/yaml, */*;q=0.1", Target::Watch),
            Some(Representation::JSON)
        );
    }

    const PROTOBUF: &str = protobuf::MEDIA_TYPE;
    const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";
    const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

    fn outcome(
        accept: &str,
        target: Target,
        disabled: DisabledCapabilities,
    ) -> Result<&'static str, String> {
        let headers = HeaderMap::from_iter([(
            header::ACCEPT,
            HeaderValue::from_str(accept).expect("a header"),
        )]);
        let chosen = negotiate(&headers, target, disabled, false);
        chosen.map(Representation::content_type).map_err(|error| error.to_string())
    }

    #[rstest::rstest]
    #[case("application/json", Target::Object, "application/json")]
    #[case("application/yaml", Target::Object, "application/yaml")]
    #[case(TABLE, Target::Object, "application/json")]
    #[case(
        AGGREGATED,
        Target::DiscoveryRoot,
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    )]
    #[case(
        "application/yaml;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        Target::DiscoveryRoot,
        "application/yaml;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    )]
    fn aggregated_discovery_alone_names_its_form(
        #[case] accept: &str,
        #[case] target: Target,
        #[case] expected: &str,
    ) {
        assert_eq!(outcome(accept, target, DisabledCapabilities::none()).as_deref(), Ok(expected));
    }

    #[rstest::rstest]
    #[case(Target::Object, &[], "application/json, application/yaml, PROTOBUF")]
    #[case(Target::Watch, &[], "application/json, PROTOBUF")]
    #[case(Target::Object, &[Capability::Yaml], "application/json, PROTOBUF")]
    #[case(Target::Object, &[Capability::Protobuf], "application/json, application/yaml")]
    #[case(Target::Watch, &[Capability::Yaml, Capability::Protobuf], "application/json")]
    fn the_error_lists_the_available_types(
        #[case] target: Target,
        #[case] disabled: &[Capability],
        #[case] types: &str,
    ) {
        let disabled = disabled.iter().copied().collect();
        let types = types.replace("PROTOBUF", PROTOBUF);
        let expected = Err(format!("only the following media types are accepted: {types}"));
        assert_eq!(outcome("text/html", target, disabled), expected);
    }

    #[rstest::rstest]
    #[case(Capability::Table, TABLE, Target::Object)]
    #[case(Capability::PartialMetadata, METADATA, Target::Object)]
    #[case(Capability::AggregatedDiscovery, AGGREGATED, Target::DiscoveryRoot)]
    #[case(Capability::Yaml, "application/yaml", Target::Object)]
    #[case(Capability::Protobuf, PROTOBUF, Target::Object)]
    fn only_disabled_forms_are_not_offered(
        #[case] capability: Capability,
        #[case] accept: &str,
        #[case] target: Target,
    ) {
        let offered = |capability| {
            outcome(accept, target, DisabledCapabilities::none().with(capability)).is_ok()
        };
        for other in [
            Capability::Table,
            Capability::PartialMetadata,
            Capability::AggregatedDiscovery,
            Capability::Yaml,
            Capability::Protobuf,
        ] {
            assert_eq!(offered(other), other != capability, "{other:?}");
        }
    }

    #[test]
    fn several_header_lines_are_one_list() {
        let mut headers = HeaderMap::new();
        headers.append(header::ACCEPT, HeaderValue::from_static("text/html"));
        headers.append(header::ACCEPT, HeaderValue::from_static("application/yaml"));
        assert_eq!(
            negotiate(&headers, Target::Object, DisabledCapabilities::none(), false)
                .map(|r| r.encoding),
            Ok(Encoding::Yaml)
        );
    }
}
