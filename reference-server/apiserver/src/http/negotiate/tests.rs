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
    assert_eq!(chosen("application/yaml, */*;q=0.1", Target::Watch), Some(Representation::JSON));
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
    let headers =
        HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_str(accept).expect("a header"))]);
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
    let offered =
        |capability| outcome(accept, target, DisabledCapabilities::none().with(capability)).is_ok();
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
