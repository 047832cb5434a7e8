//! The command line that repeats a run, without its selection and its secrets, for users to copy.

use std::path::Path;

use clap::{Parser as _, ValueEnum as _};
use kubeproof_reports::document::Head;

use super::low;

/// Returns the command that tests the same target with the same options.
pub(super) fn of(run: &low::Run) -> String {
    let mut words = Words(vec!["kubeproof".to_owned(), "run".to_owned()]);
    words.path("--config", run.config.as_deref());
    words.target(&run.target);
    for directory in &run.cases.directories {
        words.path("--cases", Some(directory));
    }
    if run.cases.edition != low::Edition::Head
        && let Some(edition) = run.cases.edition.to_possible_value()
    {
        words.value("--edition", Some(edition.get_name()));
    }
    words.flag("--letter", run.selection.letter);
    for subject in &run.selection.subject {
        words.value("--subject", Some(subject));
    }
    words.path("--known-failures", run.selection.known_failures.as_deref());
    words.value("--namespace", run.safety.namespace.as_deref());
    words.flag("--read-only", run.safety.read_only);
    words.flag("--keep", run.safety.keep);
    words.flag("--strict", run.execution.strict);
    words.0.join(" ")
}

/// Returns the command that tests the target of a report with the options of its run. Empty for
/// reports about files.
pub(crate) fn of_report(head: &Head) -> String {
    match low::Cli::try_parse_from(split(&head.command)).map(|cli| cli.command) {
        Ok(low::Command::Run(run)) => return of(&run),
        Ok(low::Command::LintApi(_)) => return String::new(),
        Ok(_) | Err(_) => {}
    }
    // Another version wrote the report, or a library.
    let mut words = Words(vec!["kubeproof".to_owned(), "run".to_owned()]);
    let server = &head.target.server;
    words.value("--server", (!head.target.bundled && !server.is_empty()).then_some(server));
    words.0.join(" ")
}

/// Splits a command line at spaces, as a POSIX shell does with the quotes of [`quoted`] and of
/// variables.
fn split(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let (mut word, mut quote) = (None::<String>, None);
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match (letter, quote) {
            ('\'' | '"', None) => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (_, Some(open)) if letter == open => quote = None,
            (' ', None) => words.extend(word.take()),
            ('\\', None) => word.get_or_insert_default().extend(letters.next()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

/// Returns the command that removes the objects that the run leaves behind.
pub(super) fn clean(run: &low::Run) -> String {
    let mut words = Words(vec!["kubeproof".to_owned(), "clean".to_owned()]);
    words.target(&run.target);
    words.value("--namespace", run.safety.namespace.as_deref());
    // Objects of a run that has just ended are young.
    words.value("--older-than", Some("0"));
    words.0.join(" ")
}

struct Words(Vec<String>);

impl Words {
    fn target(&mut self, target: &low::Target) {
        self.value("--server", target.server.as_deref());
        if target.token.is_some() {
            self.0.push("--token \"$TOKEN\"".to_owned());
        }
        self.path("--token-file", target.token_file.as_deref());
        self.path("--certificate-authority", target.certificate_authority.as_deref());
        self.flag("--insecure-skip-tls-verify", target.insecure_skip_tls_verify);
        self.path("--client-certificate", target.client_certificate.as_deref());
        self.path("--client-key", target.client_key.as_deref());
        match &target.kubeconfig {
            None => {}
            Some(None) => self.flag("--kubeconfig", true),
            Some(file) => self.path("--kubeconfig", file.as_deref()),
        }
        self.value("--context", target.context.as_deref());
        self.value("--as", target.act_as.as_deref());
        if target.second_token.is_some() {
            self.0.push("--second-token \"$SECOND_TOKEN\"".to_owned());
        }
    }

    fn flag(&mut self, name: &str, given: bool) {
        if given {
            self.0.push(name.to_owned());
        }
    }

    fn path(&mut self, name: &str, value: Option<&Path>) {
        self.value(name, value.map(Path::to_string_lossy));
    }

    fn value(&mut self, name: &str, value: Option<impl AsRef<str>>) {
        if let Some(value) = value {
            self.0.push(format!("{name} {}", quoted(value.as_ref())));
        }
    }
}

/// Quotes a word for a POSIX shell.
pub(super) fn quoted(word: &str) -> String {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || "-_./:=@,+%".contains(c);
    if !word.is_empty() && word.chars().all(is_safe) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_names_the_target_without_secrets() {
        let line = "kubeproof run --server https://a:1 --token sesame --second-token open --as \
                    user --only watch/* --junit out.xml --namespace x --edition v1.3 --strict";
        let low::Command::Run(run) =
            low::Cli::try_parse_from(line.split_whitespace()).expect("parsed").command
        else {
            panic!("expected run")
        };
        assert_eq!(
            of(&run),
            "kubeproof run --server https://a:1 --token \"$TOKEN\" --as user \
             --second-token \"$SECOND_TOKEN\" --edition v1.3 --namespace x --strict"
        );
        assert_eq!(
            clean(&run),
            "kubeproof clean --server https://a:1 --token \"$TOKEN\" --as user \
             --second-token \"$SECOND_TOKEN\" --namespace x --older-than 0"
        );
    }

    #[test]
    fn a_report_has_the_target_of_its_run() {
        let command = "kubeproof run --server=https://a:1 --token \"$TOKEN\" --only 'get/*' \
                        --json out.json --namespace 'it'\\''s' --strict"
            .to_owned();
        let mut head = Head { command, ..Head::default() };
        assert_eq!(
            of_report(&head),
            "kubeproof run --server https://a:1 --token \"$TOKEN\" --namespace 'it'\\''s' --strict"
        );
        head.command = "kubeproof run --option-of-another-version".to_owned();
        assert_eq!(of_report(&head), "kubeproof run");
        head.target.server = "https://b:1".to_owned();
        assert_eq!(of_report(&head), "kubeproof run --server https://b:1");
        head.target.bundled = true;
        assert_eq!(of_report(&head), "kubeproof run");
        head.command = "kubeproof lint-api crds".to_owned();
        assert_eq!(of_report(&head), "");
    }

    #[test]
    fn words_are_quoted_for_the_shell() {
        assert_eq!(quoted("a/b.yaml"), "a/b.yaml");
        assert_eq!(quoted("it's here"), r"'it'\''s here'");
        assert_eq!(quoted(""), "''");
    }
}
