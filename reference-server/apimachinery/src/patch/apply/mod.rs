//! Server-side apply: several managers share an object field by field.
//!
//! An applier owns the fields that it sends. It gives up a field when a later configuration omits
//! it, and a field without an owner is removed. A different value for a field of another owner is a
//! conflict, unless the applier forces it. Other writes own the fields that they changed.
//! `metadata.managedFields` stores the owners as a normal part of the object.

mod fields;
mod managed;
mod merge;
mod shape;
mod typed;

use serde_json::{Value, json};

use self::fields::FieldSet;
use self::managed::{Entry, Managed, now};
pub use self::managed::{Operation, Owner};
use self::merge::Changes;
pub use self::typed::mistakes;
use crate::object::Object;
use crate::schema::Schema;

/// The fields that an endpoint covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// All fields.
    Whole,
    /// All fields except the status, which has its own endpoint.
    NoStatus,
    /// Only the status.
    Status,
    /// The status and the metadata, as on the status endpoint of built-in types.
    StatusAndMetadata,
    /// The fields at and below these paths. The step `*` stands for every item of a list.
    Only(&'static [&'static [&'static str]]),
}

/// A write, with the information that field ownership needs.
#[derive(Clone, Debug)]
pub struct Write<'a> {
    /// The manager that writes.
    pub owner: Owner,
    /// The fields that the endpoint can own.
    pub reach: Reach,
    /// The structure of the object.
    pub schema: &'a Schema,
}

/// The reason why a configuration was not applied.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ApplyError {
    /// Other managers own fields for which the configuration has different values.
    #[error("{}", conflict_message(.0))]
    Conflict(Vec<Conflict>),
    /// The configuration contains an item of a list map or set twice.
    #[error("the applied configuration is ambiguous: {0}")]
    Ambiguous(String),
    /// The merged object does not fit its type.
    #[error("{0}")]
    Invalid(String),
}

/// The fields of one owner that conflict with a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// `conflict with "m" using v1`
    pub message: String,
    /// `.data.a`
    pub fields: Vec<String>,
}

/// The manager of the fields of an object that had no managed fields before its first apply.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";
/// Fields without an owner.
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
    fn ownable(&self, mut set: FieldSet) -> FieldSet {
        set.member = false;
        // Often, two of the three sets of a comparison are empty.
        if set.is_empty() {
            return set;
        }
        for path in UNOWNED {
            set.remove(path);
        }
        let metadata = fields::Step::field("metadata");
        if let Some(mut child) = set.children.remove(&metadata) {
            child.member = false;
            set.attach(metadata, child);
        }
        match self.reach {
            Reach::Whole => {}
            Reach::NoStatus => set.remove(&["status"]),
            Reach::Status => {
                set.children.retain(|step, _| step.is_field("status"));
            }
            Reach::StatusAndMetadata => set.remove(&["spec"]),
            Reach::Only(paths) => set = set.only(paths),
        }
        set
    }

    fn changes(&self, old: &Value, new: &Value) -> Changes {
        merge::compare(old, new, Some(self.schema)).map(|set| self.ownable(set))
    }

    /// Records the owners after a create, an update or a patch. `sent` is the `managedFields` of
    /// the request and applies if it parses. A single empty entry resets all owners. In built-in
    /// types, an empty list does so, too: kube-apiserver does not see it in custom resources.
    pub fn track(&self, old: Option<&Value>, new: &mut Value, sent: Option<&Value>) {
        let before = old.and_then(Managed::of).unwrap_or_default();
        let is_typed = self.schema.typed;
        let is_reset = |sent: &Value| *sent == json!([{}]) || is_typed && *sent == json!([]);
        let resets = sent.is_some_and(is_reset);
        if old.is_some() && resets {
            new.unset_meta("managedFields");
            return;
        }
        // An object without owners stays untracked until the first apply.
        if old.is_some() && before.is_empty() {
            return;
        }
        let given = sent.filter(|_| old.is_some()).and_then(|sent| {
            Managed::of(&json!({"metadata": {"managedFields": sent}}))
                .filter(|given| !given.is_empty())
        });
        let mut managed = given.unwrap_or(before);
        let bare = shape::bare(self.schema);
        let changes = self.changes(old.unwrap_or(&bare), new);
        let (written, removed) = changes.into_parts();
        let time = (!written.is_empty()).then(now);
        let owned = managed.fields_of(&self.owner).difference(&removed).union(written.clone());
        managed.take(&self.owner, &removed.union(written));
        managed.set(&self.owner, owned, time);
        managed.write(new);
    }

    /// Applies the configuration and returns the object, including `managedFields`. `settle`
    /// converts a merged value to one that the type can hold.
    pub fn apply(
        &self,
        live: &Value,
        config: &Value,
        force: bool,
        settle: impl Fn(Value) -> Result<Value, String>,
    ) -> Result<Value, ApplyError> {
        let schema = Some(self.schema);
        let stated = self.read(config)?;
        let mut managed = Managed::of(live).unwrap_or_default();
        if managed.is_empty() {
            let owner = Owner {
                manager: BEFORE_FIRST_APPLY.to_owned(),
                operation: Operation::Update,
                subresource: String::new(),
                ..self.owner.clone()
            };
            let everything = self.ownable(shape::every_place(live, schema));
            managed.set(&owner, everything, None);
        }
        let last = managed.fields_of(&self.owner);
        let before = managed.clone();
        managed.set(&self.owner, stated.clone(), None);

        let merged = merge::merge(live, config, schema);
        let pruned = self.give_up(&merged, &last, &managed);
        let new = settle(pruned).map_err(ApplyError::Invalid)?;
        let changes = self.changes(live, &new);
        // The whole write has one time. An apply that changes nothing keeps the previous time.
        let moved = !changes.is_empty() || stated != last;
        let (written, removed) = changes.into_parts();
        if !force {
            reject_conflicts(before.others(&self.owner), &written)?;
        }
        let mut managed = before;
        managed.take(&self.owner, &removed.union(written));
        managed.set(&self.owner, stated, moved.then(now));
        let mut new = new;
        managed.write(&mut new);
        Ok(new)
    }

    /// Records the owner of a configuration that creates its object.
    pub fn claim(&self, config: &Value, object: &mut Value) -> Result<(), ApplyError> {
        let mut managed = Managed::default();
        managed.set(&self.owner, self.read(config)?, Some(now()));
        managed.write(object);
        Ok(())
    }

    fn read(&self, config: &Value) -> Result<FieldSet, ApplyError> {
        let schema = Some(self.schema);
        shape::duplicates(config, schema)
            .map_err(|error| ApplyError::Ambiguous(error.to_string()))?;
        Ok(self.ownable(shape::stated(config, schema)))
    }

    /// Removes the fields that the applier gave up and that have no other owner.
    fn give_up(&self, merged: &Value, last: &FieldSet, managed: &Managed) -> Value {
        let kept = managed.all();
        let schema = Some(self.schema);
        let mut gone =
            shape::with_declared(last, schema).difference(&shape::with_declared(&kept, schema));
        // The metadata stays for the name, which has no owner.
        if let Some(metadata) = gone.children.get_mut(&fields::Step::field("metadata")) {
            metadata.member = false;
        }
        merge::remove(merged, &gone, schema)
    }
}

/// Returns the object with the fields of a configuration, without owners, as a mutating admission
/// policy changes it. The configuration must not replace a list, map or object as a whole. The
/// error is a message for the user.
pub fn merge_unowned(live: &Value, config: &Value, schema: &Schema) -> Result<Value, String> {
    shape::duplicates(config, Some(schema))
        .map_err(|error| format!("failed to convert patch object to typed object: {error}"))?;
    let mut atomics = Vec::new();
    shape::atomics(config, Some(schema), "", &mut atomics);
    if !atomics.is_empty() {
        return Err(format!(
            "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {}",
            atomics.join(", ")
        ));
    }
    Ok(merge::merge(live, config, Some(schema)))
}

fn reject_conflicts<'e>(
    others: impl Iterator<Item = &'e Entry>,
    set: &FieldSet,
) -> Result<(), ApplyError> {
    let conflicts: Vec<_> = others
        .map(|entry| Conflict {
            message: format!("conflict with {}", entry.owner.in_words()),
            fields: entry.fields.intersection(set).paths(),
        })
        .filter(|conflict| !conflict.fields.is_empty())
        .collect();
    if conflicts.is_empty() { Ok(()) } else { Err(ApplyError::Conflict(conflicts)) }
}

/// Returns one line for a single conflict, and a list by owner for several.
fn conflict_message(conflicts: &[Conflict]) -> String {
    let count: usize = conflicts.iter().map(|conflict| conflict.fields.len()).sum();
    if let ([conflict], 1) = (conflicts, count) {
        return format!(
            "Apply failed with 1 conflict: {}: {}",
            conflict.message, conflict.fields[0]
        );
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
