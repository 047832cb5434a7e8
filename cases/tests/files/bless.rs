//! Files that tests compare with, and write anew when `KUBEPROOF_BLESS` is set.

use std::fs;
use std::path::Path;

/// Whether files are to be written anew.
pub(crate) fn is_asked_for() -> bool {
    std::env::var_os("KUBEPROOF_BLESS").is_some_and(|value| value == "1")
}

/// The file must be there and hold this text.
pub(crate) fn compare(file: &Path, text: &str) -> Result<(), String> {
    if is_asked_for() {
        return fs::write(file, text).map_err(|error| format!("cannot write {}: {error}", file.display()));
    }
    match fs::read_to_string(file) {
        Ok(golden) if golden == text => Ok(()),
        Ok(golden) => Err(format!(
            "{} holds something else; KUBEPROOF_BLESS=1 writes it anew\n--- golden\n{golden}\n--- now\n{text}",
            file.display()
        )),
        Err(error) => Err(format!(
            "cannot read {}: {error}; KUBEPROOF_BLESS=1 writes it\n--- now\n{text}",
            file.display()
        )),
    }
}
