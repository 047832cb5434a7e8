//! Tests with small files in the form of the published ones.

use std::fs;
use std::path::Path;

use rstest::rstest;
use serde_json::json;
use tempfile::TempDir;

use super::*;

const PROTO: &str = "
package k8s.io.api.farm.v1;

message Barn {
  optional .k8s.io.apimachinery.pkg.apis.meta.v1.ObjectMeta metadata = 1;
  repeated Animal animals = 2;
  map<string, .k8s.io.apimachinery.pkg.api.resource.Quantity> feed = 3;
  optional Roof roof = 4;
  map<string, Names> names = 5;
  optional .k8s.io.apimachinery.pkg.apis.meta.v1.Time built = 6;
}

message Roof {
  optional string material = 1;
}

message Animal {
  optional string name = 1;
  optional int32 legs = 2;
}

message Names {
  repeated string items = 1;
}
";

const GO: &str = "
import (
\tmetav1 \"k8s.io/apimachinery/pkg/apis/meta/v1\"
)

type Barn struct {
\tmetav1.TypeMeta `json:\",inline\"`
\tmetav1.ObjectMeta `json:\"metadata,omitempty\" protobuf:\"bytes,1,opt,name=metadata\"`
\tAnimals []Animal `json:\"animals\" protobuf:\"bytes,2,rep,name=animals\"`
\tFeed map[string]resource.Quantity `json:\"feed,omitempty\" protobuf:\"bytes,3,rep,name=feed\"`
\tRoof `json:\",inline\" protobuf:\"bytes,4,opt,name=roof\"`
\tNames map[string]Names `json:\"names,omitempty\" protobuf:\"bytes,5,rep,name=names\"`
\tBuilt metav1.Time `json:\"built,omitempty\" protobuf:\"bytes,6,opt,name=built\"`
}

type Roof struct {
\tMaterial Material `json:\"material,omitempty\" protobuf:\"bytes,1,opt,name=material\"`
}

// +enum
type Material string

const (
\tStraw Material = \"Straw\"
\tOldWood Material = \"Old wood\"
)

type Animal struct {
\tName string `json:\"name\" protobuf:\"bytes,1,opt,name=name\"`
\tLegs *int32 `json:\"legs,omitempty\" protobuf:\"varint,2,opt,name=legs\"`
}

type Names []string
";

const EXPECTED: &str = r#"package io.k8s.api.farm.v1

io.k8s.api.farm.v1.Animal union=name:legs
  1 name string required keep default=""
  2 legs int32 keep

io.k8s.api.farm.v1.Barn kind=farm/v1/Barn
  0 kind string
  0 apiVersion string
  1 metadata io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta default={}
  2 animals []Animal required null list=map keys=name merge=name strategy=merge
  3 feed {}quantity
  4 roof Roof inline
  5 names {}wrapped[]string
  6 built time null

io.k8s.api.farm.v1.Roof
  1 material string enum=Old wood,Straw
"#;

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Returns a checkout with one group. `extra` is a further published field.
fn checkout(extra: &str) -> TempDir {
    let directory = TempDir::new().unwrap();
    let root = directory.path();
    let meta =
        "{\"$ref\": \"#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta\"}";
    let meta: serde_json::Value = serde_json::from_str(meta).unwrap();
    let mut barn = json!({
        "required": ["animals"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"allOf": [meta], "default": {}},
            "animals": {
                "type": "array",
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "x-kubernetes-patch-merge-key": "name", "x-kubernetes-patch-strategy": "merge",
            },
            "material": {"type": "string"},
        },
        "x-kubernetes-group-version-kind": [{"group": "farm", "version": "v1", "kind": "Barn"}],
    });
    barn["properties"][extra] = json!({"type": "string"});
    let animal = json!({
        "required": ["name"],
        "properties": {"name": {"default": ""}},
        "x-kubernetes-unions": [
            {"discriminator": "name", "fields-to-discriminateBy": {"legs": "Legs"}}
        ],
    });
    let document = json!({"components": {"schemas": {
        "io.k8s.api.farm.v1.Barn": barn, "io.k8s.api.farm.v1.Animal": animal,
    }}});
    write(root, "api/openapi-spec/v3/apis__farm__v1_openapi.json", &document.to_string());
    let beta = json!({"components": {"schemas": {"io.k8s.api.farm.v1beta1.Barn": {}}}});
    write(root, "api/openapi-spec/v3/apis__farm__v1beta1_openapi.json", &beta.to_string());
    write(root, "staging/src/k8s.io/api/farm/v1/generated.proto", PROTO);
    write(root, "staging/src/k8s.io/api/farm/v1/types.go", GO);
    let meta = "staging/src/k8s.io/apimachinery/pkg/apis/meta/v1";
    write(root, &format!("{meta}/generated.proto"), "message ObjectMeta {\n}\n");
    write(root, &format!("{meta}/types.go"), "type ObjectMeta struct {\n}\n");
    write(root, "staging/src/k8s.io/api/apidiscovery/v2/generated.proto", "");
    write_discovery(root);
    directory
}

fn write_discovery(root: &Path) {
    let core = json!({"resources": [
        {"name": "pods", "kind": "Pod", "namespaced": true, "singularName": "pod",
         "shortNames": ["po"], "verbs": ["create", "get"]},
        {"name": "pods/eviction", "kind": "Eviction", "group": "policy", "version": "v1",
         "namespaced": true, "singularName": "", "verbs": ["create"]},
    ]});
    write(root, "api/discovery/api__v1.json", &core.to_string());
    let barns = json!([{
        "resource": "barns", "singularResource": "barn", "scope": "Cluster",
        "responseKind": {"group": "", "version": "", "kind": "Barn"},
        "verbs": write::ALL_VERBS, "categories": ["all", "farms"],
        "subresources": [{
            "subresource": "status", "verbs": ["get"],
            "responseKind": {"group": "", "version": "", "kind": "Barn"},
        }],
    }]);
    let groups = json!({"items": [{
        "metadata": {"name": "farm"},
        "versions": [
            {"version": "v1", "resources": barns},
            {"version": "v1beta1", "resources": []},
        ],
    }]});
    write(root, "api/discovery/aggregated_v2.json", &groups.to_string());
}

#[test]
fn messages_structures_and_schemas_are_joined() {
    let directory = checkout("material");
    let files = generate(directory.path().to_owned()).unwrap();
    let names: Vec<_> = files.keys().map(String::as_str).collect();
    assert_eq!(names, ["apidiscovery.v2.types", "farm.v1.types", "meta.v1.types", "resources.txt"]);
    assert_eq!(files["farm.v1.types"], EXPECTED);
}

#[test]
fn resources_have_subresources() {
    let directory = checkout("material");
    let files = generate(directory.path().to_owned()).unwrap();
    let expected = "\
/v1
  pods Pod namespaced singular=pod verbs=create,get short=po
    eviction policy/v1/Eviction verbs=create
farm/v1
  barns Barn cluster singular=barn verbs=* categories=all,farms
    status Barn verbs=get
";
    assert_eq!(files["resources.txt"], expected);
}

#[rstest]
#[case("colour", "the published field `colour` is missing in generated.proto")]
fn each_published_field_has_data(#[case] extra: &str, #[case] message: &str) {
    let directory = checkout(extra);
    let error = generate(directory.path().to_owned()).unwrap_err();
    assert!(format!("{error:#}").ends_with(message), "{error:#}");
}
