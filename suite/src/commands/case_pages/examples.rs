//! Example exchanges, from runs of all cases against the bundled server.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use kubeproof_cases::Catalogue;
use kubeproof_cases::case::{Case, Edition};
use kubeproof_harness::event::{CaseResult, Verdict};
use kubeproof_harness::plan::{RunOptions, Selection, plan};
use kubeproof_harness::run;
use kubeproof_harness::transport::{Client, Limits};
use kubeproof_reference_server::Faults;

use crate::commands::explain::write_exchanges;
use crate::commands::run::target::RunTarget;
use crate::error::Error;

/// Returns the example of each case as text, by the id of the case.
///
/// Each case runs under the newest edition that judges it.
pub(super) async fn examples(catalogue: &Catalogue) -> Result<BTreeMap<String, String>, Error> {
    let mut by_edition: BTreeMap<Edition, Vec<&Case>> = BTreeMap::new();
    for case in &catalogue.cases {
        if let Some(newest) = case.editions.iter().copied().max() {
            by_edition.entry(newest).or_default().push(case);
        }
    }
    let mut examples = BTreeMap::new();
    for (edition, cases) in by_edition {
        add_examples(catalogue, edition, &cases, &mut examples).await?;
    }
    Ok(examples)
}

async fn add_examples(
    catalogue: &Catalogue,
    edition: Edition,
    cases: &[&Case],
    examples: &mut BTreeMap<String, String>,
) -> Result<(), Error> {
    let server = RunTarget::bundled(Faults::none()).await?;
    // The results of all cases hold their responses.
    let limits = Limits { max_held: 2 << 30, ..Limits::default() };
    let client = Client::new(&server.config, limits)?;
    let only = cases.iter().map(|case| case.id.parse()).collect::<Result<_, _>>()?;
    let selection = Selection { only, ..Selection::default() };
    let options = RunOptions { selection, edition, seed: 1, ..RunOptions::default() };
    let plan = plan(catalogue, &client, &options).await?;
    let run = plan.run.clone();
    let mut results = run::results(plan, client, &options).await;
    results.sort_by(|a, b| (&a.id, &a.subject).cmp(&(&b.id, &b.subject)));
    for result in results {
        let CaseResult { id, verdict, .. } = &*result;
        let Some(case) = catalogue.case(id) else { continue };
        if matches!(verdict, Verdict::Pass | Verdict::Deviation) && !examples.contains_key(id) {
            let mut text = Vec::new();
            write_exchanges(case, &result, None, &mut text)?;
            if !text.is_empty() {
                examples.insert(id.clone(), without_run(&String::from_utf8_lossy(&text), &run));
            }
        }
    }
    Ok(())
}

/// Replaces generated names and UIDs by short ones. The search index of the site would contain
/// thousands of them.
fn without_run(text: &str, run: &str) -> String {
    let text = text.replace(&format!("kubeproof-{run}"), "kubeproof");
    let name = format!("kp-{run}-");
    let mut parts = text.split(name.as_str());
    let mut named = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        named.push_str("example");
        named.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    let mut uids: Vec<&str> = Vec::new();
    let is_end = |c: char| !c.is_ascii_hexdigit() && c != '-';
    let mut result = String::with_capacity(named.len());
    for word in named.split_inclusive(is_end) {
        let uid = word.trim_end_matches(is_end);
        if !is_uid(uid) {
            result.push_str(word);
            continue;
        }
        let place = uids.iter().position(|known| *known == uid).unwrap_or_else(|| {
            uids.push(uid);
            uids.len() - 1
        });
        _ = write!(result, "00000000-0000-4000-8000-{:012}", place + 1);
        result.push_str(&word[uid.len()..]);
    }
    result
}

fn is_uid(word: &str) -> bool {
    let lengths = word.split('-').map(str::len);
    word.len() == 36 && lengths.eq([8, 4, 4, 4, 12])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_have_names_and_uids_that_do_not_change() {
        let (one, other) =
            ("99753761-07b7-444a-9341-8175f15e3fee", "0a658dac-c88a-4af7-a36d-5693756c2bcc");
        let text = format!(
            "GET /api/v1/namespaces/kubeproof-d7xna1/pods/kp-d7xna1-20-owned
             {{\"uid\": \"{one}\", \"owner\": \"{other}\", \"same\": \"{one}\"}} kubeproof-policy"
        );
        assert_eq!(
            without_run(&text, "d7xna1"),
            "GET /api/v1/namespaces/kubeproof/pods/example-owned
             {\"uid\": \"00000000-0000-4000-8000-000000000001\", \
             \"owner\": \"00000000-0000-4000-8000-000000000002\", \
             \"same\": \"00000000-0000-4000-8000-000000000001\"} kubeproof-policy"
        );
    }
}
