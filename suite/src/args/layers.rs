//! Options of `kubeproof run` from a configuration file and from the environment.
//!
//! Both become arguments in front of those of the command line, so one parser checks them all. The
//! command line takes precedence over the environment, and the environment over the file.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, Command};

use super::config_file::{self, Setting};
use crate::error::Error;

/// The configuration file that a run reads if it exists.
const DEFAULT_FILE: &str = "kubeproof.toml";

/// The prefix of environment variables.
const PREFIX: &str = "KUBEPROOF_";

/// Options that exclude each other. One of them replaces the others of a lower layer.
const EXCLUSIVE: [&[&str]; 6] = [
    &["server", "kubeconfig"],
    &["token", "token-file"],
    &["certificate-authority", "insecure-skip-tls-verify"],
    &["oracle-token", "oracle-token-file"],
    &["oracle-certificate-authority", "oracle-insecure-skip-tls-verify"],
    &["quiet", "verbose"],
];

/// Options that describe a target. A target of the command line or the environment replaces the
/// whole target of the file, so that no server receives the credential of another one.
const TARGET: [&str; 11] = [
    "server",
    "kubeconfig",
    "context",
    "token",
    "token-file",
    "certificate-authority",
    "insecure-skip-tls-verify",
    "client-certificate",
    "client-key",
    "as",
    "second-token",
];

/// Options that apply only to `--server`.
const OF_SERVER: &[&str] = &[
    "token",
    "token-file",
    "certificate-authority",
    "insecure-skip-tls-verify",
    "client-certificate",
    "client-key",
];

/// Options that apply only to `--kubeconfig`.
const OF_KUBECONFIG: &[&str] = &["context"];

/// Options that apply to any target but the bundled server.
const OF_ANY: &[&str] = &["as", "second-token"];

/// Prefix of the options that apply only to `--oracle`. Another oracle replaces them as a target
/// does.
const OF_ORACLE: &str = "oracle-";

/// Returns the arguments of the process with those of the configuration file and the environment.
/// Only `run` has them. The result begins with the name of the program.
pub(super) fn expand(
    arguments: Vec<OsString>,
    environment: impl Iterator<Item = (OsString, OsString)>,
    definition: &mut Command,
) -> Result<Vec<OsString>, Error> {
    let Some(at) = place_of_run(&arguments) else { return Ok(arguments) };
    definition.build();
    let Some(run) = definition.find_subcommand("run") else { return Ok(arguments) };
    let given = given(&arguments[at + 1..], run);
    let variables: BTreeMap<String, String> = environment
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| name.starts_with(PREFIX))
        .collect();
    let environment = from_environment(&variables, run)?;
    let file = config_path(&arguments[at + 1..], &variables);
    let file = match &file {
        Some(path) => config_file::read(path, |name| kind(run, name))?,
        None => Vec::new(),
    };
    let settings = effective(&given, environment, file);
    let mut expanded = arguments[..=at].to_vec();
    expanded.extend(settings.iter().flat_map(|setting| words(setting, run)));
    expanded.extend_from_slice(&arguments[at + 1..]);
    Ok(expanded)
}

/// The kinds of values that an option takes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    /// No value: present or absent.
    Flag,
    /// No value, may be repeated.
    Count,
    /// One value.
    One { is_path: bool },
    /// One value, or none: present.
    Optional { is_path: bool },
    /// Several values.
    Many { is_path: bool },
}

/// Returns the kind of an option of `run`, or the nearest name.
fn kind(run: &Command, name: &str) -> Result<Kind, Option<String>> {
    let names = || run.get_arguments().filter_map(Arg::get_long).filter(|name| is_layered(name));
    let argument = run
        .get_arguments()
        .find(|argument| argument.get_long() == Some(name) && is_layered(name))
        .ok_or_else(|| kubeproof_harness::plan::nearest(name, names()))?;
    let is_path = argument.get_value_parser().type_id() == clap::value_parser!(PathBuf).type_id();
    let takes_none = argument.get_num_args().is_some_and(|range| range.min_values() == 0);
    Ok(match argument.get_action() {
        ArgAction::SetTrue => Kind::Flag,
        ArgAction::Count => Kind::Count,
        ArgAction::Append => Kind::Many { is_path },
        _ if takes_none => Kind::Optional { is_path },
        _ => Kind::One { is_path },
    })
}

/// Returns whether a configuration file may hold an option.
fn is_layered(name: &str) -> bool {
    !["help", "version", "config"].contains(&name)
}

/// Returns the index of `run` in the arguments. Only `--color` can precede a command.
fn place_of_run(arguments: &[OsString]) -> Option<usize> {
    let mut at = 1;
    while let Some(word) = arguments.get(at)?.to_str() {
        match word {
            "run" => return Some(at),
            "--color" => at += 2,
            _ if word.starts_with("--color=") => at += 1,
            _ => return None,
        }
    }
    None
}

/// Returns the long names of the options that the command line gives.
fn given(arguments: &[OsString], run: &Command) -> Vec<String> {
    let words = arguments.iter().filter_map(|word| word.to_str()).take_while(|word| *word != "--");
    let mut names = Vec::new();
    for word in words {
        if let Some(long) = word.strip_prefix("--") {
            names.push(long.split('=').next().unwrap_or_default().to_owned());
        } else if let Some(shorts) = word.strip_prefix('-') {
            let of_short = |short| run.get_arguments().find(|arg| arg.get_short() == Some(short));
            let longs = shorts.chars().map_while(of_short).filter_map(Arg::get_long);
            names.extend(longs.map(str::to_owned));
        }
    }
    names
}

fn config_path(arguments: &[OsString], variables: &BTreeMap<String, String>) -> Option<PathBuf> {
    let mut words = arguments.iter().filter_map(|word| word.to_str());
    while let Some(word) = words.next() {
        if word == "--config" {
            return words.next().map(PathBuf::from);
        }
        if let Some(path) = word.strip_prefix("--config=") {
            return Some(PathBuf::from(path));
        }
    }
    if let Some(path) = variables.get("KUBEPROOF_CONFIG") {
        return Some(PathBuf::from(path));
    }
    let default = Path::new(DEFAULT_FILE);
    default.exists().then(|| default.to_owned())
}

/// Returns the settings of the environment. Variables that name no option belong to others.
fn from_environment(
    variables: &BTreeMap<String, String>,
    run: &Command,
) -> Result<Vec<Setting>, Error> {
    let mut settings = Vec::new();
    for (variable, value) in variables {
        let name = variable[PREFIX.len()..].to_ascii_lowercase().replace('_', "-");
        let Ok(kind) = kind(run, &name) else { continue };
        let values = match kind {
            Kind::Flag => vec![truth(variable, value)?.to_string()],
            Kind::Many { .. } => value.split_whitespace().map(str::to_owned).collect(),
            Kind::Count | Kind::One { .. } | Kind::Optional { .. } => vec![value.clone()],
        };
        settings.push(Setting { name, values });
    }
    Ok(settings)
}

fn truth(variable: &str, value: &str) -> Result<bool, Error> {
    match value.to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Ok(true),
        "" | "0" | "false" | "no" | "off" => Ok(false),
        _ => Err(Error::Variable { name: variable.to_owned(), value: value.to_owned() }),
    }
}

/// Returns the settings that the command line does not replace.
fn effective(given: &[String], environment: Vec<Setting>, file: Vec<Setting>) -> Vec<Setting> {
    let names = |settings: &[Setting]| settings.iter().map(|one| one.name.clone()).collect();
    let names_target = |names: &[String]| {
        names.iter().any(|name| ["server", "kubeconfig"].contains(&name.as_str()))
    };
    let of_environment: Vec<String> = names(&environment);
    let mut higher = given.to_vec();
    let mut kept: Vec<Setting> =
        environment.into_iter().filter(|one| !is_replaced(&one.name, &higher)).collect();
    let other_target = names_target(given) || names_target(&of_environment);
    let names_oracle = |names: &[String]| names.iter().any(|name| name == "oracle");
    let other_oracle = names_oracle(given) || names_oracle(&of_environment);
    higher.extend(of_environment);
    let of_other_server = |name: &str| {
        (other_target && TARGET.contains(&name)) || (other_oracle && name.starts_with(OF_ORACLE))
    };
    let stays = |one: &Setting| !is_replaced(&one.name, &higher) && !of_other_server(&one.name);
    kept.extend(file.into_iter().filter(stays));
    let has =
        |name: &str| given.iter().any(|one| one == name) || kept.iter().any(|one| one.name == name);
    let (server, kubeconfig, oracle) = (has("server"), has("kubeconfig"), has("oracle"));
    kept.retain(|one| {
        let name = one.name.as_str();
        (server || !OF_SERVER.contains(&name))
            && (kubeconfig || !OF_KUBECONFIG.contains(&name))
            && (server || kubeconfig || !OF_ANY.contains(&name))
            && (oracle || !name.starts_with(OF_ORACLE))
    });
    kept
}

fn is_replaced(name: &str, by: &[String]) -> bool {
    let same = |other: &String| {
        other == name
            || EXCLUSIVE.iter().any(|set| set.contains(&name) && set.contains(&other.as_str()))
    };
    by.iter().any(same)
}

/// Returns the arguments of a setting.
fn words(setting: &Setting, run: &Command) -> Vec<OsString> {
    let Setting { name, values } = setting;
    let first = values.first().map(String::as_str).unwrap_or_default();
    let flag = || OsString::from(format!("--{name}"));
    match kind(run, name) {
        Ok(Kind::Flag) if first == "true" => vec![flag()],
        Ok(Kind::Flag) | Err(_) => Vec::new(),
        Ok(Kind::Count) => vec![flag(); first.parse().unwrap_or(1)],
        Ok(Kind::Optional { .. }) if ["", "true"].contains(&first) => vec![flag()],
        Ok(Kind::Optional { .. } | Kind::One { .. } | Kind::Many { .. }) => {
            values.iter().map(|value| format!("--{name}={value}").into()).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;
    use rstest::rstest;

    use super::super::low::Cli;
    use super::*;

    fn expanded(file: &str, variables: &[(&str, &str)], line: &str) -> Result<String, Error> {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("kubeproof.toml");
        std::fs::write(&path, file).expect("written");
        let mut words: Vec<OsString> = vec!["kubeproof".into()];
        words.extend(line.split_whitespace().map(OsString::from));
        let config = ("KUBEPROOF_CONFIG".into(), path.into());
        let variables = variables.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        let all = expand(words, variables.chain([config]), &mut Cli::command())?;
        let root = format!("{}/", directory.path().display());
        let all = all[1..].iter().map(|word| word.to_string_lossy().replace(&root, "DIR/"));
        Ok(all.collect::<Vec<_>>().join(" "))
    }

    #[rstest]
    #[case::only_the_line("", &[], "run --jobs 3", "run --jobs 3")]
    #[case::file("jobs = 2\nstrict = true", &[], "run", "run --jobs=2 --strict")]
    #[case::off("strict = false", &[], "run", "run")]
    #[case::lists("only = [\"a/*\", \"b/*\"]", &[], "run", "run --only=a/* --only=b/*")]
    #[case::paths("junit = \"out.xml\"", &[], "run", "run --junit=DIR/out.xml")]
    #[case::counts("verbose = 2", &[], "run", "run --verbose --verbose")]
    #[case::color("color = \"never\"", &[], "run", "run --color=never")]
    #[case::environment("", &[("KUBEPROOF_ONLY", "a/* b/*")], "run", "run --only=a/* --only=b/*")]
    #[case::environment_wins("jobs = 2", &[("KUBEPROOF_JOBS", "3")], "run", "run --jobs=3")]
    #[case::line_wins("jobs = 2", &[("KUBEPROOF_JOBS", "3")], "run --jobs=4", "run --jobs=4")]
    #[case::switched_off("strict = true", &[("KUBEPROOF_STRICT", "0")], "run", "run")]
    #[case::exclusive("verbose = 1", &[], "run -q", "run -q")]
    #[case::other_variables("", &[("KUBEPROOF_BLESS", "1"), ("PATH", "x")], "run", "run")]
    #[case::other_commands("jobs = 2", &[("KUBEPROOF_JOBS", "3")], "list", "list")]
    #[case::after_color("jobs = 2", &[], "--color never run", "--color never run --jobs=2")]
    fn options_come_from_three_layers(
        #[case] file: &str,
        #[case] variables: &[(&str, &str)],
        #[case] line: &str,
        #[case] expected: &str,
    ) {
        assert_eq!(expanded(file, variables, line).expect("valid"), expected);
    }

    const STAGING: &str = "server = \"https://staging\"\ntoken-file = \"staging.token\"\n";

    #[rstest]
    #[case::of_the_file(&[], "run", "run --server=https://staging --token-file=DIR/staging.token")]
    #[case::other_server(&[], "run --server https://b", "run --server https://b")]
    #[case::kubeconfig(&[("KUBEPROOF_KUBECONFIG", "")], "run", "run --kubeconfig")]
    #[case::own_token(
        &[("KUBEPROOF_TOKEN", "t")],
        "run",
        "run --token=t --server=https://staging"
    )]
    #[case::token_of_the_environment(
        &[("KUBEPROOF_TOKEN", "t")],
        "run --server https://b",
        "run --token=t --server https://b"
    )]
    #[case::unused_token(&[("KUBEPROOF_TOKEN", "t")], "run --kubeconfig f", "run --kubeconfig f")]
    fn a_credential_reaches_only_its_server(
        #[case] variables: &[(&str, &str)],
        #[case] line: &str,
        #[case] expected: &str,
    ) {
        assert_eq!(expanded(STAGING, variables, line).expect("valid"), expected);
    }

    #[test]
    fn credentials_do_not_apply_to_the_bundled_server() {
        let variables = [("KUBEPROOF_TOKEN", "t"), ("KUBEPROOF_AS", "u")];
        assert_eq!(expanded("", &variables, "run").expect("valid"), "run");
    }

    #[rstest]
    #[case("job = 2", "has no option \"job\"; did you mean \"jobs\"?")]
    #[case("config = \"x\"", "has no option \"config\"")]
    #[case("jobs = [1]", "jobs: expected one value")]
    #[case("strict = 1", "strict: expected true or false")]
    #[case("only = \"a\"\n[x]\ny = 1", "has no option \"x\"")]
    #[case("jobs =", "1:")]
    fn mistakes_in_the_file_are_reported(#[case] file: &str, #[case] expected: &str) {
        let error = expanded(file, &[], "run").expect_err("a mistake").to_string();
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn a_variable_without_a_truth_value_is_an_error() {
        let error = expanded("", &[("KUBEPROOF_STRICT", "maybe")], "run").expect_err("no truth");
        let expected = "KUBEPROOF_STRICT is \"maybe\"; expected true or false";
        assert_eq!(error.to_string(), expected);
    }
}
