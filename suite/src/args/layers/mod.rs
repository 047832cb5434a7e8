//! Options from a configuration file and from the environment.
//!
//! Both become arguments in front of those of the command line, so one parser checks them all. The
//! command line takes precedence over the environment, and the environment over the file.

mod environment;
mod options;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Arg, Command};

pub(super) use self::options::{Kind, kind};
use self::options::{OF_ANY, OF_KUBECONFIG, OF_ORACLE, TARGET, is_replaced};
use super::config_file::{self, Setting};
use crate::error::Error;

/// The configuration file that a run reads if it exists.
const DEFAULT_FILE: &str = "kubeproof.toml";

/// The command that reads all its options from the file and from the environment.
const RUN: &str = "run";

/// The other commands with a target. They read only the target and the limits from the environment.
const WITH_TARGET: [&str; 3] = ["stress", "explore", "clean"];

/// The arguments of the process with those of the other layers.
pub(super) struct Expanded {
    /// Begins with the name of the program.
    pub(super) words: Vec<OsString>,
    /// The settings that became arguments.
    pub(super) added: Vec<Setting>,
    /// Mistakes that do not end the command.
    pub(super) warnings: Vec<String>,
}

/// Returns the arguments of the process with those of the configuration file and the environment.
pub(super) fn expand(
    arguments: Vec<OsString>,
    environment: impl Iterator<Item = (OsString, OsString)>,
    definition: &mut Command,
) -> Result<Expanded, Error> {
    let unchanged = |words| Ok(Expanded { words, added: Vec::new(), warnings: Vec::new() });
    let Some((at, name)) = command(&arguments) else { return unchanged(arguments) };
    let name = name.to_owned();
    definition.build();
    let (Some(command), Some(run)) =
        (definition.find_subcommand(&name), definition.find_subcommand(RUN))
    else {
        return unchanged(arguments);
    };
    let rest = &arguments[at + 1..];
    let given = given(rest, command);
    let variables = environment::variables(environment);
    let warnings = environment::near_misses(&variables, run);
    let of_environment = environment::settings(&variables, command, name == RUN)?;
    let of_file = match config_path(rest, &variables).filter(|_| name == RUN) {
        Some(path) => config_file::read(&path, |name| kind(command, name))?,
        None => Vec::new(),
    };
    let added = effective(&given, of_environment, of_file);
    let mut words = arguments[..=at].to_vec();
    words.extend(added.iter().flat_map(|setting| as_words(setting, command)));
    words.extend_from_slice(rest);
    Ok(Expanded { words, added, warnings })
}

/// Returns the command with layers and its index in the arguments. Only `--color` can precede a
/// command.
fn command(arguments: &[OsString]) -> Option<(usize, &str)> {
    let mut at = 1;
    while let Some(word) = arguments.get(at)?.to_str() {
        match word {
            "--color" => at += 2,
            _ if word.starts_with("--color=") => at += 1,
            _ if word == RUN || WITH_TARGET.contains(&word) => return Some((at, word)),
            _ => return None,
        }
    }
    None
}

/// Returns the long names of the options that the command line gives.
fn given(arguments: &[OsString], command: &Command) -> Vec<String> {
    let words = arguments.iter().filter_map(|word| word.to_str()).take_while(|word| *word != "--");
    let mut names = Vec::new();
    for word in words {
        if let Some(long) = word.strip_prefix("--") {
            names.push(long.split('=').next().unwrap_or_default().to_owned());
        } else if let Some(shorts) = word.strip_prefix('-') {
            let of_short =
                |short| command.get_arguments().find(|arg| arg.get_short() == Some(short));
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
        (kubeconfig || !OF_KUBECONFIG.contains(&name))
            && (server || kubeconfig || !OF_ANY.contains(&name))
            && (oracle || !name.starts_with(OF_ORACLE))
    });
    kept
}

/// Returns the arguments of a setting.
fn as_words(setting: &Setting, command: &Command) -> Vec<OsString> {
    let Setting { name, values, .. } = setting;
    let first = values.first().map(String::as_str).unwrap_or_default();
    let flag = || OsString::from(format!("--{name}"));
    match kind(command, name) {
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
        let all = expand(words, variables.chain([config]), &mut Cli::command())?.words;
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
    #[case::token_beside_a_kubeconfig(
        &[("KUBEPROOF_TOKEN", "t")],
        "run --kubeconfig f",
        "run --token=t --kubeconfig f"
    )]
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
