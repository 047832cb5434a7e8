//! The command line as reports show it: complete, and without secrets.

use std::ffi::OsString;

use super::rerun_command::quoted;

/// Options whose value is a secret, and what reports show in its place.
const SECRETS: [(&str, &str); 4] = [
    ("--token", "\"$TOKEN\""),
    ("--second-token", "\"$SECOND_TOKEN\""),
    ("--oracle-token", "\"$ORACLE_TOKEN\""),
    ("--oracle-second-token", "\"$ORACLE_SECOND_TOKEN\""),
];

/// Returns a command line for a POSIX shell, with variables in place of tokens, and without the
/// user information of URLs. The first word is the program.
pub(super) fn of(words: &[OsString]) -> String {
    let mut line = "kubeproof".to_owned();
    let mut secret = None;
    for argument in words.iter().skip(1).map(|word| word.to_string_lossy()) {
        line.push(' ');
        if let Some(variable) = secret.take() {
            line.push_str(variable);
            continue;
        }
        secret = variable_for(&argument);
        match argument.split_once('=').and_then(|(name, _)| Some((name, variable_for(name)?))) {
            Some((name, variable)) => line.extend([name, "=", variable]),
            None => line.push_str(&quoted(&without_user_info(&argument))),
        }
    }
    line
}

fn variable_for(option: &str) -> Option<&'static str> {
    SECRETS.iter().find(|(name, _)| *name == option).map(|(_, variable)| *variable)
}

/// Returns a word without the user information of the URL in it: `--server=https://u:p@host`.
fn without_user_info(word: &str) -> String {
    let Some(start) = word.find("://").map(|at| at + 3) else { return word.to_owned() };
    let end = word[start..].find(['/', '?', '#']).map_or(word.len(), |at| start + at);
    match word[start..end].rfind('@') {
        Some(at) => format!("{}{}", &word[..start], &word[start + at + 1..]),
        None => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_has_no_secrets() {
        let line = "run --server https://me:secret@a:1/x@y --token my-token --second-token=secret \
                    --token-file f --only watch/* --server=http://secret@b";
        let of = |line: &str| {
            let words = ["x"].into_iter().chain(line.split_ascii_whitespace());
            of(&words.map(OsString::from).collect::<Vec<_>>())
        };
        assert_eq!(
            of(line),
            "kubeproof run --server https://a:1/x@y --token \"$TOKEN\" \
             --second-token=\"$SECOND_TOKEN\" --token-file f --only 'watch/*' \
             --server=http://b"
        );
        assert_eq!(of("it's"), r"kubeproof 'it'\''s'");
        assert_eq!(of("--token"), "kubeproof --token");
        assert_eq!(of("--oracle-token x"), "kubeproof --oracle-token \"$ORACLE_TOKEN\"");
    }
}
