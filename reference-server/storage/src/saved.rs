//! The objects of a store outside of it.

use super::object::Key;

/// All objects of a store at one version.
#[derive(Debug, Default)]
pub struct Saved {
    /// The version of the store.
    pub revision: u64,
    /// The objects, by table and key.
    pub objects: Vec<SavedObject>,
}

/// An object outside of a store.
#[derive(Debug)]
pub struct SavedObject {
    /// The table of the object.
    pub table: String,
    /// The key of the object.
    pub key: Key,
    /// The object as JSON, with its version.
    pub text: Vec<u8>,
}
