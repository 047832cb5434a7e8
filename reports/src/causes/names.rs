//! The list of the results of a cause, in few words.

use std::collections::BTreeMap;

use crate::document::Record;

/// Maximum subjects of a case that are named.
const NAMED: usize = 2;

/// Returns the names of results. Results of one case are combined: `watch/ends @ 5 subjects`.
pub fn compressed(results: &[&Record]) -> Vec<String> {
    let mut cases: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for record in results {
        let subjects = cases.entry(&record.id).or_default();
        // With --repeat, a subject has several results.
        if !subjects.contains(&record.subject.as_str()) {
            subjects.push(&record.subject);
        }
    }
    cases.into_iter().map(|(case, subjects)| name(case, &subjects)).collect()
}

fn name(case: &str, subjects: &[&str]) -> String {
    let is_protocol = |subject: &&str| subject.contains('/');
    match subjects {
        [] | [""] => case.to_owned(),
        few if few.len() <= NAMED => format!("{case} @ {}", few.join(", ")),
        many if many.iter().all(is_protocol) => format!("{case} @ {} protocols", many.len()),
        many => format!("{case} @ {} subjects", many.len()),
    }
}
