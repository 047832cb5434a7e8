//! The committed JSON Schemas are those of the types, and every file that names one exists for it.

use std::path::Path;

use kubeproof_cases::schema::schemas;

use crate::bless;

#[test]
fn the_committed_schemas_are_those_of_the_types() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema");
    for file in schemas() {
        let text = format!("{:#}\n", file.schema);
        let path = directory.join(format!("{}.schema.json", file.name));
        bless::compare(&path, &text).unwrap_or_else(|difference| panic!("{difference}"));
    }
}
