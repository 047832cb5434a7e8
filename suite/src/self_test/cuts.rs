//! Servers that are right and can do less: the whole suite against the bundled server without one capability at a time.
//!
//! A case that needs what is missing is skipped, and says what that is. Nothing fails, nothing ends in an error, and enough
//! still runs: a suite that skips everything has nothing against any server.

use std::collections::BTreeSet;
use std::fmt;

use kubeproof_cases::Catalogue;
use kubeproof_harness::event::Verdict;
use kubeproof_harness::selection::Selection;
use kubeproof_reference_server::{Config, Cut, Cuts};

use super::{MINDFUL, SelfTestError, explain, name, run};

/// Of the user who may read, whom nobody but this process can reach.
const VIEWER_TOKEN: &str = "viewer";

/// What a server lacks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Lack {
    /// This capability.
    Of(Cut),
    /// The right to write, for the user of the run.
    Writes,
}

/// What a case says that empties a collection, where the run has no namespace of its own.
const NOT_ITS_OWN: &str = "not only its own";

/// A server that can do less, and what cases held against it.
#[derive(Clone, Debug)]
pub struct Row {
    /// What it lacks.
    pub lack: Lack,
    /// How many results were no skips.
    pub ran: usize,
    /// How many results were skips that the whole server does not have.
    pub skipped: usize,
    /// What no case should say of a server that is right.
    pub findings: Vec<String>,
}

/// How the whole server does. The default is one that skips nothing.
#[derive(Clone, Debug, Default)]
pub struct Usual {
    ran: usize,
    skipped: BTreeSet<String>,
}

/// What there is to say about one lack.
struct Terms {
    /// What the reason of a skip says, one of these; none, if no case has to be skipped.
    says: &'static [&'static str],
    /// How many of a hundred results of the whole server must still be there.
    least: usize,
    /// A few cases that show it: some that go on, and some that cannot.
    sample: &'static [&'static str],
}

impl Lack {
    /// Every one.
    pub fn all() -> impl Iterator<Item = Self> {
        Cut::all().map(Self::Of).chain([Self::Writes])
    }

    /// The lack of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::all().find(|lack| lack.name() == name)
    }

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Of(cut) => cut.name(),
            Self::Writes => "writes",
        }
    }

    fn config(self) -> Config {
        let config = Config { history: MINDFUL, ..Config::default() };
        match self {
            Self::Of(cut) => Config { cuts: cut.into(), ..config },
            Self::Writes => Config { viewer_token: Some(VIEWER_TOKEN.to_owned()), ..config },
        }
    }

    /// A few cases that show it: some that go on, and some that cannot.
    pub fn sample(self) -> Result<Selection, SelfTestError> {
        let only = self.terms().sample.iter().map(|pattern| pattern.parse()).collect::<Result<_, _>>()?;
        Ok(Selection { only, ..Selection::default() })
    }

    fn terms(self) -> Terms {
        let Self::Of(cut) = self else {
            let says = &["is forbidden", "may not act as others"];
            return Terms {
                says,
                least: 3,
                sample: &["discovery/group-*", "get/*", "users/impersonation-*"],
            };
        };
        let (says, least, sample): (&[&str], usize, &[&str]) = match cut {
            Cut::AggregatedDiscovery => {
                (&["aggregated discovery"], 95, &["discovery/aggregated*", "discovery/group*"])
            }
            Cut::Core => (&["core/v1", "does not serve"], 40, &["create/*", "namespaces/*"]),
            Cut::Crds => (&["customresourcedefinitions"], 55, &["pruning/*", "namespaces/created-active"]),
            Cut::DeleteCollection => {
                (&["the verb deletecollection"], 95, &["deletion/*collection*", "put/missing-object"])
            }
            Cut::FieldSelectors => (&["a field selector"], 95, &["selectors/field-*"]),
            Cut::GarbageCollection => {
                (&["no controllers are at work"], 95, &["deletion/*dependents*", "put/missing-object"])
            }
            Cut::JsonPatch => {
                (&["application/json-patch+json"], 95, &["patch/json-*", "patch/merge-patch-malformed"])
            }
            Cut::MergePatch => {
                (&["application/merge-patch+json"], 85, &["patch/merge-*", "patch/json-patch-malformed"])
            }
            Cut::Namespaces => {
                (&["does not serve namespaces.v1", NOT_ITS_OWN], 90, &["namespaces/*", "put/missing-object"])
            }
            Cut::Node => (
                &["no node of the target is ready"],
                70,
                &["exec/pod-that-there-is-not", "status/put-of-a-pod"],
            ),
            Cut::OpenapiV2 => (&["/openapi/v2"], 95, &["discovery/openapi-*"]),
            Cut::OpenapiV3 => (&["/openapi/v3"], 90, &["discovery/openapi-*", "discovery/group*"]),
            Cut::OtherResources => (
                &[
                    "does not serve",
                    "no resource",
                    "does not review access",
                    "no controllers are at work",
                    "is namespaced",
                    "gadgets.v1.devices.example.com is known",
                    "application/strategic-merge-patch+json",
                    NOT_ITS_OWN,
                ],
                15,
                &["create/*", "put/*", "patch/strategic-*"],
            ),
            Cut::Paging => (&["no paging"], 95, &["list/*page*", "list/limits-*"]),
            Cut::PartialMetadata => {
                (&["PartialObjectMetadataList"], 95, &["serialization/partial-*", "serialization/json-*"])
            }
            Cut::Patch => (&["the verb patch"], 80, &["patch/*", "put/*"]),
            Cut::Pods => (
                &["does not serve pods.v1", "has no subresource proxy"],
                70,
                &["exec/pod-that-there-is-not", "status/*", "log/*-that-*"],
            ),
            Cut::Reviews => (
                // Reviews are the only resources that list few verbs.
                &["does not serve", "does not review access", "nothing that its checks judge"],
                90,
                &["users/*"],
            ),
            Cut::Roles => (&["does not serve roles.v1"], 95, &["users/*"]),
            Cut::Scale => (&["subresource scale"], 95, &["scale/*", "status/missing-object"]),
            Cut::ServerSideApply => {
                (&["application/apply-patch+yaml"], 90, &["apply/creates*", "patch/merge-patch-malformed"])
            }
            Cut::Status => (&["subresource status"], 90, &["status/*"]),
            Cut::StrategicMergePatch => (
                &["application/strategic-merge-patch+json"],
                95,
                &["patch/strategic-*", "put/missing-object"],
            ),
            Cut::StreamingLists => {
                (&["initial events"], 95, &["watch/streaming-list-of-nothing", "watch/one-*"])
            }
            Cut::Streams => (
                &["lists no subresource", "has no subresource proxy"],
                75,
                &["exec/pod-that-there-is-not", "discovery/pods-list*", "status/put-of-a-pod"],
            ),
            Cut::Table => {
                (&["does not come as Table"], 95, &["serialization/table*", "serialization/json-*"])
            }
            Cut::ValidationRules => (&["validation rules"], 95, &["rules/*", "put/missing-object"]),
            Cut::Watch => (&["the verb watch"], 85, &["watch/one-*", "watch/label-*", "put/missing-object"]),
            Cut::WatchBookmarks => {
                (&["carries no bookmark", "initial events"], 95, &["watch/bookmarks*", "watch/one-*"])
            }
            // Cases take it either way.
            Cut::Yaml => (&[], 95, &["serialization/yaml*", "validation/doubled-*"]),
        };
        Terms { says, least, sample }
    }
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Runs the cases against the whole server.
pub async fn usual(catalogue: &Catalogue, selection: &Selection) -> Result<Usual, SelfTestError> {
    let results = run(catalogue, Config { cuts: Cuts::none(), ..Config::default() }, selection).await?;
    let (skipped, ran): (Vec<_>, Vec<_>) = results.iter().partition(|result| result.verdict == Verdict::Skip);
    Ok(Usual { ran: ran.len(), skipped: skipped.into_iter().map(|result| name(result)).collect() })
}

/// Runs the cases against a server that lacks something.
pub async fn row(
    catalogue: &Catalogue,
    lack: Lack,
    usual: &Usual,
    selection: &Selection,
) -> Result<Row, SelfTestError> {
    let results = run(catalogue, lack.config(), selection).await?;
    let Terms { says, least, .. } = lack.terms();
    let mut row = Row { lack, ran: 0, skipped: 0, findings: Vec::new() };
    for result in &results {
        match result.verdict {
            Verdict::Skip if usual.skipped.contains(&name(result)) => {}
            Verdict::Skip => {
                row.skipped += 1;
                if !says.iter().any(|words| result.reason.contains(words)) {
                    row.findings.push(format!(
                        "{} is skipped for another reason: {}",
                        name(result),
                        result.reason
                    ));
                }
            }
            verdict => {
                row.ran += 1;
                if matches!(verdict, Verdict::Fail | Verdict::Error) {
                    row.findings.push(format!("{} {}", name(result), explain(result)));
                }
            }
        }
    }
    if row.skipped == 0 && !says.is_empty() {
        row.findings.push("no case misses it".to_owned());
    }
    if row.ran == 0 || row.ran * 100 < usual.ran * least {
        row.findings.push(format!("only {} results of {} are left, expected {least} %", row.ran, usual.ran));
    }
    Ok(row)
}
