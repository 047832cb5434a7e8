//! The verdicts from findings.

use kubeproof_cases::case::{Edition, Level, SchemaCheck};
use kubeproof_cases::rule::{Exemption, Rule, SchemaSet};
use rstest::rstest;
use serde_json::{Map, Value, json};

use super::published;
use crate::event::{CheckResult, Verdict};
use crate::schema::rules::judge;

/// The result for a spec with these fields. Those named `old` have a historical exception.
fn judged(fields: &[&str], letter: bool) -> CheckResult {
    let check = SchemaCheck {
        id: "no-nullable".to_owned(),
        rule: Rule::NoNullable,
        level: Level::Must,
        requirements: Vec::new(),
        editions: Edition::ALL.to_vec(),
        history: vec![Exemption {
            rule: Rule::NoNullable,
            at: vec!["* spec.old*".to_owned()],
            because: "clients read it".to_owned(),
        }],
        means: None,
    };
    let spec: Map<String, Value> =
        fields.iter().map(|name| ((*name).to_owned(), json!({"nullable": true}))).collect();
    let published = published(&Value::Object(spec), &json!({}));
    judge(&check, &published.view(SchemaSet::Crds), letter, "step", &|_| None)
}

#[rstest]
#[case::nothing(&[], false, Verdict::Pass, "")]
#[case::one(&["a"], false, Verdict::Fail, "a: it")]
#[case::two(&["a", "b"], false, Verdict::Fail, "a: it; and one more place")]
#[case::three(&["a", "b", "c"], false, Verdict::Fail, "a: it; and 2 more places")]
#[case::by_history(
    &["old", "older"],
    false,
    Verdict::Deviation,
    "old: it (kept by Kubernetes: clients read it); and one more place"
)]
#[case::by_the_letter(
    &["old"],
    true,
    Verdict::Fail,
    "old: it (kept by Kubernetes: clients read it)"
)]
#[case::unexplained_places_come_first(
    &["old", "older", "x", "y"],
    false,
    Verdict::Fail,
    "x: it; and one more place"
)]
fn a_verdict_reports_the_first_place_and_counts_the_others(
    #[case] fields: &[&str],
    #[case] letter: bool,
    #[case] verdict: Verdict,
    #[case] message: &str,
) {
    let result = judged(fields, letter);
    let said = result.message.replace("widgets.v1.example.com spec.", "");
    let said =
        said.replace("the field may be null, which clients cannot distinguish from unset", "it");
    assert_eq!((result.verdict, said.as_str()), (verdict, message));
    assert_eq!(result.places.len(), fields.len());
}
