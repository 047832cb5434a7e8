//! A bearer token in a file that may be replaced while the run goes on.

use std::path::PathBuf;
use std::time::Duration;

use http::HeaderValue;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::target::Secret;

/// Replaced tokens are picked up within this time; the old one is valid for longer.
const REREAD: Duration = Duration::from_mins(1);

/// The file, and what it held.
#[derive(Debug)]
pub(crate) struct TokenFile {
    path: PathBuf,
    read: Mutex<Option<(Instant, Secret)>>,
}

impl TokenFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, read: Mutex::new(None) }
    }

    /// The Authorization header of now.
    pub(crate) async fn authorization(&self) -> Result<HeaderValue, String> {
        let mut read = self.read.lock().await;
        let fresh = read.as_ref().is_some_and(|(at, _)| at.elapsed() < REREAD);
        if !fresh {
            match tokio::fs::read_to_string(&self.path).await {
                Ok(text) => {
                    let token = Secret::new(&text);
                    // Who replaces a file may empty it first: what it held until now is better than nothing.
                    if !token.reveal().is_empty() {
                        *read = Some((Instant::now(), token));
                    }
                }
                // Some launchers remove the file once it has been read.
                Err(_) if read.is_some() => {}
                Err(error) => {
                    return Err(format!("the token file {} cannot be read: {error}", self.path.display()));
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
        /// Makes what was read as old as it may become.
        pub(in crate::transport) async fn age(&self) {
            if let Some((at, _)) = &mut *self.read.lock().await {
                *at -= REREAD;
            }
        }
    }

    #[tokio::test]
    async fn what_was_read_holds_for_a_while() {
        let place = tempfile::NamedTempFile::new().unwrap();
        let file = TokenFile::new(place.path().to_owned());
        let given = async || file.authorization().await.map(|header| header.to_str().unwrap().to_owned());
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
    async fn a_file_that_never_was_is_told() {
        let told = TokenFile::new("no/such/file".into()).authorization().await.unwrap_err();
        assert!(told.starts_with("the token file no/such/file cannot be read: "), "{told}");
    }
}
