//! Tests of the parser.

use rstest::rstest;

use super::*;

const META: &str = "\
package io.k8s.meta.v1

io.k8s.meta.v1.ObjectMeta
  1 name string
";

const CORE: &str = r#"# A comment.
package io.k8s.core.v1

io.k8s.core.v1.Pod kind=/v1/Pod kind=old/v1beta1/Pod
  0 kind string
  0 apiVersion string
  2 ports []Port list=map keys=port,protocol merge=port strategy=merge
  1 metadata io.k8s.meta.v1.ObjectMeta default={}
  3 sizes {}quantity map=atomic null
  4 source Source inline
  5 extra {}wrapped[]string

io.k8s.core.v1.Port map=atomic union=:port,protocol
  1 port int32 required keep
  2 protocol string enum=,TCP,U D P default="TCP or UDP"

io.k8s.core.v1.Source
  1 strategy json strategy=retainKeys,merge map=granular
"#;

fn parse(core: &'static str) -> Result<Definitions, DefinitionsError> {
    Definitions::parse(&[("core", core), ("meta", META)])
}

#[test]
fn a_file_becomes_definitions() {
    let definitions = parse(CORE).unwrap();
    let pod = definitions.kind("", "v1", "Pod").unwrap();
    assert_eq!(definitions.kind("old", "v1beta1", "Pod"), Some(pod));
    assert_eq!(pod.name, "io.k8s.core.v1.Pod");
    let numbers: Vec<_> = pod.fields.iter().map(|field| field.number).collect();
    assert_eq!(numbers, [0, 0, 1, 2, 3, 4, 5]);
    let metadata = pod.field("metadata").unwrap();
    assert_eq!(metadata.ty, Type::Message("io.k8s.meta.v1.ObjectMeta"));
    assert_eq!(metadata.default, Some("{}"));
    let ports = pod.numbered(2).unwrap();
    assert_eq!(ports.ty.message(), Some("io.k8s.core.v1.Port"));
    assert_eq!(
        (ports.list_type, &*ports.list_map_keys),
        (ListType::Map, &["port", "protocol"][..])
    );
    assert_eq!((ports.patch_merge_key, ports.patch_strategy.merge), (Some("port"), true));
    assert!(pod.numbered(3).unwrap().atomic_map && pod.numbered(3).unwrap().write_null);
    assert!(pod.numbered(4).unwrap().inline && pod.field("source").is_none());
    let extra = Type::Map(Box::new(Type::WrappedList(Box::new(Type::String))));
    assert_eq!(pod.numbered(5).unwrap().ty, extra);
    assert_eq!(pod.numbered(0), None);
}

#[test]
fn attributes_are_read() {
    let definitions = parse(CORE).unwrap();
    let port = definitions.get("io.k8s.core.v1.Port").unwrap();
    assert!(port.atomic_map);
    let union = Union { discriminator: None, fields: vec!["port", "protocol"] };
    assert_eq!(port.union, Some(union));
    assert!(port.fields[0].required && port.fields[0].keep_empty);
    assert_eq!(port.fields[1].enumeration, ["", "TCP", "U D P"]);
    assert_eq!(port.fields[1].default, Some("\"TCP or UDP\""));
    let source = definitions.get("io.k8s.core.v1.Source").unwrap();
    let strategy = PatchStrategy { merge: true, retain_keys: true, replace: false };
    assert_eq!(source.fields[0].patch_strategy, strategy);
    assert!(source.fields[0].granular_map && !source.fields[0].atomic_map);
    assert_eq!(definitions.iter().count(), 4);
}

#[rstest]
#[case("package p\np.A\n  x name string", 3, Problem::BadNumber("x"))]
#[case("package p\np.A\n  1 name", 3, Problem::IncompleteField)]
#[case("package p\np.A\n  1 name Missing", 3, Problem::UnknownType("Missing"))]
#[case("package p\np.A\n  1 name []q.B", 3, Problem::UnknownType("q.B"))]
#[case("package p\np.A\n  1 name string big", 3, Problem::UnknownAttribute("big"))]
#[case("package p\np.A\n  1 name string list=bag", 3, Problem::UnknownAttribute("list=bag"))]
#[case("package p\np.A\n  1 a string\n  1 b string", 4, Problem::RepeatedNumber(1))]
#[case("package p\np.A\n  1 a string default={", 3, Problem::BadDefault("{"))]
#[case("package p\np.A\np.A", 3, Problem::RepeatedDefinition("p.A"))]
#[case("package p\np.A kind=v1/A", 2, Problem::BadKind("kind=v1/A"))]
#[case("package p\n  1 name string", 2, Problem::NoDefinition)]
#[case("p.A", 1, Problem::NoPackage)]
fn mistakes_have_their_line(
    #[case] text: &'static str,
    #[case] line: usize,
    #[case] problem: Problem,
) {
    assert_eq!(parse(text).unwrap_err(), DefinitionsError { file: "core", line, problem });
}

#[test]
fn changes_replace_and_remove_definitions() {
    const CHANGES: &str = "\
package io.k8s.core.v1
removed io.k8s.core.v1.Source

io.k8s.core.v1.Pod kind=/v1/Pod
  2 ports []Port

io.k8s.core.v1.Door
  1 port Port
";
    let base = [("core", CORE), ("meta", META)];
    let definitions = Definitions::parse_changes(&base, &[("changes", CHANGES)]).unwrap();
    let names: Vec<_> = definitions.iter().map(|definition| definition.name).collect();
    let core = ["Port", "Pod", "Door"].map(|name| format!("io.k8s.core.v1.{name}"));
    assert_eq!(names, [&*core[0], "io.k8s.meta.v1.ObjectMeta", &core[1], &core[2]]);
    assert_eq!(definitions.kind("", "v1", "Pod").unwrap().fields.len(), 1);
    assert_eq!(definitions.kind("old", "v1beta1", "Pod"), None);
    let error = Definitions::parse_changes(&[], &[("changes", CHANGES)]).unwrap_err();
    let problem = Problem::UnknownType("Port");
    assert_eq!(error, DefinitionsError { file: "changes", line: 5, problem });
}
