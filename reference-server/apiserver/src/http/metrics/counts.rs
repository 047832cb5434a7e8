//! Numbers that the server counts outside of its metrics.

/// What the server counts elsewhere, for the text of its metrics.
#[derive(Debug, Default)]
pub(crate) struct Counts<'a> {
    /// The number of objects of each group and resource.
    pub(crate) objects: Vec<(&'a str, &'a str, usize)>,
    /// The size of the storage in bytes, if it has files.
    pub(crate) storage_size: Option<u64>,
    /// The events of the audit log.
    pub(crate) audit_events: u64,
    /// The events that the audit log does not have.
    pub(crate) audit_losses: u64,
}
