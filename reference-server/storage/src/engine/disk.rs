//! The engine that keeps all objects in a file.
//!
//! A writer decides on its write while it holds the lock of the head, which has all writes that are
//! ordered and not durable yet. One thread commits them: while it waits for the disk, further
//! writes queue up, and its next transaction has all of them. The cache gets a write when it is
//! durable, so no reader sees a write that a crash can undo.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use futures_util::future::BoxFuture;
use redb::{
    Database, DatabaseError, ReadableDatabase, ReadableTable, ReadableTableMetadata,
    TableDefinition,
};
use tokio::sync::watch;

use super::{ChangeFn, Committed, Engine, WriteError};
use crate::object::{Change, Key};
use crate::saved::{Saved, SavedObject};
use crate::state::{Cache, FIRST_REVISION, Operation};
use crate::write::{Pending, Write};

/// The objects: JSON with their version, by table, namespace and name.
const OBJECTS: TableDefinition<'_, (&str, &str, &str), &[u8]> = TableDefinition::new("objects");
const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
/// The version of the newest write, which may be a deletion.
const REVISION: &str = "revision";
const FORMAT: &str = "format";
/// The format of this file. Other formats are rejected.
const FORMAT_VERSION: u64 = 1;
const FILE_NAME: &str = "objects.redb";

/// The reason why a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The directory does not exist and cannot be created.
    #[error("cannot create the data directory {}: {source}", path.display())]
    Create {
        /// The directory.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// Another server uses the directory.
    #[error(
        "the data directory {} is in use; stop the other server, or choose another directory",
        path.display()
    )]
    InUse {
        /// The directory.
        path: PathBuf,
    },
    /// A newer or foreign program wrote the directory.
    #[error(
        "the data directory {} has format {found}, expected {FORMAT_VERSION}; choose another \
         directory",
        path.display()
    )]
    Format {
        /// The directory.
        path: PathBuf,
        /// The format of the directory.
        found: u64,
    },
    /// An object of the directory or of a snapshot is damaged.
    #[error("{} has an invalid object {table} {namespace}/{name}: {why}", path.display())]
    Object {
        /// The directory or the file.
        path: PathBuf,
        /// The table of the object.
        table: String,
        /// The namespace of the object.
        namespace: String,
        /// The name of the object.
        name: String,
        /// What is wrong.
        why: String,
    },
    /// A snapshot cannot replace objects.
    #[error(
        "the data directory {} has objects; restore a snapshot to an empty directory",
        path.display()
    )]
    NotEmpty {
        /// The directory.
        path: PathBuf,
    },
    /// The file cannot be read or written.
    #[error("cannot use {}: {source}", path.display())]
    Database {
        /// The file.
        path: PathBuf,
        /// The error of the database.
        source: redb::Error,
    },
}

/// The store in a directory. While it is open, no other process can open the directory.
#[derive(Debug)]
pub struct Disk {
    database: Database,
    file: PathBuf,
}

impl Disk {
    /// Opens a directory, and creates it if it does not exist.
    pub fn open(directory: &Path) -> Result<Self, OpenError> {
        let path = directory.to_owned();
        fs::create_dir_all(directory)
            .map_err(|source| OpenError::Create { path: path.clone(), source })?;
        let file = directory.join(FILE_NAME);
        let database = match Database::create(&file) {
            Ok(database) => database,
            Err(DatabaseError::DatabaseAlreadyOpen) => return Err(OpenError::InUse { path }),
            Err(error) => return Err(OpenError::Database { path: file, source: error.into() }),
        };
        let disk = Self { database, file };
        disk.check_format()?;
        Ok(disk)
    }

    /// Checks the format, and sets up a new file.
    fn check_format(&self) -> Result<(), OpenError> {
        match self.set_up().map_err(|source| self.failed(source))? {
            FORMAT_VERSION => Ok(()),
            found => Err(OpenError::Format { path: self.directory(), found }),
        }
    }

    fn set_up(&self) -> Result<u64, redb::Error> {
        let transaction = self.database.begin_write()?;
        let found = {
            let mut meta = transaction.open_table(META)?;
            transaction.open_table(OBJECTS)?;
            let found = meta.get(FORMAT)?.map(|format| format.value());
            if found.is_none() {
                meta.insert(FORMAT, FORMAT_VERSION)?;
                meta.insert(REVISION, FIRST_REVISION)?;
            }
            found.unwrap_or(FORMAT_VERSION)
        };
        transaction.commit()?;
        Ok(found)
    }

    /// Returns all objects.
    pub fn load(&self) -> Result<Saved, OpenError> {
        self.read_all().map_err(|source| self.failed(source))
    }

    fn read_all(&self) -> Result<Saved, redb::Error> {
        let transaction = self.database.begin_read()?;
        let revision = transaction.open_table(META)?.get(REVISION)?;
        let revision = revision.map_or(FIRST_REVISION, |revision| revision.value());
        let mut objects = Vec::new();
        for row in transaction.open_table(OBJECTS)?.iter()? {
            let (place, text) = row?;
            let (table, namespace, name) = place.value();
            objects.push(SavedObject {
                table: table.to_owned(),
                key: Key::new(namespace, name),
                text: text.value().to_vec(),
            });
        }
        Ok(Saved { revision, objects })
    }

    /// Stores objects in a directory that has none.
    pub fn fill(&self, saved: &Saved) -> Result<(), OpenError> {
        let was_empty = self.insert_all(saved).map_err(|source| self.failed(source))?;
        if was_empty { Ok(()) } else { Err(OpenError::NotEmpty { path: self.directory() }) }
    }

    fn directory(&self) -> PathBuf {
        self.file.parent().map(Path::to_owned).unwrap_or_default()
    }

    fn failed(&self, source: redb::Error) -> OpenError {
        OpenError::Database { path: self.file.clone(), source }
    }

    fn insert_all(&self, saved: &Saved) -> Result<bool, redb::Error> {
        let transaction = self.database.begin_write()?;
        {
            let mut objects = transaction.open_table(OBJECTS)?;
            if !objects.is_empty()? {
                return Ok(false);
            }
            for SavedObject { table, key, text } in &saved.objects {
                let place = (table.as_str(), key.namespace.as_str(), key.name.as_str());
                objects.insert(place, text.as_slice())?;
            }
            transaction.open_table(META)?.insert(REVISION, saved.revision)?;
        }
        transaction.commit()?;
        Ok(true)
    }

    /// Writes operations durably, in one transaction.
    pub(crate) fn commit(&self, operations: &[Operation]) -> Result<(), redb::Error> {
        let transaction = self.database.begin_write()?;
        {
            let mut objects = transaction.open_table(OBJECTS)?;
            for Operation { table, change, object } in operations {
                let place =
                    (table.as_str(), object.key.namespace.as_str(), object.key.name.as_str());
                match change {
                    Change::Deleted => objects.remove(place)?,
                    Change::Added | Change::Modified => objects.insert(place, object.object())?,
                };
            }
            if let Some(last) = operations.last() {
                transaction.open_table(META)?.insert(REVISION, last.object.revision)?;
            }
        }
        Ok(transaction.commit()?)
    }
}

/// The writes that are ordered and not durable yet.
#[derive(Default)]
struct Head {
    pending: Pending,
    /// The version of the newest ordered write.
    revision: u64,
    /// The writes of the next transaction.
    queue: Vec<Operation>,
    is_closed: bool,
}

struct Shared {
    cache: Arc<Cache>,
    head: Mutex<Head>,
    /// Wakes the thread that commits.
    wake: Condvar,
    /// The newest durable version, or the error that ended all writes.
    durable: watch::Sender<Result<u64, WriteError>>,
}

impl Shared {
    fn head(&self) -> MutexGuard<'_, Head> {
        self.head.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The engine on a [`Disk`]. When it is dropped, it writes its queue and closes the file.
pub(crate) struct DiskEngine {
    shared: Arc<Shared>,
    file: PathBuf,
    thread: Option<JoinHandle<()>>,
}

impl DiskEngine {
    pub(crate) fn start(disk: Disk, cache: Arc<Cache>) -> std::io::Result<Self> {
        let revision = cache.read().revision;
        let shared = Arc::new(Shared {
            cache,
            head: Mutex::new(Head { revision, ..Head::default() }),
            wake: Condvar::new(),
            durable: watch::Sender::new(Ok(revision)),
        });
        let committer = shared.clone();
        let file = disk.file.clone();
        let thread = thread::Builder::new().name("storage".to_owned());
        let thread = thread.spawn(move || commit_batches(&disk, &committer))?;
        Ok(Self { shared, file, thread: Some(thread) })
    }
}

impl Drop for DiskEngine {
    fn drop(&mut self) {
        self.shared.head().is_closed = true;
        self.shared.wake.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has ended all writes.
            let _ = thread.join();
        }
    }
}

impl Engine for DiskEngine {
    fn waits(&self) -> bool {
        true
    }

    fn size(&self) -> Option<u64> {
        fs::metadata(&self.file).ok().map(|metadata| metadata.len())
    }

    fn commit<'a>(&'a self, change: &'a mut ChangeFn<'_>) -> BoxFuture<'a, Committed> {
        let (last, revision) = self.shared.order(change);
        let mut durable = self.shared.durable.subscribe();
        Box::pin(async move {
            let is_done = |durable: &Result<u64, WriteError>| match durable {
                Ok(newest) => *newest >= revision,
                Err(_) => true,
            };
            // The engine outlives this future, so the sender is there.
            match durable.wait_for(is_done).await.as_deref() {
                Ok(Err(error)) => Err(error.clone()),
                _ => Ok(last),
            }
        })
    }
}

impl Shared {
    /// Puts a write in order. Returns its last object, and the version that must be durable before
    /// its result is. A write without operations has seen writes of others.
    fn order(&self, change: &mut ChangeFn<'_>) -> (Option<Arc<crate::Stored>>, u64) {
        let mut head = self.head();
        let operations = {
            let state = self.cache.read();
            let mut write = Write::new(&state, Some(&head.pending), head.revision);
            change(&mut write);
            write.into_operations()
        };
        let last = operations.last().map(|operation| operation.object.clone());
        for Operation { table, change, object } in &operations {
            let kept = (*change != Change::Deleted).then(|| object.clone());
            let changed = head.pending.entry(table.clone()).or_default();
            changed.insert(object.key.clone(), (object.revision, kept));
            head.revision = object.revision;
        }
        if !operations.is_empty() {
            head.queue.extend(operations);
            self.wake.notify_one();
        }
        (last, head.revision)
    }

    /// Waits for writes. Returns none when the store is closed.
    fn next_batch(&self) -> Option<Vec<Operation>> {
        let mut head = self.head();
        while head.queue.is_empty() {
            if head.is_closed {
                return None;
            }
            head = self.wake.wait(head).unwrap_or_else(PoisonError::into_inner);
        }
        Some(std::mem::take(&mut head.queue))
    }

    /// Wakes the writers whose writes are durable, or all of them after an error.
    fn end(&self, durable: Result<u64, WriteError>) {
        drop(self.durable.send_replace(durable));
    }

    /// Shows durable writes to readers.
    fn publish(&self, batch: Vec<Operation>) {
        let Some(newest) = batch.last().map(|last| last.object.revision) else { return };
        self.cache.apply(self.cache.lock(), batch);
        self.head().pending.retain(|_, objects| {
            objects.retain(|_, (revision, _)| *revision > newest);
            !objects.is_empty()
        });
        self.end(Ok(newest));
    }
}

fn commit_batches(disk: &Disk, shared: &Shared) {
    while let Some(batch) = shared.next_batch() {
        if let Err(error) = disk.commit(&batch) {
            // The state of the file is unknown, so no later write may succeed.
            let error = WriteError::Failed(error.to_string().into());
            shared.end(Err(error));
            return;
        }
        shared.publish(batch);
    }
}

#[cfg(test)]
mod tests;
