//! The command line in two stages: `low` parses the text, and [`high`] resolves it into the values
//! that the commands use.

mod command_line;
mod config_file;
pub(crate) mod high;
mod layers;
mod low;
mod rerun_command;

pub(crate) use self::rerun_command::of_report as rerun_of_report;

use std::io::{self, Write as _};

use clap::{CommandFactory as _, Parser as _};

use self::config_file::Setting;
use crate::error::Error;

/// Parses and resolves the command line, with the options of the configuration file and the
/// environment. Prints help or a syntax error and exits, as clap does.
pub(crate) fn parse() -> Result<high::Command, Error> {
    let given: Vec<_> = std::env::args_os().collect();
    let expanded = layers::expand(given, std::env::vars_os(), &mut definition())?;
    // If standard error is closed, the exit code must suffice.
    for warning in &expanded.warnings {
        let _ = writeln!(io::stderr(), "warning: {warning}");
    }
    let cli = low::Cli::try_parse_from(&expanded.words).unwrap_or_else(|error| {
        if error.use_stderr() {
            for note in origins(&expanded.added, &error.to_string()) {
                let _ = writeln!(io::stderr(), "note: {note}");
            }
        }
        error.exit()
    });
    high::Command::resolve(cli, &command_line::of(&expanded.words))
}

/// Returns the sources of the arguments that an error names, or of all arguments that are not from
/// the command line.
fn origins(added: &[Setting], error: &str) -> Vec<String> {
    let is_named = |setting: &&Setting| {
        let mut words = error.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
        words.any(|word| word.strip_prefix("--") == Some(&setting.name))
    };
    let mut shown: Vec<_> = added.iter().filter(is_named).collect();
    if shown.is_empty() {
        shown.extend(added);
    }
    let origin = |setting: &Setting| format!("--{} is from {}", setting.name, setting.source);
    shown.into_iter().map(origin).collect()
}

/// Returns the definition of the command line, for completions and manual pages.
pub(crate) fn definition() -> clap::Command {
    low::Cli::command()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_have_their_sources() {
        let setting = |name: &str, source: &str| Setting {
            name: name.to_owned(),
            values: Vec::new(),
            source: source.to_owned(),
        };
        let added = [setting("jobs", "kp.toml"), setting("json", "KUBEPROOF_JSON")];
        let error = "error: invalid value 'x' for '--jobs <N>': expected a number";
        assert_eq!(origins(&added, error), ["--jobs is from kp.toml"]);
        let all = ["--jobs is from kp.toml", "--json is from KUBEPROOF_JSON"];
        assert_eq!(origins(&added, "error: unexpected argument '--job'"), all);
    }
}
