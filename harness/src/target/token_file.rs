//! A file with a bearer token that may be replaced during the run.

use std::path::PathBuf;
use std::time::Duration;

use http::HeaderValue;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::Secret;

/// Interval between reads. The old token remains valid for longer.
const REREAD: Duration = Duration::from_mins(1);

#[derive(Debug)]
pub(crate) struct TokenFile {
    path: PathBuf,
    read: Mutex<Option<(Instant, Secret)>>,
}

impl TokenFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, read: Mutex::new(None) }
    }

    /// Returns the current Authorization header.
    pub(crate) async fn authorization(&self) -> Result<HeaderValue, String> {
        let mut read = self.read.lock().await;
        let fresh = read.as_ref().is_some_and(|(at, _)| at.elapsed() < REREAD);
        if !fresh {
            match tokio::fs::read_to_string(&self.path).await {
                Ok(text) => {
                    let token = Secret::new(&text);
                    // A writer may truncate the file first, so an empty file keeps the old token.
                    if !token.reveal().is_empty() {
                        *read = Some((Instant::now(), token));
                    }
                }
                // Some launchers delete the file after the first read.
                Err(_) if read.is_some() => {}
                Err(error) => {
                    return Err(format!(
                        "the token file {} cannot be read: {error}",
                        self.path.display()
                    ));
                }
            }
        }
        let token = read.as_ref().and_then(|(_, token)| token.bearer());
        token.ok_or_else(|| format!("the token file {} holds no bearer token", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl TokenFile {
        /// Expires the cached token.
        pub(crate) async fn age(&self) {
            if let Some((at, _)) = &mut *self.read.lock().await {
                *at -= REREAD;
            }
        }
    }

    #[tokio::test]
    async fn what_was_read_holds_for_a_while() {
        let place = tempfile::NamedTempFile::new().unwrap();
        let file = TokenFile::new(place.path().to_owned());
        let given =
            async || file.authorization().await.map(|header| header.to_str().unwrap().to_owned());
        let empty = given().await.unwrap_err();
        assert!(empty.contains("holds no bearer token"), "{empty}");
        std::fs::write(place.path(), "one\n").unwrap();
        assert_eq!(given().await, Ok("Bearer one".to_owned()));
        std::fs::write(place.path(), "two\n").unwrap();
        assert_eq!(given().await, Ok("Bearer one".to_owned()), "the old one is valid for longer");
        file.age().await;
        assert_eq!(given().await, Ok("Bearer two".to_owned()));
        std::fs::write(place.path(), "").unwrap();
        file.age().await;
        assert_eq!(given().await, Ok("Bearer two".to_owned()), "it is being replaced");
        place.close().unwrap();
        assert_eq!(given().await, Ok("Bearer two".to_owned()), "some launchers remove the file");
    }

    #[tokio::test]
    async fn a_file_that_never_was_is_reported() {
        let error = TokenFile::new("no/such/file".into()).authorization().await.unwrap_err();
        assert!(error.starts_with("the token file no/such/file cannot be read: "), "{error}");
    }
}
