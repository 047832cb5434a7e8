//! The reference page of the language is generated.

use std::path::Path;

use kubeproof_cases::{Catalogue, reference};

use crate::bless;

#[test]
fn the_committed_page_is_that_of_the_types() {
    let catalogue = Catalogue::embedded().unwrap_or_else(|errors| panic!("{errors}"));
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/case-language.md");
    bless::compare(&page, &reference(&catalogue))
        .unwrap_or_else(|difference| panic!("{difference}"));
}
