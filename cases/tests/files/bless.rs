//! Golden files. With `KUBEPROOF_BLESS=1`, the tests write them again.

use std::fs;
use std::path::Path;

pub(crate) fn is_asked_for() -> bool {
    std::env::var_os("KUBEPROOF_BLESS").is_some_and(|value| value == "1")
}

/// Compares a golden file with a text.
pub(crate) fn compare(file: &Path, text: &str) -> Result<(), String> {
    if is_asked_for() {
        return fs::write(file, text)
            .map_err(|error| format!("cannot write {}: {error}", file.display()));
    }
    match fs::read_to_string(file) {
        Ok(golden) if golden == text => Ok(()),
        Ok(golden) => Err(format!(
            "{} differs; KUBEPROOF_BLESS=1 writes it again\n--- golden\n{golden}\n--- now\n{text}",
            file.display()
        )),
        Err(error) => Err(format!(
            "cannot read {}: {error}; KUBEPROOF_BLESS=1 writes it\n--- now\n{text}",
            file.display()
        )),
    }
}
