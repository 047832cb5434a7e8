//! Reads the YAML of users.

use serde::de::DeserializeOwned;

/// Reads a value. The error is the mistake and its position, with the lines around it.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_saphyr::from_str(text).map_err(|error| without_level(&error.to_string()))
}

/// Returns the mistake and its position, without lines of the file, which may contain secrets.
pub(crate) fn mistake(error: &serde_saphyr::Error) -> String {
    let text = without_level(&error.to_string());
    text.lines().next().unwrap_or_default().to_owned()
}

/// The library starts its texts with the level of a message.
fn without_level(text: &str) -> String {
    text.strip_prefix("error: ").unwrap_or(text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_start_with_the_position() {
        let error = read::<Vec<String>>("[a").unwrap_err();
        assert!(error.starts_with("line "), "{error}");
    }
}
