//! Engines make writes durable and put them in order. Reads never reach them.

mod disk;
mod memory;

use std::sync::Arc;

use futures_util::future::BoxFuture;

pub(crate) use self::disk::DiskEngine;
pub use self::disk::{Disk, OpenError};
pub(crate) use self::memory::Memory;
use super::object::Stored;
use super::write::Write;

/// The reason why a write has no result.
#[derive(Clone, Debug, thiserror::Error)]
pub enum WriteError {
    /// The engine rejects all further writes.
    #[error("the storage failed: {0}; restart the server when the cause is fixed")]
    Failed(Arc<str>),
}

/// The change of a write. The engine can call it again if the write loses a race.
pub(crate) type ChangeFn<'a> = dyn FnMut(&mut Write<'_>) + Send + 'a;

/// The result of a write: the object of its last operation, if it has any.
pub(crate) type Committed = Result<Option<Arc<Stored>>, WriteError>;

/// Makes writes durable and puts them in order.
pub(crate) trait Engine: Send + Sync {
    /// Reports whether a write can wait.
    fn waits(&self) -> bool;

    /// Runs a write. When the future is ready, the write is durable and the cache has it.
    fn commit<'a>(&'a self, change: &'a mut ChangeFn<'_>) -> BoxFuture<'a, Committed>;
}
