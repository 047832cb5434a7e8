//! Reports the requests to the storage, for metrics.

use std::time::{Duration, Instant};

use super::object::Change;

/// A request that the storage has finished.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The table, such as `configmaps` or `deployments.apps`.
    pub table: &'a str,
    /// `create`, `update`, `delete` or `list`.
    pub operation: &'static str,
    /// The time until the result.
    pub duration: Duration,
    /// The storage has not done the request.
    pub is_failed: bool,
}

/// A function that receives each finished request.
pub type Observer = Box<dyn Fn(Request<'_>) + Send + Sync>;

/// A request that runs. A write names its table and operation while it runs.
pub(crate) struct Running {
    since: Instant,
    what: Option<(String, &'static str)>,
}

impl Running {
    pub(crate) fn start() -> Self {
        Self { since: Instant::now(), what: None }
    }

    /// Sets the table and the operation. Without them, the storage has nothing to do.
    pub(crate) fn set(&mut self, last: Option<(&str, Change)>) {
        self.what = last.map(|(table, change)| (table.to_owned(), operation(change)));
    }

    pub(crate) fn list(table: &str) -> Self {
        Self { what: Some((table.to_owned(), "list")), ..Self::start() }
    }

    pub(crate) fn finish(self, observer: &Observer, is_failed: bool) {
        if let Some((table, operation)) = &self.what {
            observer(Request { table, operation, duration: self.since.elapsed(), is_failed });
        }
    }
}

fn operation(change: Change) -> &'static str {
    match change {
        Change::Added => "create",
        Change::Modified => "update",
        Change::Deleted => "delete",
    }
}
