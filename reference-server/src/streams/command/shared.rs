//! What the sessions of a server share, which is nothing unless a fault has it so.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use bytes::{Bytes, BytesMut};
use tokio::sync::Notify;

use crate::{Fault, Faults};

static SESSIONS: AtomicU64 = AtomicU64::new(0);
/// The session that had input last, and what.
static LAST: Mutex<Option<(u64, Bytes)>> = Mutex::new(None);
/// Told when a client breaks its framing.
static BROKEN: Notify = Notify::const_new();
/// Told when a client attaches.
static ATTACHED: Notify = Notify::const_new();

/// Takes note that a client is about to attach.
pub(crate) fn attaches(faults: Faults) {
    if faults.on(Fault::AttachEndsOthers) {
        ATTACHED.notify_waiters();
    }
}

/// The input of a session.
#[derive(Debug)]
pub(super) struct Session {
    number: u64,
    faults: Faults,
}

impl Session {
    pub(super) fn new(faults: Faults) -> Self {
        Self { number: SESSIONS.fetch_add(1, Ordering::Relaxed), faults }
    }

    /// The words of a client, as they reach its command.
    pub(super) fn input(&self, content: Bytes) -> Bytes {
        if !self.faults.on(Fault::ForeignInputMixedIn) {
            return content;
        }
        let own = (self.number, content.clone());
        match LAST.lock().unwrap_or_else(PoisonError::into_inner).replace(own) {
            Some((other, theirs)) if other != self.number => {
                theirs.into_iter().chain(content).collect::<BytesMut>().freeze()
            }
            _ => content,
        }
    }

    /// Takes note that the client has broken its framing.
    pub(super) fn has_broken(&self) {
        if self.faults.on(Fault::BrokenFrameEndsAll) {
            BROKEN.notify_waiters();
        }
    }

    /// Waits until another client's doing ends this session.
    pub(super) async fn ended_by_others(&self) {
        if self.faults.on(Fault::BrokenFrameEndsAll) {
            BROKEN.notified().await;
        } else if self.faults.on(Fault::AttachEndsOthers) {
            ATTACHED.notified().await;
        } else {
            std::future::pending::<()>().await;
        }
    }
}
