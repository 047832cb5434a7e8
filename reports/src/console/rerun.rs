//! The command that repeats the failures of a run.

use std::collections::{BTreeMap, BTreeSet};

use kubeproof_harness::event::Verdict;

use super::Options;
use crate::document::{Document, Record, RequiredFeature};

/// Maximum patterns in the command.
const NAMED: usize = 4;

/// Returns the command, or `None` without failures and for results of files.
pub(super) fn command(document: &Document, options: &Options) -> Option<String> {
    let bad = document.failures(options.strict).chain(document.errors());
    let bad: Vec<&Record> = bad.collect();
    if bad.is_empty() || options.command.is_empty() {
        return None;
    }
    let required: Vec<RequiredFeature<'_>> =
        bad.iter().filter_map(|record| record.required_feature()).collect();
    let has_cases = required.len() < bad.len();
    // A profile is judged by all its cases.
    let needs_all = required.iter().any(|feature| matches!(feature, RequiredFeature::Profile(_)));
    let mut words = vec![options.command.clone()];
    words.extend(required.iter().map(ToString::to_string));
    if has_cases && !needs_all {
        words.push(match &options.json {
            Some(path) => format!("--rerun {}", path.display()),
            None => only(document, &bad),
        });
    }
    Some(words.join(" "))
}

/// Returns the option that selects the results.
fn only(document: &Document, bad: &[&Record]) -> String {
    let mut subjects: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for record in bad.iter().filter(|record| record.required_feature().is_none()) {
        subjects.entry(&record.id).or_default().insert(&record.subject);
    }
    // The run may have left out other subjects of a case.
    let selects = document.head.command.split(' ').any(|word| word.starts_with("--only"));
    let is_partial = |id: &str, failing: &BTreeSet<&str>| {
        if selects {
            return !failing.contains("");
        }
        let of_case = document.results.iter().filter(|record| record.id == id);
        let mut judged = of_case.filter(|record| record.verdict != Verdict::Skip);
        judged.any(|record| !failing.contains(record.subject.as_str()))
    };
    let mut narrow = Vec::new();
    for (id, failing) in &subjects {
        if is_partial(id, failing) {
            narrow.extend(failing.iter().map(|subject| format!("{id}@{subject}")));
        } else {
            narrow.push((*id).to_owned());
        }
    }
    if narrow.len() <= NAMED {
        format!("--only {}", narrow.join(" "))
    } else if subjects.len() <= NAMED {
        format!("--only {}", subjects.into_keys().collect::<Vec<_>>().join(" "))
    } else {
        "--only ID.. (or add --json FILE, then --rerun FILE)".to_owned()
    }
}
