//! Disabled capabilities: the whole suite against conformant servers that lack one capability each.
//!
//! Cases that need the capability are skipped, and the reason of the skip names it. No case fails
//! or ends in an error, and enough cases still run, because a suite that skips everything proves
//! nothing.

mod expected_skips;

use std::collections::BTreeSet;
use std::fmt;

use kubeproof_cases::Catalogue;
use kubeproof_harness::event::{CaseResult, Verdict};
use kubeproof_harness::plan::Selection;
use kubeproof_reference_server::{Capability, Config, DisabledCapabilities};

use self::expected_skips::{ExpectedSkips, WITHOUT_WRITES, expected_skips};
use super::{LONG_HISTORY, SelfTestError, explain, run, title};

/// The token of the read-only user, which only this process can reach.
const VIEWER_TOKEN: &str = "viewer";

/// A capability that a server lacks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum MissingCapability {
    /// A capability of the server.
    Server(Capability),
    /// The permission of the user to write.
    Writes,
}

/// The results of the cases against a server that lacks a capability.
#[derive(Clone, Debug)]
pub struct Row {
    /// The missing capability.
    pub capability: MissingCapability,
    /// The number of results that are not skips.
    pub ran: usize,
    /// The number of skips that the complete server does not have.
    pub skipped: usize,
    /// Results that a conformant server must not get.
    pub findings: Vec<String>,
}

/// The results of the complete server. The default skips nothing.
#[derive(Clone, Debug, Default)]
pub struct Baseline {
    ran: usize,
    skipped: BTreeSet<String>,
}

impl MissingCapability {
    /// Returns all capabilities.
    pub fn all() -> impl Iterator<Item = Self> {
        Capability::all().map(Self::Server).chain([Self::Writes])
    }

    /// Returns the capability with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::all().find(|capability| capability.name() == name)
    }

    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Server(capability) => capability.name(),
            Self::Writes => "writes",
        }
    }

    /// Returns a few cases that need the capability, and a few that do not.
    pub fn sample(self) -> Result<Selection, SelfTestError> {
        let patterns = self.expected().sample.iter().map(|pattern| pattern.parse());
        Ok(Selection { only: patterns.collect::<Result<_, _>>()?, ..Selection::default() })
    }

    fn config(self) -> Config {
        let config = Config { history: LONG_HISTORY, ..Config::default() };
        match self {
            Self::Server(capability) => {
                Config { disabled_capabilities: capability.into(), ..config }
            }
            Self::Writes => Config { viewer_token: Some(VIEWER_TOKEN.to_owned()), ..config },
        }
    }

    fn expected(self) -> ExpectedSkips {
        match self {
            // A capability without an entry may cause no skips, so each skip is a finding.
            Self::Server(capability) => expected_skips(capability).unwrap_or_default(),
            Self::Writes => WITHOUT_WRITES,
        }
    }
}

impl fmt::Display for MissingCapability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Runs the cases against the complete server.
pub async fn baseline(
    catalogue: &Catalogue,
    selection: &Selection,
) -> Result<Baseline, SelfTestError> {
    let config =
        Config { disabled_capabilities: DisabledCapabilities::none(), ..Config::default() };
    let results = run(catalogue, config, selection).await?;
    let skipped = results.iter().filter(|result| result.verdict == Verdict::Skip);
    let skipped: BTreeSet<String> = skipped.map(|result| title(result)).collect();
    let ran = results.iter().filter(|result| result.verdict != Verdict::Skip).count();
    Ok(Baseline { ran, skipped })
}

/// Runs the cases against a server that lacks a capability.
pub async fn row(
    catalogue: &Catalogue,
    capability: MissingCapability,
    baseline: &Baseline,
    selection: &Selection,
) -> Result<Row, SelfTestError> {
    let results = run(catalogue, capability.config(), selection).await?;
    let expected = capability.expected();
    let mut row = Row { capability, ran: 0, skipped: 0, findings: Vec::new() };
    for result in &results {
        row.add(result, &expected, baseline);
    }
    if row.skipped == 0 && !expected.reasons.is_empty() {
        row.findings.push("no case is skipped".to_owned());
    }
    let (ran, of, least) = (row.ran, baseline.ran, expected.least_percent);
    if ran == 0 || ran * 100 < of * least {
        row.findings.push(format!("expected {least} % of the results, got {ran} of {of}"));
    }
    Ok(row)
}

impl Row {
    fn add(&mut self, result: &CaseResult, expected: &ExpectedSkips, baseline: &Baseline) {
        let title = title(result);
        match result.verdict {
            Verdict::Skip if baseline.skipped.contains(&title) => {}
            Verdict::Skip => {
                self.skipped += 1;
                if !expected.includes(result) {
                    let reason = &result.reason;
                    self.findings.push(format!("{title} is skipped for another reason: {reason}"));
                }
            }
            Verdict::Fail | Verdict::Error => {
                self.ran += 1;
                self.findings.push(format!("{title} {}", explain(result)));
            }
            Verdict::Pass | Verdict::Deviation | Verdict::Warn => self.ran += 1,
        }
    }
}
