//! Flags in the syntax of Go programs, where unknown flags are warnings.

use std::fmt::Write as _;

/// A flag that a program accepts.
pub(super) struct Flag {
    /// The name without dashes.
    pub(super) name: &'static str,
    /// The placeholder of the value in the help. A switch has none.
    pub(super) value: &'static str,
    pub(super) help: &'static str,
}

/// The flags of a command line.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Flags {
    given: Vec<(&'static str, String)>,
    /// The warnings about arguments without effect.
    pub(super) warnings: Vec<String>,
    /// The user asks for the list of flags.
    pub(super) help: bool,
    /// The user asks for the version.
    pub(super) version: bool,
}

impl Flags {
    /// Parses arguments such as `--name=value`, `--name value` and `--switch`. One dash is enough.
    pub(super) fn parse(arguments: &[String], known: &[Flag]) -> Self {
        let mut flags = Self::default();
        let mut rest = arguments.iter().peekable();
        while let Some(argument) = rest.next() {
            let Some(flag) = argument.strip_prefix("--").or_else(|| argument.strip_prefix('-'))
            else {
                flags.warnings.push(format!("kubeproof ignores the argument {argument:?}"));
                continue;
            };
            let (name, value) = match flag.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (flag, None),
            };
            let name = name.replace('_', "-");
            let mut next = || rest.next_if(|next| !next.starts_with('-')).cloned();
            match known.iter().find(|known| known.name == name) {
                Some(known) if known.value.is_empty() => {
                    let value = value.unwrap_or_else(|| "true".to_owned());
                    flags.given.push((known.name, value));
                }
                Some(known) => {
                    let value = value.or_else(next).unwrap_or_default();
                    flags.given.push((known.name, value));
                }
                None if matches!(name.as_str(), "help" | "h") => flags.help = true,
                None if name == "version" => flags.version = value.as_deref() != Some("false"),
                None => {
                    if value.is_none() {
                        next();
                    }
                    flags.warnings.push(format!("kubeproof ignores the flag --{name}"));
                }
            }
        }
        flags
    }

    /// Returns the last value of a flag. An empty value counts as none.
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        let given = self.given.iter().rev().find(|(given, _)| *given == name);
        given.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// Returns the values of a flag that can be given several times, each with several values.
    pub(super) fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let given = self.given.iter().filter(move |(given, _)| *given == name);
        given.flat_map(|(_, value)| value.split(',')).filter(|value| !value.is_empty())
    }
}

/// Returns the help of a program. envtest searches it for flags at the start of lines.
pub(super) fn help(program: &str, known: &[Flag]) -> String {
    let mut text = format!("Usage: {program} [flags]\n\nFlags:\n");
    for Flag { name, value, help } in known {
        let flag = format!("--{name} {value}");
        let _ = writeln!(text, "  {flag:<48} {help}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[Flag] = &[
        Flag { name: "port", value: "PORT", help: "Port" },
        Flag { name: "ca-file", value: "FILE", help: "Authority" },
        Flag { name: "fast", value: "", help: "Fast" },
    ];

    fn parse(line: &str) -> Flags {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        Flags::parse(&words, KNOWN)
    }

    #[test]
    fn values_follow_an_equals_sign_or_are_the_next_argument() {
        let flags = parse("--port=1 --ca_file a -port 2 --fast --ca-file=b,c");
        assert_eq!(flags.value("port"), Some("2"));
        assert_eq!(flags.value("fast"), Some("true"));
        assert_eq!(flags.values("ca-file").collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(flags.warnings, Vec::<String>::new());
        assert_eq!(parse("--port=").value("port"), None);
    }

    #[test]
    fn unknown_flags_and_their_values_are_warnings() {
        let flags = parse("--new value --newer=1 --port 3 --newest --fast stray");
        assert_eq!(flags.value("port"), Some("3"));
        assert_eq!(flags.value("fast"), Some("true"));
        let expected = [
            "kubeproof ignores the flag --new",
            "kubeproof ignores the flag --newer",
            "kubeproof ignores the flag --newest",
            "kubeproof ignores the argument \"stray\"",
        ];
        assert_eq!(flags.warnings, expected);
    }

    /// envtest reads the help to decide which flags it may pass.
    #[test]
    fn the_help_lists_each_flag_at_the_start_of_a_line() {
        let text = help("program", KNOWN);
        let listed = |flag: &str| text.lines().any(|line| line.trim_start().starts_with(flag));
        assert!(listed("--port PORT") && listed("--fast"), "{text}");
        assert!(parse("--help").help && parse("-h").help && !parse("--port h").help);
    }
}
