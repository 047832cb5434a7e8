//! Options from environment variables.

use std::collections::BTreeMap;
use std::ffi::OsString;

use clap::Command;
use kubeproof_harness::plan::nearest;

use super::options::{Kind, is_of_target, kind, names};
use crate::args::config_file::Setting;
use crate::error::Error;

/// The prefix of environment variables.
const PREFIX: &str = "KUBEPROOF_";

/// Variables that are no options: the configuration file, and what tests and packages read.
const OTHERS: [&str; 5] = ["CONFIG", "BLESS", "WHOLE", "REQUIRE_KUBECTL", "CREDENTIAL"];

/// Returns the variables with the prefix.
pub(super) fn variables(
    environment: impl Iterator<Item = (OsString, OsString)>,
) -> BTreeMap<String, String> {
    environment
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| name.starts_with(PREFIX))
        .collect()
}

/// Returns the settings of a command. Variables that name no option belong to others.
pub(super) fn settings(
    variables: &BTreeMap<String, String>,
    command: &Command,
    takes_all: bool,
) -> Result<Vec<Setting>, Error> {
    let mut settings = Vec::new();
    for (variable, value) in variables {
        let name = option(variable);
        let Ok(kind) = kind(command, &name) else { continue };
        if !takes_all && !is_of_target(&name) {
            continue;
        }
        let values = match kind {
            Kind::Flag => vec![truth(variable, value)?.to_string()],
            Kind::Many { .. } => value.split_whitespace().map(str::to_owned).collect(),
            Kind::Count | Kind::One { .. } | Kind::Optional { .. } => vec![value.clone()],
        };
        settings.push(Setting { name, values, source: variable.clone() });
    }
    Ok(settings)
}

/// Returns a warning for each variable whose name is almost that of an option of `run`. Pods have
/// further variables with the prefix, if a service is named `kubeproof`.
pub(super) fn near_misses(variables: &BTreeMap<String, String>, run: &Command) -> Vec<String> {
    let is_unknown = |variable: &&String| {
        kind(run, &option(variable)).is_err() && !OTHERS.contains(&&variable[PREFIX.len()..])
    };
    let warning = |variable: &String| {
        let meant = nearest(&option(variable), names(run))?;
        let meant = meant.to_ascii_uppercase().replace('-', "_");
        Some(format!("{variable} names no option; did you mean {PREFIX}{meant}?"))
    };
    variables.keys().filter(is_unknown).filter_map(warning).collect()
}

/// Returns the long name of the option that a variable stands for.
fn option(variable: &str) -> String {
    variable[PREFIX.len()..].to_ascii_lowercase().replace('_', "-")
}

fn truth(variable: &str, value: &str) -> Result<bool, Error> {
    match value.to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Ok(true),
        "" | "0" | "false" | "no" | "off" => Ok(false),
        _ => Err(Error::Variable { name: variable.to_owned(), value: value.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;
    use rstest::rstest;

    use super::*;
    use crate::args::low::Cli;

    #[rstest]
    #[case("KUBEPROOF_ONYL", Some("KUBEPROOF_ONLY"))]
    #[case("KUBEPROOF_CASE_TIMEOUTS", Some("KUBEPROOF_CASE_TIMEOUT"))]
    #[case("KUBEPROOF_ONLY", None)]
    #[case("KUBEPROOF_CONFIG", None)]
    #[case("KUBEPROOF_BLESS", None)]
    #[case("KUBEPROOF_WHOLE", None)]
    #[case("KUBEPROOF_SERVICE_HOST", None)]
    #[case("KUBEPROOF_SERVICE_PORT", None)]
    #[case("KUBEPROOF_PORT", None)]
    #[case("KUBEPROOF_PORT_443_TCP_ADDR", None)]
    fn names_that_are_almost_right_have_warnings(
        #[case] variable: &str,
        #[case] meant: Option<&str>,
    ) {
        let mut definition = Cli::command();
        definition.build();
        let run = definition.find_subcommand("run").expect("a command");
        let warnings = near_misses(&[(variable.to_owned(), String::new())].into(), run);
        let expected =
            meant.map(|meant| format!("{variable} names no option; did you mean {meant}?"));
        assert_eq!(warnings, Vec::from_iter(expected));
    }
}
