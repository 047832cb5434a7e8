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
                Ok(text) => *read = Some((Instant::now(), Secret::new(&text))),
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
