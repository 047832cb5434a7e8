//! Reads the YAML of users.

use serde::de::DeserializeOwned;

/// Reads a value. The error is the mistake and its position, without the level of a message.
pub(super) fn read<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_saphyr::from_str(text).map_err(|error| {
        let text = error.to_string();
        text.strip_prefix("error: ").unwrap_or(&text).to_owned()
    })
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
