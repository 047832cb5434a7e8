//! Content negotiation: from `Accept` to the form in which a response is written.
//!
//! Quality values and wildcards count as RFC 9110 says, which is stricter than kube-apiserver in one place (`q=0` is a
//! refusal) and more lenient in another (media types are compared without regard to case). A form is asked for with
//! the three parameters `as`, `g` and `v` together; some of them alone, or an unknown triple, make an entry of the list
//! unacceptable, and the next one is looked at. Other parameters are ignored.

mod accept;

use http::{HeaderMap, header};

pub(crate) use accept::Entry;

use crate::{Cut, Cuts, Fault, Faults};

/// How the text of a response is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// `application/json`
    Json,
    /// `application/yaml`
    Yaml,
}

/// What is written: the object or list itself, or another view of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The object, list or document itself.
    Plain,
    /// A `Table`, for people.
    Table(MetaVersion),
    /// `PartialObjectMetadata`, or its list for a list.
    Metadata(MetaVersion),
    /// `APIGroupDiscoveryList`, all groups in one document.
    AggregatedDiscovery,
}

/// A version of the group `meta.k8s.io`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetaVersion {
    /// `v1`
    V1,
    /// `v1beta1`
    V1Beta1,
}

/// What the endpoint answers with, hence which forms it can offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// One persisted object.
    Object,
    /// A list of persisted objects.
    List,
    /// A stream of events about persisted objects.
    Watch,
    /// `/api` and `/apis`.
    DiscoveryRoot,
    /// Anything with one form only: other discovery documents, reviews, scales, `Status`.
    Document,
}

/// The outcome: encoding and form of the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Representation {
    /// How it is written.
    pub encoding: Encoding,
    /// What is written.
    pub form: Form,
}

/// No entry of `Accept` can be served (406, reason `NotAcceptable`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("only the following media types are accepted: {}", self.accepted())]
pub struct NotAcceptable {
    target: Target,
    yaml: bool,
}

impl NotAcceptable {
    fn accepted(self) -> &'static str {
        let yaml = self.yaml && self.target != Target::Watch;
        if yaml { "application/json, application/yaml" } else { "application/json" }
    }
}

impl Representation {
    /// The default: JSON of the thing itself.
    pub const JSON: Self = Self { encoding: Encoding::Json, form: Form::Plain };

    /// Whether a server without these has it.
    const fn remains(self, cuts: Cuts) -> bool {
        let form = match self.form {
            Form::Plain => None,
            Form::Table(_) => Some(Cut::Table),
            Form::Metadata(_) => Some(Cut::PartialMetadata),
            Form::AggregatedDiscovery => Some(Cut::AggregatedDiscovery),
        };
        let form_is_cut = match form {
            Some(cut) => cuts.on(cut),
            None => false,
        };
        let encoding_is_cut = matches!(self.encoding, Encoding::Yaml) && cuts.on(Cut::Yaml);
        !form_is_cut && !encoding_is_cut
    }

    /// The `Content-Type` of the response. Only aggregated discovery echoes the parameters.
    pub const fn content_type(self) -> &'static str {
        match (self.encoding, self.form) {
            (Encoding::Json, Form::AggregatedDiscovery) => {
                "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
            }
            (Encoding::Yaml, Form::AggregatedDiscovery) => {
                "application/yaml;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
            }
            (Encoding::Json, _) => "application/json",
            (Encoding::Yaml, _) => "application/yaml",
        }
    }
}

impl MetaVersion {
    /// The `apiVersion` of objects of this version.
    pub const fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "meta.k8s.io/v1",
            Self::V1Beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

/// Chooses the representation that `headers` ask for and `target` can offer.
pub fn negotiate(
    headers: &HeaderMap,
    target: Target,
    cuts: Cuts,
    faults: Faults,
) -> Result<Representation, NotAcceptable> {
    let offered = |entry: &Entry<'_>| {
        let ordered = !faults.on(Fault::AcceptParametersInOrder) || entry.first_parameter() != Some("v");
        let refused = faults.on(Fault::AcceptParametersRefused) && entry.first_parameter() == Some("charset");
        offer(entry, target).filter(|offered| offered.remains(cuts) && ordered && !refused)
    };
    if faults.on(Fault::AcceptQualityIgnored) {
        return first(headers, offered).ok_or(NotAcceptable { target, yaml: !cuts.on(Cut::Yaml) });
    }
    preferred(headers, Representation::JSON, offered)
        .ok_or(NotAcceptable { target, yaml: !cuts.on(Cut::Yaml) })
}

/// The offer for the first entry that has one, or the default if the client does not say what it accepts.
pub(crate) fn preferred<T>(
    headers: &HeaderMap,
    default: T,
    offer: impl FnMut(&Entry<'_>) -> Option<T>,
) -> Option<T> {
    let lines = headers.get_all(header::ACCEPT).iter().map(|line| line.to_str().unwrap_or_default());
    let wanted = accept::parse(lines);
    if wanted.is_empty() { Some(default) } else { wanted.iter().find_map(offer) }
}

/// What a fault makes of the list: the first entry as written counts.
fn first(
    headers: &HeaderMap,
    offer: impl Fn(&Entry<'_>) -> Option<Representation>,
) -> Option<Representation> {
    let lines = headers.get_all(header::ACCEPT).iter().map(|line| line.to_str().unwrap_or_default());
    let entries: Vec<_> =
        lines.flat_map(|line| line.split(',')).filter(|entry| !entry.trim().is_empty()).collect();
    if entries.is_empty() {
        return Some(Representation::JSON);
    }
    entries.iter().find_map(|entry| accept::parse(std::iter::once(*entry)).first().and_then(&offer))
}

/// What the target has for one entry of the list.
fn offer(entry: &Entry<'_>, target: Target) -> Option<Representation> {
    let encoding = match entry.media_range.to_ascii_lowercase().as_str() {
        "*/*" | "application/*" | "application/json" => Encoding::Json,
        "application/yaml" if target != Target::Watch => Encoding::Yaml,
        _ => return None,
    };
    let form = match (entry.parameter("g"), entry.parameter("v"), entry.parameter("as")) {
        (None, None, None) => Form::Plain,
        (Some("apidiscovery.k8s.io"), Some("v2"), Some("APIGroupDiscoveryList")) => Form::AggregatedDiscovery,
        (Some("meta.k8s.io"), Some(version), Some(kind)) => {
            let version = match version {
                "v1" => MetaVersion::V1,
                "v1beta1" => MetaVersion::V1Beta1,
                _ => return None,
            };
            match (kind, target) {
                ("Table", _) => Form::Table(version),
                ("PartialObjectMetadata", Target::Object | Target::Watch)
                | ("PartialObjectMetadataList", Target::List | Target::Watch) => Form::Metadata(version),
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
        negotiate(&headers, target, Cuts::none(), Faults::none()).ok()
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
    #[case("application/vnd.kubernetes.protobuf, application/json", Some(Encoding::Json))]
    #[case("application/json;q=0", None)]
    #[case("text/html", None)]
    #[case("application/vnd.kubernetes.protobuf", None)]
    #[case("nonsense", None)]
    fn the_best_entry_that_can_be_served_wins(
        #[case] accept: &'static str,
        #[case] expected: Option<Encoding>,
    ) {
        assert_eq!(encoding(accept), expected);
    }

    #[rstest::rstest]
    #[case("application/json;as=Table;g=meta.k8s.io;v=v1", Target::List, Some(Form::Table(MetaVersion::V1)))]
    #[case(
        "application/json;v=v1beta1;g=meta.k8s.io;as=Table",
        Target::Object,
        Some(Form::Table(MetaVersion::V1Beta1))
    )]
    #[case("application/json;as=Table;g=meta.k8s.io;v=v9,application/json", Target::List, Some(Form::Plain))]
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
    #[case("application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", Target::Object, None)]
    fn forms_are_offered_where_they_make_sense(
        #[case] accept: &'static str,
        #[case] target: Target,
        #[case] expected: Option<Form>,
    ) {
        assert_eq!(chosen(accept, target).map(|representation| representation.form), expected);
    }

    #[test]
    fn a_watch_is_never_yaml() {
        assert_eq!(chosen("application/yaml", Target::Watch), None);
        assert_eq!(chosen("application/yaml, */*;q=0.1", Target::Watch), Some(Representation::JSON));
    }

    const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";
    const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

    fn outcome(accept: &str, target: Target, cuts: Cuts, faults: Faults) -> Result<&'static str, String> {
        let headers =
            HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_str(accept).expect("a header"))]);
        let chosen = negotiate(&headers, target, cuts, faults);
        chosen.map(Representation::content_type).map_err(|refusal| refusal.to_string())
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
        assert_eq!(outcome(accept, target, Cuts::none(), Faults::none()).as_deref(), Ok(expected));
    }

    #[rstest::rstest]
    #[case(Target::Object, Cuts::none(), "application/json, application/yaml")]
    #[case(Target::Watch, Cuts::none(), "application/json")]
    #[case(Target::Object, Cuts::none().with(Cut::Yaml), "application/json")]
    #[case(Target::Watch, Cuts::none().with(Cut::Yaml), "application/json")]
    fn a_refusal_names_what_there_is(#[case] target: Target, #[case] cuts: Cuts, #[case] types: &str) {
        let expected = Err(format!("only the following media types are accepted: {types}"));
        for faults in [Faults::none(), Faults::none().with(Fault::AcceptQualityIgnored)] {
            assert_eq!(outcome("text/html", target, cuts, faults), expected);
        }
    }

    #[rstest::rstest]
    #[case(Cut::Table, TABLE, Target::Object)]
    #[case(Cut::PartialMetadata, METADATA, Target::Object)]
    #[case(Cut::AggregatedDiscovery, AGGREGATED, Target::DiscoveryRoot)]
    #[case(Cut::Yaml, "application/yaml", Target::Object)]
    fn what_is_cut_is_offered_no_more_and_all_else_is(
        #[case] cut: Cut,
        #[case] accept: &str,
        #[case] target: Target,
    ) {
        let offered = |cut| outcome(accept, target, Cuts::none().with(cut), Faults::none()).is_ok();
        for other in [Cut::Table, Cut::PartialMetadata, Cut::AggregatedDiscovery, Cut::Yaml] {
            assert_eq!(offered(other), other != cut, "{other:?}");
        }
    }

    #[rstest::rstest]
    #[case(Fault::AcceptParametersInOrder, "application/json;v=v1;as=Table;g=meta.k8s.io", None)]
    #[case(Fault::AcceptParametersInOrder, TABLE, Some(Encoding::Json))]
    #[case(Fault::AcceptParametersRefused, "application/json;charset=utf-8", None)]
    #[case(Fault::AcceptParametersRefused, "application/json;stream=watch", Some(Encoding::Json))]
    #[case(Fault::AcceptQualityIgnored, "application/yaml;q=0.1, application/json", Some(Encoding::Yaml))]
    #[case(Fault::AcceptQualityIgnored, " , application/yaml", Some(Encoding::Yaml))]
    #[case(Fault::AcceptQualityIgnored, ",", Some(Encoding::Json))]
    fn faults(#[case] fault: Fault, #[case] accept: &'static str, #[case] expected: Option<Encoding>) {
        let headers = HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static(accept))]);
        let chosen = negotiate(&headers, Target::Object, Cuts::none(), Faults::none().with(fault));
        assert_eq!(chosen.ok().map(|chosen| chosen.encoding), expected);
    }

    #[test]
    fn several_header_lines_are_one_list() {
        let mut headers = HeaderMap::new();
        headers.append(header::ACCEPT, HeaderValue::from_static("text/html"));
        headers.append(header::ACCEPT, HeaderValue::from_static("application/yaml"));
        assert_eq!(
            negotiate(&headers, Target::Object, Cuts::none(), Faults::none()).map(|r| r.encoding),
            Ok(Encoding::Yaml)
        );
    }
}
