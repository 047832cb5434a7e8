//! Writes as transactions of etcd.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::client::is_unsent;
use super::messages::{
    DeleteRangeRequest, PutRequest, RangeRequest, Request, TxnRequest, has_revision, revision,
};
use super::{Layout, Shared, describe, unavailable};
use crate::engine::{ChangeFn, Committed, WriteError};
use crate::object::{Change, Key, Stored};
use crate::state::{Operation, State};
use crate::write::Write;

/// The attempts of a write. One server always wins a race, so a write loses this often only if the
/// cache cannot show the state of etcd.
const ATTEMPTS: usize = 200;

/// The claims of objects that do not exist any more, with the revision of their keys.
type Stale = BTreeMap<String, u64>;

impl Shared {
    pub(super) async fn commit(&self, change: &mut ChangeFn<'_>) -> Committed {
        let mut stale = Stale::new();
        for _ in 0..ATTEMPTS {
            let Planned { plan, unchanged } = self.plan(change, &stale)?;
            let Some(plan) = plan else { return Ok(unchanged) };
            let response = match self.client.transact(plan.transaction).await {
                Ok(response) => response,
                Err(status) if is_unsent(&status) => return Err(unavailable(&status)),
                Err(status) => return Err(WriteError::Unknown(describe(&status).into())),
            };
            let revision = revision(response.header.as_ref());
            let is_visible = self.wait_for(revision).await;
            if response.succeeded {
                is_visible.map_err(|error| WriteError::Unknown(error.to_string().into()))?;
                return Ok(Some(self.written(&plan.last, &plan.value, revision)));
            }
            // The next attempt needs the state that the faster server has written.
            is_visible?;
            let ranges = response.responses.iter().filter_map(|response| response.range.as_ref());
            for (claim, range) in plan.claims.iter().zip(ranges) {
                let Some(kv) = range.kvs.first() else { continue };
                if self.is_held(claim, &plan.last) {
                    return Err(WriteError::Claimed(claim.as_str().into()));
                }
                stale.insert(claim.clone(), kv.mod_revision.cast_unsigned());
            }
        }
        Err(WriteError::Unavailable("the write lost every race against other servers".into()))
    }

    /// Runs the change on the cache.
    fn plan(&self, change: &mut ChangeFn<'_>, unheld: &Stale) -> Result<Planned, WriteError> {
        let state = self.cache.read();
        let mut write = Write::tracked(&state);
        change(&mut write);
        let (operations, reads) = write.into_parts();
        let mut transaction = Builder {
            layout: &self.layout,
            state: &state,
            stale: unheld,
            compared: BTreeSet::new(),
            transaction: TxnRequest::default(),
            claims: Vec::new(),
            last: None,
        };
        let mut unchanged = None;
        for operation in operations {
            match transaction.add(operation) {
                Ok(None) => {}
                Ok(Some(current)) => unchanged = Some(current),
                Err(why) => return Err(WriteError::Failed(why.into())),
            }
        }
        for (table, key) in reads {
            transaction.compare(&table, &key);
        }
        Ok(Planned { plan: transaction.finish(), unchanged })
    }

    /// Returns an object as it was written. The cache may have a newer state already.
    fn written(&self, last: &Operation, value: &[u8], revision: u64) -> Arc<Stored> {
        let Operation { table, change, object } = last;
        let state = self.cache.read();
        match state.get(table, &object.key) {
            Some(cached) if cached.revision == revision => cached.clone(),
            _ if *change == Change::Deleted => Arc::new(object.at(revision, *change)),
            _ => match self.layout.decode(table, value, (revision, *change)) {
                Ok(decoded) => Arc::new(decoded),
                Err(_) => Arc::new(object.at(revision, *change)),
            },
        }
    }

    /// Reports whether another object of the table has a claim.
    fn is_held(&self, claim: &str, last: &Operation) -> bool {
        let has = |object: &Stored| object.facts.claims.iter().any(|own| own == claim);
        let is_other = |object: &Stored| object.key != last.object.key;
        let state = self.cache.read();
        !state
            .objects(|table, object| table == last.table && is_other(object) && has(object))
            .is_empty()
    }
}

/// The result of a change.
struct Planned {
    /// None if the change writes nothing.
    plan: Option<Plan>,
    /// The object of an operation that would not change it.
    unchanged: Option<Arc<Stored>>,
}

/// A transaction, and what its result needs.
struct Plan {
    transaction: TxnRequest,
    /// The claims whose keys a failed transaction returns.
    claims: Vec<String>,
    last: Operation,
    /// The value of the last operation.
    value: Vec<u8>,
}

struct Builder<'a> {
    layout: &'a Layout,
    state: &'a State,
    stale: &'a Stale,
    /// The keys with a condition.
    compared: BTreeSet<String>,
    transaction: TxnRequest,
    claims: Vec<String>,
    last: Option<(Operation, Vec<u8>)>,
}

impl Builder<'_> {
    /// Adds an operation. Returns the current object if the operation would not change it.
    fn add(&mut self, operation: Operation) -> Result<Option<Arc<Stored>>, String> {
        let Operation { table, change, object } = &operation;
        let current = self.state.get(table, &object.key);
        let key = self.layout.key(table, &object.key);
        let mut value = Vec::new();
        let request = if *change == Change::Deleted {
            Request::DeleteRange(DeleteRangeRequest { key: key.clone().into() })
        } else {
            value = self.layout.codec.encode(table, object.object())?;
            if let Some(current) = current
                && self.layout.codec.encode(table, current.object())? == value
            {
                return Ok(Some(current.clone()));
            }
            Request::Put(PutRequest { key: key.clone().into(), value: value.clone() })
        };
        self.transaction.success.push(request.into());
        let held = current.map_or(&[][..], |current| &current.facts.claims);
        let wanted = if *change == Change::Deleted { &[][..] } else { &object.facts.claims };
        self.claim(held, wanted, &key);
        self.compare(table, &object.key);
        self.last = Some((operation, value));
        Ok(None)
    }

    /// Claims what an object gains, and releases what it loses.
    fn claim(&mut self, held: &[String], wanted: &[String], holder: &str) {
        for claim in wanted.iter().filter(|claim| !held.contains(claim)) {
            let key = self.layout.claim(claim);
            let known = self.stale.get(claim).copied().unwrap_or_default();
            self.transaction.compare.push(has_revision(&key, known));
            let get = RangeRequest { key: key.clone().into(), ..RangeRequest::default() };
            self.transaction.failure.push(Request::Range(get).into());
            let put = PutRequest { key: key.into(), value: holder.into() };
            self.transaction.success.push(Request::Put(put).into());
            self.claims.push(claim.clone());
        }
        for claim in held.iter().filter(|claim| !wanted.contains(claim)) {
            let delete = DeleteRangeRequest { key: self.layout.claim(claim).into() };
            self.transaction.success.push(Request::DeleteRange(delete).into());
        }
    }

    /// Requires that an object is the one in the cache.
    fn compare(&mut self, table: &str, key: &Key) {
        let revision = self.state.get(table, key).map_or(0, |current| current.revision);
        let key = self.layout.key(table, key);
        if self.compared.insert(key.clone()) {
            self.transaction.compare.push(has_revision(&key, revision));
        }
    }

    fn finish(self) -> Option<Plan> {
        let (last, value) = self.last?;
        Some(Plan { transaction: self.transaction, claims: self.claims, last, value })
    }
}
