//! Results for features that the user requires (`--require`, `--require-profile`), so that a gate
//! fails when a target loses one and its cases are skipped.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use kubeproof_cases::Profile;
use kubeproof_cases::case::{Capability, Level};
use serde_json::json;

use crate::capability::{Capabilities, name_of};
use crate::event::{CaseResult, CheckResult, Verdict};
use crate::plan::Required;
use crate::verdict::synthetic;

/// The results of each profile so far.
#[derive(Debug, Default)]
pub(super) struct ProfileTally(Mutex<BTreeMap<Profile, Counts>>);

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    judged: usize,
    skipped: usize,
}

impl ProfileTally {
    /// Counts a result.
    pub(super) fn add(&self, result: &CaseResult) {
        let Some(profile) = result.profile else { return };
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let counts = counts.entry(profile).or_default();
        match result.verdict {
            Verdict::Skip => counts.skipped += 1,
            _ => counts.judged += 1,
        }
    }

    fn of(&self, profile: Profile) -> Counts {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.get(&profile).copied().unwrap_or_default()
    }
}

/// Returns a result for each required capability and profile.
pub(super) fn results(
    required: &Required,
    capabilities: &Capabilities,
    tally: &ProfileTally,
) -> Vec<CaseResult> {
    let of_capabilities = required.capabilities.iter().map(|capability| {
        let name = name_of(*capability);
        let lack = capabilities.missing(*capability).map(|reason| reason.to_string());
        result("capability", &name, lack)
    });
    let of_profiles = required
        .profiles
        .iter()
        .map(|profile| result("profile", profile.name(), lack_of_profile(tally.of(*profile))));
    of_capabilities.chain(of_profiles).collect()
}

/// Returns why a target lacks a profile. Cases about optional features may be skipped, but not most
/// cases.
fn lack_of_profile(counts: Counts) -> Option<String> {
    let Counts { judged, skipped } = counts;
    match judged + skipped {
        0 => Some("the options select no case of the profile".to_owned()),
        total if skipped > judged => Some(format!("{skipped} of {total} results are skipped")),
        _ => None,
    }
}

fn result(what: &str, name: &str, lack: Option<String>) -> CaseResult {
    let verdict = if lack.is_some() { Verdict::Fail } else { Verdict::Pass };
    let message = lack.map(|why| format!("the target lacks the {what} {name}: {why}"));
    let message = message.unwrap_or_default();
    let check = CheckResult {
        expected: json!({what: name}),
        message: message.clone(),
        means: None,
        ..synthetic("offered".to_owned(), verdict, "")
    };
    CaseResult {
        id: format!("required/{name}"),
        subject: String::new(),
        level: Level::Must,
        profile: None,
        requirements: Vec::new(),
        summary: format!("The target offers the {what} {name}"),
        why: Some(format!("The command line of the run requires the {what}.")),
        verdict,
        reason: message,
        skip: None,
        duration: Duration::ZERO,
        checks: vec![check],
        exchanges: Vec::new(),
        known: None,
    }
}

impl Required {
    /// Returns the number of results that the requirements add to a run.
    pub(super) fn count(&self) -> usize {
        self.capabilities.len() + self.profiles.len()
    }

    /// Returns the capabilities that a run must probe for.
    pub(crate) fn probes(&self) -> impl Iterator<Item = Capability> + '_ {
        self.capabilities.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::testing;

    #[test]
    fn each_required_feature_has_a_result() {
        let mut capabilities = Capabilities::default();
        capabilities.set.insert(Capability::Crds);
        let required = Required {
            capabilities: vec![Capability::Crds, Capability::JsonPatch],
            profiles: vec![Profile::Read, Profile::Watch],
        };
        let tally = ProfileTally::default();
        tally.add(&CaseResult { profile: Some(Profile::Read), ..testing::result("a/b", "") });
        let results = results(&required, &capabilities, &tally);
        assert_eq!(results.len(), required.count());
        let found: Vec<_> =
            results.iter().map(|one| (one.id.as_str(), one.verdict, one.reason.as_str())).collect();
        assert_eq!(
            found,
            [
                ("required/crds", Verdict::Pass, ""),
                (
                    "required/json-patch",
                    Verdict::Fail,
                    "the target lacks the capability json-patch: the server does not support \
                     json-patch"
                ),
                ("required/read", Verdict::Pass, ""),
                (
                    "required/watch",
                    Verdict::Fail,
                    "the target lacks the profile watch: the options select no case of the profile"
                ),
            ]
        );
    }

    #[rstest]
    #[case(1, 0, true)]
    #[case(5, 5, true)]
    #[case(5, 6, false)]
    #[case(0, 1, false)]
    #[case(0, 0, false)]
    fn a_profile_may_skip_half_of_its_results(
        #[case] judged: usize,
        #[case] skipped: usize,
        #[case] offered: bool,
    ) {
        assert_eq!(lack_of_profile(Counts { judged, skipped }).is_none(), offered);
    }
}
