//! JSON Schemas: the committed ones match the types, and every file names and follows its schema.

use std::fs;
use std::path::Path;

use kubeproof_cases::{Catalogue, schemas};

use crate::{bless, data};

fn embedded() -> Catalogue {
    Catalogue::embedded().unwrap_or_else(|errors| panic!("{errors}"))
}

#[test]
fn the_committed_schemas_are_those_of_the_types() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema");
    for file in schemas(&embedded()) {
        let text = format!("{:#}\n", file.schema);
        let path = directory.join(format!("{}.schema.json", file.name));
        bless::compare(&path, &text).unwrap_or_else(|difference| panic!("{difference}"));
    }
}

#[test]
fn every_file_starts_with_the_path_of_its_schema_and_follows_it() {
    let schemas = schemas(&embedded());
    for path in data::files(&data::folder()) {
        let text = fs::read_to_string(&path).expect("a file");
        let first = text.lines().next().unwrap_or_default();
        let kind = data::kind(&path);
        let named = first.strip_prefix("# yaml-language-server: $schema=").unwrap_or_default();
        let schema = path.parent().expect("a folder").join(named);
        assert!(named.ends_with(&format!("/{kind}.schema.json")), "{}: {first}", path.display());
        assert!(schema.exists(), "{}: {} does not exist", path.display(), schema.display());
        let schema = schemas.iter().find(|schema| schema.name == kind).expect("a schema");
        let errors = schema.check(&path.display().to_string(), &text);
        let errors: Vec<&str> = errors.iter().map(|error| error.message.as_str()).collect();
        assert!(errors.is_empty(), "{}: {errors:?}", path.display());
    }
}

#[test]
fn the_schema_of_cases_completes_requirements_faults_and_subjects() {
    let catalogue = embedded();
    let case = &schemas(&catalogue)[0].schema;
    for (definition, name) in [
        ("RequirementId", "verbs.create"),
        ("FaultName", "create-overwrites"),
        ("SubjectName", "configmaps.v1"),
        ("FragmentName", "running-pod"),
        ("ProtocolName", "command-half-close"),
    ] {
        let known = &case["$defs"][definition]["anyOf"][0]["enum"];
        let known = known.as_array().unwrap_or_else(|| panic!("{definition} lists no names"));
        assert!(known.iter().any(|one| one == name), "{definition} lacks {name}");
    }
}
