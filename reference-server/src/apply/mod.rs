//! Server-side apply: objects that several managers share, field by field.
//!
//! An applier sends the fields that it cares for and owns them from then on. What it leaves out the next time it gives
//! up, and what nobody owns goes. A value that somebody else owns is a conflict, unless the applier insists. Every other
//! write owns what it changed, so that a later apply sees it. All of it is kept in `metadata.managedFields`, which is a part of
//! the object like any other: reads know nothing of it.

mod fields;
mod managed;
mod merge;
mod shape;

use serde_json::{Value, json};

use self::fields::FieldSet;
use self::managed::{Entry, Managed, now};
pub(crate) use self::managed::{Operation, Owner};
use self::merge::Changes;
use crate::object::Object;
use crate::schema::Schema;
use crate::{Fault, Faults};

/// What the fields of an endpoint are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Everything.
    Whole,
    /// Everything but the status, which has an endpoint of its own.
    NoStatus,
    /// The status only.
    Status,
}

/// A write, in the eyes of ownership.
#[derive(Clone, Debug)]
pub(crate) struct Write<'a> {
    pub(crate) owner: Owner,
    pub(crate) reach: Reach,
    pub(crate) schema: &'a Schema,
    pub(crate) faults: Faults,
}

/// Why a configuration was not applied.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum Refusal {
    /// Others own fields that it wants otherwise: who, and which fields of theirs.
    #[error("{}", conflict_message(.0))]
    Conflict(Vec<Conflict>),
    /// It has an item of a list map or set twice.
    #[error("the applied configuration is ambiguous: {0}")]
    Ambiguous(String),
    /// What came of it is no object of its type.
    #[error("{0}")]
    Invalid(String),
}

/// What one owner holds against a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Conflict {
    /// `conflict with "m" using v1`
    pub(crate) message: String,
    /// `.data.a`
    pub(crate) fields: Vec<String>,
}

/// The manager of fields of an object that nobody managed before it was first applied.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";
/// Fields that belong to nobody.
const UNOWNED: [&[&str]; 10] = [
    &["apiVersion"],
    &["kind"],
    &["metadata", "name"],
    &["metadata", "namespace"],
    &["metadata", "creationTimestamp"],
    &["metadata", "selfLink"],
    &["metadata", "uid"],
    &["metadata", "generation"],
    &["metadata", "managedFields"],
    &["metadata", "resourceVersion"],
];

impl Write<'_> {
    /// The fields that this write can own.
    fn ownable(&self, mut set: FieldSet) -> FieldSet {
        set.member = false;
        for path in UNOWNED {
            set = set.without(path);
        }
        let metadata = fields::Step::field("metadata");
        if let Some(mut child) = set.children.remove(&metadata) {
            child.member = false;
            set.attach(metadata, child);
        }
        match self.reach {
            Reach::Whole => set,
            Reach::NoStatus if self.faults.on(Fault::ApplyOwnsStatus) => set,
            Reach::NoStatus => set.without(&["status"]),
            Reach::Status => {
                set.children.retain(|step, _| *step == fields::Step::field("status"));
                set
            }
        }
    }

    fn changes(&self, old: &Value, new: &Value) -> Changes {
        merge::compare(old, new, Some(self.schema), self.faults).map(|set| self.ownable(set))
    }

    /// Records who owns what after a create, an update or a patch. `sent` is what the client said of it, which
    /// counts when it can be read; one empty entry forgets everything.
    pub(crate) fn track(&self, old: Option<&Value>, new: &mut Value, sent: Option<&Value>) {
        if self.faults.on(Fault::UpdatesNotTracked) {
            return;
        }
        let before = old.and_then(Managed::of).unwrap_or_default();
        let forgets = sent.is_some_and(|sent| *sent == json!([{}]));
        if old.is_some() && forgets && !self.faults.on(Fault::ManagedFieldsNotReset) {
            new.unset_meta("managedFields");
            return;
        }
        // What was reset, or never tracked, stays so until it is applied.
        if old.is_some() && before.is_empty() {
            return;
        }
        let given = sent.filter(|_| old.is_some()).and_then(|sent| {
            Managed::of(&json!({"metadata": {"managedFields": sent}})).filter(|given| !given.is_empty())
        });
        let mut managed = given.unwrap_or(before);
        let empty = json!({});
        let changes = self.changes(old.unwrap_or(&empty), new);
        let written = changes.written();
        let owned = managed.fields_of(&self.owner).difference(&changes.removed).union(&written);
        managed.take(&self.owner, &changes.removed.union(&written));
        managed.set(&self.owner, owned, (!written.is_empty()).then(now));
        managed.write(new);
        if self.faults.on(Fault::OwnersWithoutTime) {
            let entries = new["metadata"]["managedFields"].as_array_mut().into_iter().flatten();
            entries.filter_map(Value::as_object_mut).for_each(|entry| drop(entry.remove("time")));
        }
    }

    /// The object with the configuration applied, `managedFields` included. `settle` makes of a merged value what the
    /// type can hold.
    pub(crate) fn apply(
        &self,
        live: &Value,
        config: &Value,
        force: bool,
        settle: impl Fn(Value) -> Result<Value, String>,
    ) -> Result<Value, Refusal> {
        let (schema, faults) = (Some(self.schema), self.faults);
        let said = self.read(config)?;
        let mut managed = Managed::of(live).unwrap_or_default();
        if managed.is_empty() {
            let owner = Owner {
                manager: BEFORE_FIRST_APPLY.to_owned(),
                operation: Operation::Update,
                subresource: String::new(),
                ..self.owner.clone()
            };
            let everything = self.ownable(shape::every_place(live, schema, faults));
            managed.set(&owner, everything, None);
        }
        let last = managed.fields_of(&self.owner);
        let before = managed.clone();
        managed.set(&self.owner, said.clone(), None);

        let merged = if faults.on(Fault::ApplyReplaces) {
            let mut replaced = config.clone();
            replaced["metadata"] = merge::merge(&live["metadata"], &config["metadata"], None, faults);
            replaced
        } else {
            merge::merge(live, config, schema, faults)
        };
        let pruned = self.give_up(&merged, &last, &managed);
        let new = settle(pruned).map_err(Refusal::Invalid)?;
        let changes = self.changes(live, &new);
        let written = changes.written();
        if !force || faults.on(Fault::ApplyForceIgnored) {
            self.refuse_conflicts(before.others(&self.owner), &written)?;
        }
        // One time stands for the whole write; an apply that changes nothing keeps the one before.
        let moved = !changes.is_empty() || said != last || faults.on(Fault::ApplyNoOpBumpsVersion);
        let mut managed = before;
        let taken = if faults.on(Fault::ApplyForceShares) {
            changes.removed
        } else {
            changes.removed.union(&written)
        };
        managed.take(&self.owner, &taken);
        managed.set(&self.owner, said, moved.then(|| self.time()));
        let mut new = new;
        managed.write(&mut new);
        Ok(new)
    }

    /// The fields of a configuration for an object that is not there yet.
    pub(crate) fn claim(&self, config: &Value, object: &mut Value) -> Result<(), Refusal> {
        let mut managed = Managed::default();
        managed.set(&self.owner, self.read(config)?, Some(now()));
        managed.write(object);
        Ok(())
    }

    fn time(&self) -> String {
        if !self.faults.on(Fault::ApplyNoOpBumpsVersion) {
            return now();
        }
        // Whole seconds would hide the fault.
        jiff::Timestamp::now().to_string()
    }

    fn read(&self, config: &Value) -> Result<FieldSet, Refusal> {
        let (schema, faults) = (Some(self.schema), self.faults);
        shape::duplicates(config, schema, faults).map_err(|error| Refusal::Ambiguous(error.to_string()))?;
        Ok(self.ownable(shape::stated(config, schema, faults)))
    }

    /// Takes out what the applier had and has no more, unless somebody else owns it too.
    fn give_up(&self, merged: &Value, last: &FieldSet, managed: &Managed) -> Value {
        if self.faults.on(Fault::ApplyKeepsGivenUp) {
            return merged.clone();
        }
        let kept = if self.faults.on(Fault::ApplyRemovesShared) {
            managed.fields_of(&self.owner)
        } else {
            managed.all()
        };
        let schema = Some(self.schema);
        let gone = shape::with_declared(last, schema).difference(&shape::with_declared(&kept, schema));
        merge::remove(merged, &gone, schema, self.faults)
    }

    fn refuse_conflicts<'e>(
        &self,
        others: impl Iterator<Item = &'e Entry>,
        set: &FieldSet,
    ) -> Result<(), Refusal> {
        if self.faults.on(Fault::ApplyIgnoresConflicts) {
            return Ok(());
        }
        let forgets = self.faults.on(Fault::ApplyForgetsVersions);
        let conflicts: Vec<_> = others
            .filter(|entry| !forgets || entry.owner.api_version == self.owner.api_version)
            .map(|entry| Conflict {
                message: format!("conflict with {}", entry.owner.in_words()),
                fields: entry.fields.intersection(set).paths(),
            })
            .filter(|conflict| !conflict.fields.is_empty())
            .collect();
        if conflicts.is_empty() { Ok(()) } else { Err(Refusal::Conflict(conflicts)) }
    }
}

/// One line for one conflict, a list by owner for several.
fn conflict_message(conflicts: &[Conflict]) -> String {
    let count: usize = conflicts.iter().map(|conflict| conflict.fields.len()).sum();
    if let ([conflict], 1) = (conflicts, count) {
        return format!("Apply failed with 1 conflict: {}: {}", conflict.message, conflict.fields[0]);
    }
    let mut message = format!("Apply failed with {count} conflicts: ");
    let lists = conflicts.iter().map(|conflict| {
        let plural = conflict.message.replacen("conflict ", "conflicts ", 1);
        format!("{plural}:\n- {}", conflict.fields.join("\n- "))
    });
    message.push_str(&lists.collect::<Vec<_>>().join("\n"));
    message
}

#[cfg(test)]
mod tests;
