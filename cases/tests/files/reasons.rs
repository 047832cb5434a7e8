//! A case expects every reason of a Status, unless no client can cause it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use regex::Regex;

/// The reasons of the conventions and of deployed servers.
const REASONS: &[&str] = &[
    "AlreadyExists",
    "BadRequest",
    "Conflict",
    "Expired",
    "Forbidden",
    "Gone",
    "InternalError",
    "Invalid",
    "MethodNotAllowed",
    "NotAcceptable",
    "NotFound",
    "RequestEntityTooLarge",
    "ServerTimeout",
    "ServiceUnavailable",
    "Timeout",
    "TooManyRequests",
    "Unauthorized",
    "UnsupportedMediaType",
];

/// Reasons that no client can cause.
const BEYOND_CLIENTS: &[(&str, &str)] = &[(
    "InternalError",
    "only an internal error of the server causes it, and no case may expect that",
)];

#[test]
fn every_reason_is_expected_by_a_case() {
    let expectations = asked_for();
    let asked: BTreeSet<String> = expectations.iter().flatten().cloned().collect();
    let lacking: Vec<&str> = REASONS
        .iter()
        .copied()
        .filter(|reason| !asked.contains(*reason))
        .filter(|reason| BEYOND_CLIENTS.iter().all(|(known, _)| known != reason))
        .collect();
    assert!(lacking.is_empty(), "no case asks for {lacking:?}");
    let unknown: Vec<&String> =
        asked.iter().filter(|reason| !REASONS.contains(&reason.as_str())).collect();
    assert!(unknown.is_empty(), "cases ask for reasons that nobody gives: {unknown:?}");
    for (reason, why) in BEYOND_CLIENTS {
        let alone = expectations.iter().any(|reasons| reasons.iter().all(|asked| asked == reason));
        assert!(!alone, "a case asks for {reason} alone, although {why}");
    }
}

/// The reasons of every `rejected`. A reason that no client can cause may be one of several.
fn asked_for() -> Vec<BTreeSet<String>> {
    let rejected = Regex::new(r"rejected: *\{[^}]*?reason: *(\[[^\]]*\]|\w+)").expect("a pattern");
    let below = Regex::new(r"rejected:\n(?: +code:[^\n]*\n)? +reason: *(\[[^\]]*\]|\w+)")
        .expect("a pattern");
    let word = Regex::new(r"\w+").expect("a pattern");
    let mut found = Vec::new();
    for file in files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("data")) {
        let text = std::fs::read_to_string(&file).expect("a case file");
        for expectation in rejected.captures_iter(&text).chain(below.captures_iter(&text)) {
            found.push(
                word.find_iter(&expectation[1]).map(|reason| reason.as_str().to_owned()).collect(),
            );
        }
    }
    found
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries =
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}
