//! The catalogue that the program carries is right.

use kubeproof_cases::Catalogue;

#[test]
fn the_embedded_catalogue_is_right() {
    let catalogue = Catalogue::embedded().unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(catalogue.requirements.len(), 439);
    assert!(!catalogue.cases.is_empty());
    assert!(catalogue.subjects.iter().filter(|subject| subject.standard).count() == 4);
}
