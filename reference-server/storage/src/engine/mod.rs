//! Engines make writes durable and put them in order. Reads never reach them.

mod disk;
mod etcd;
mod memory;

use std::future::ready;
use std::sync::Arc;

use futures_util::future::BoxFuture;

pub(crate) use self::disk::DiskEngine;
pub use self::disk::{Disk, OpenError};
pub(crate) use self::etcd::EtcdEngine;
pub use self::etcd::{Codec, Etcd, EtcdError, EtcdOptions, EtcdTls};
pub(crate) use self::memory::Memory;
use super::object::Stored;
use super::write::Write;

/// The reason why a write has no result, or why a read cannot have the newest state.
#[derive(Clone, Debug, thiserror::Error)]
pub enum WriteError {
    /// The engine rejects all further writes.
    #[error("the storage failed: {0}; restart the server when the cause is fixed")]
    Failed(Arc<str>),
    /// The engine cannot reach its storage now. It has written nothing.
    #[error("the storage is unavailable: {0}")]
    Unavailable(Arc<str>),
    /// The connection to the storage ended during the write, which may have been stored.
    #[error("the storage may have the write or not: {0}")]
    Unknown(Arc<str>),
    /// Another object has a claim of the object.
    #[error("another object has {0}")]
    Claimed(Arc<str>),
}

/// The objects of a table at an older version, or none if the storage does not have the version.
pub(crate) type Past = Result<Option<Vec<Arc<Stored>>>, WriteError>;

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

    /// Reports whether other servers write, too.
    fn is_shared(&self) -> bool {
        false
    }

    /// Returns the size of the files in bytes.
    fn size(&self) -> Option<u64> {
        None
    }

    /// Waits until the cache has all writes that ended before the call.
    fn catch_up(&self) -> BoxFuture<'_, Result<(), WriteError>> {
        Box::pin(ready(Ok(())))
    }

    /// Returns the objects of a table, or of a namespace in it, at a version that the cache does
    /// not have any more.
    fn past<'a>(
        &'a self,
        _table: &'a str,
        _namespace: Option<&'a str>,
        _revision: u64,
    ) -> BoxFuture<'a, Past> {
        Box::pin(ready(Ok(None)))
    }
}
