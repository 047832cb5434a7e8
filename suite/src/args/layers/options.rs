//! The options of the layers, and the dependencies between them.

use std::path::PathBuf;

use clap::{Arg, ArgAction, Command};
use kubeproof_harness::plan::nearest;

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
pub(super) const TARGET: [&str; 11] = [
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

/// Options that limit what a command does to its target.
const LIMITS: [&str; 2] = ["namespace", "max-rps"];

/// Options that apply only to `--kubeconfig`.
pub(super) const OF_KUBECONFIG: &[&str] = &["context"];

/// Options that apply to any target but the bundled server: all without the first three of
/// [`TARGET`].
pub(super) const OF_ANY: &[&str] = TARGET.split_at(3).1;

/// Prefix of the options that apply only to `--oracle`. Another oracle replaces them as a target
/// does.
pub(super) const OF_ORACLE: &str = "oracle-";

/// The kinds of values that an option takes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::args) enum Kind {
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

/// Returns the kind of an option, or the nearest name.
pub(in crate::args) fn kind(command: &Command, name: &str) -> Result<Kind, Option<String>> {
    let argument = command
        .get_arguments()
        .find(|argument| argument.get_long() == Some(name) && is_layered(name))
        .ok_or_else(|| nearest(name, names(command)))?;
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

/// Returns the names of the options that a layer can hold.
pub(super) fn names(command: &Command) -> impl Iterator<Item = &str> {
    command.get_arguments().filter_map(Arg::get_long).filter(|name| is_layered(name))
}

/// Returns whether an option describes the target, or limits what a command does to it.
pub(super) fn is_of_target(name: &str) -> bool {
    TARGET.contains(&name) || LIMITS.contains(&name)
}

/// Returns whether an option of a higher layer replaces an option.
pub(super) fn is_replaced(name: &str, by: &[String]) -> bool {
    let same = |other: &String| {
        other == name
            || EXCLUSIVE.iter().any(|set| set.contains(&name) && set.contains(&other.as_str()))
    };
    by.iter().any(same)
}

/// Returns whether a configuration file may hold an option.
fn is_layered(name: &str) -> bool {
    !["help", "version", "config"].contains(&name)
}
