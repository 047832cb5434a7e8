//! Steps that contain steps, and design rules.

use schemars::JsonSchema;
use serde::Deserialize;

use super::forms::{Entries, Yaml};
use super::step::RawStep;
use crate::case::{Level, Property};
use crate::rule::{Rule, SchemaSet};
use crate::yaml::Located;

/// Iterations of the same steps. Their results are a list: `ID[0].STEP.status`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawLoop {
    /// The name of the list of results.
    pub(crate) id: Located<String>,
    /// The number of iterations. `${i}` counts them from 0.
    pub(crate) times: Option<Located<u32>>,
    /// A CEL list: one iteration for each item.
    pub(crate) over: Option<Located<String>>,
    /// The variable that holds the item of `over`.
    #[serde(rename = "as")]
    pub(crate) variable: Option<Located<String>>,
    /// The steps of one iteration.
    pub(crate) steps: Located<Vec<Located<RawStep>>>,
}

/// Different steps at the same time. Their results are a list: `ID[0].STEP` is of the first branch.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawTogether {
    /// The name of the list of results, one for each branch.
    pub(crate) id: Located<String>,
    /// The steps of each branch.
    pub(crate) branches: Located<Vec<Located<Vec<Located<RawStep>>>>>,
}

/// Rounds of the same steps, with short growing pauses, until a condition holds. If it never does,
/// the check `ID` fails. It is an error if the server rejected most rounds with 429, 503 or 504, or
/// if slow responses used most of the time. The steps of the last round are `ID.STEP`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawUntil {
    /// The name of the last round's results, and the id of the check.
    pub(crate) id: Located<String>,
    /// The highest number of rounds.
    pub(crate) attempts: Located<u32>,
    /// The condition. It reads the steps of the round by their own names.
    pub(crate) cel: Located<String>,
    /// The steps of one round.
    pub(crate) steps: Located<Vec<Located<RawStep>>>,
}

/// A fragment: its name, or its name and parameters.
#[derive(Debug)]
pub(crate) struct RawUse {
    pub(crate) fragment: Located<String>,
    pub(crate) parameters: Vec<(Located<String>, Located<Yaml>)>,
}

/// A fragment with parameters.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawUseFragment {
    /// The name of the fragment: `fragments/NAME.yaml`.
    #[schemars(schema_with = "super::names::fragment_name")]
    pub(crate) fragment: Located<String>,
    /// Values of its parameters.
    pub(crate) with: Option<Entries<Yaml>>,
}

/// Design rules over the published API.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawSchema {
    /// What the rules judge. The default is `published`.
    #[serde(default)]
    pub(crate) of: SchemaSet,
    /// The rules.
    pub(crate) expect: Located<Vec<Located<RawSchemaCheck>>>,
}

/// A property that holds for each resource of each server.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawExplore {
    /// The id of the check. Unique in the case. It stays when the case is edited.
    pub(crate) id: Located<String>,
    /// The property.
    pub(crate) property: Property,
    /// The number of checks, each with new objects.
    pub(crate) checks: Located<u32>,
}

/// One design rule.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawSchemaCheck {
    /// Unique in the case. It stays when the case is edited.
    pub(crate) id: Located<String>,
    /// The rule.
    pub(crate) rule: Rule,
    /// At most the level of the case and the strongest level among the requirements of the check.
    /// The default is the lower of the two.
    pub(crate) level: Option<Located<Level>>,
    /// The requirements of the case that the rule judges. The default is all of them.
    #[serde(default)]
    #[schemars(schema_with = "super::names::requirement_ids")]
    pub(crate) requirements: Vec<Located<String>>,
    /// What a failure means for users, in one line.
    pub(crate) means: Option<String>,
}
