//! The engine without durability: the cache is the store.

use std::future::ready;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::{ChangeFn, Committed, Engine};
use crate::state::Cache;
use crate::write::Write;

pub(crate) struct Memory(pub(crate) Arc<Cache>);

impl Engine for Memory {
    fn waits(&self) -> bool {
        false
    }

    fn commit<'a>(&'a self, change: &'a mut ChangeFn<'_>) -> BoxFuture<'a, Committed> {
        let state = self.0.lock();
        let mut write = Write::new(&state, None, state.revision);
        change(&mut write);
        let operations = write.into_operations();
        let last = operations.last().map(|operation| operation.object.clone());
        self.0.apply(state, operations);
        Box::pin(ready(Ok(last)))
    }
}
