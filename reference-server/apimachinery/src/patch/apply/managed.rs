//! `metadata.managedFields`: the owners of the fields of an object.

use serde_json::{Map, Value, json};

use super::fields::FieldSet;
use crate::object::Object;

/// The kind of write by which a manager owns fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// Server-side apply.
    Apply,
    /// Any other write.
    Update,
}

/// The owner of fields: a manager, an operation, a version and an endpoint. A manager counts as
/// several owners when these differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// `manager`
    pub manager: String,
    /// `operation`
    pub operation: Operation,
    /// `apiVersion`
    pub api_version: String,
    /// Empty for the main endpoint.
    pub subresource: String,
}

impl Owner {
    /// Applied configurations keep their owner across versions. Updates of another version have
    /// another owner.
    fn is(&self, other: &Self) -> bool {
        let version = self.operation == Operation::Apply || self.api_version == other.api_version;
        self.manager == other.manager
            && self.operation == other.operation
            && self.subresource == other.subresource
            && version
    }

    /// Returns the description that a conflict message shows.
    pub fn in_words(&self) -> String {
        let mut words = format!("{:?}", self.manager);
        if !self.subresource.is_empty() {
            words = format!("{words} with subresource {:?}", self.subresource);
        }
        if self.operation == Operation::Update {
            words = format!("{words} using {}", self.api_version);
        }
        words
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub owner: Owner,
    pub time: Option<String>,
    pub fields: FieldSet,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Managed(Vec<Entry>);

impl Managed {
    /// Parses the entries of an object. Returns `None` when one of them is malformed.
    pub(super) fn of(object: &Value) -> Option<Self> {
        let list = object.metadata().and_then(|metadata| metadata.get("managedFields"));
        let list = list.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        list.iter().map(Entry::parse).collect::<Option<_>>().map(Self)
    }

    /// Writes the entries into an object, in their canonical order.
    pub(super) fn write(mut self, object: &mut Value) {
        if self.0.is_empty() {
            object.unset_meta("managedFields");
            return;
        }
        self.0.sort_by(|a, b| {
            let key = |entry: &Entry| {
                (entry.owner.operation, entry.time.clone(), entry.owner.manager.clone())
            };
            key(a).cmp(&key(b)).then_with(|| a.owner.subresource.cmp(&b.owner.subresource))
        });
        object.set_meta("managedFields", self.0.iter().map(Entry::to_value).collect::<Vec<_>>());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the fields of an owner; empty for an unknown owner.
    pub(super) fn fields_of(&self, owner: &Owner) -> FieldSet {
        self.0
            .iter()
            .find(|entry| entry.owner.is(owner))
            .map(|entry| entry.fields.clone())
            .unwrap_or_default()
    }

    /// Returns the entries of the other owners.
    pub(super) fn others(&self, owner: &Owner) -> impl Iterator<Item = &Entry> {
        self.0.iter().filter(|entry| !entry.owner.is(owner))
    }

    /// Returns all owned fields.
    pub(super) fn all(&self) -> FieldSet {
        self.0.iter().fold(FieldSet::default(), |all, entry| all.union(entry.fields.clone()))
    }

    /// Replaces the fields of an owner. `changed` is the time of the change, if there was one.
    pub(super) fn set(&mut self, owner: &Owner, fields: FieldSet, changed: Option<String>) {
        let at = self.0.iter().position(|entry| entry.owner.is(owner));
        let before = at.map(|at| self.0.remove(at));
        let same = before.as_ref().is_some_and(|before| before.fields == fields);
        let time = before.and_then(|before| before.time);
        if !fields.is_empty() {
            let time =
                if same && changed.is_none() { time } else { changed.or_else(|| Some(now())) };
            self.0.push(Entry { owner: owner.clone(), time, fields });
        }
    }

    /// Removes fields from all owners except this one.
    pub(super) fn take(&mut self, owner: &Owner, fields: &FieldSet) {
        for entry in self.0.iter_mut().filter(|entry| !entry.owner.is(owner)) {
            entry.fields = entry.fields.difference(fields);
        }
        self.0.retain(|entry| !entry.fields.is_empty());
    }
}

/// Returns the current time in the form of an entry.
pub(super) fn now() -> String {
    crate::object::timestamp(0)
}

impl Entry {
    fn parse(value: &Value) -> Option<Self> {
        let text =
            |field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        let operation = match text("operation").as_str() {
            "Apply" => Operation::Apply,
            "Update" => Operation::Update,
            _ => return None,
        };
        if text("fieldsType") != "FieldsV1" || text("apiVersion").is_empty() {
            return None;
        }
        let owner = Owner {
            manager: text("manager"),
            operation,
            api_version: text("apiVersion"),
            subresource: text("subresource"),
        };
        let fields =
            value.get("fieldsV1").map_or(Some(FieldSet::default()), FieldSet::from_fields_v1)?;
        Some(Self { owner, time: Some(text("time")).filter(|time| !time.is_empty()), fields })
    }

    fn to_value(&self) -> Value {
        let mut entry = Map::new();
        let mut put = |name: &str, value: Value| entry.insert(name.to_owned(), value);
        if !self.owner.manager.is_empty() {
            put("manager", self.owner.manager.as_str().into());
        }
        let operation = if self.owner.operation == Operation::Apply { "Apply" } else { "Update" };
        put("operation", operation.into());
        put("apiVersion", self.owner.api_version.as_str().into());
        if let Some(time) = &self.time {
            put("time", time.as_str().into());
        }
        put("fieldsType", json!("FieldsV1"));
        put("fieldsV1", self.fields.to_fields_v1());
        if !self.owner.subresource.is_empty() {
            put("subresource", self.owner.subresource.as_str().into());
        }
        Value::Object(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(manager: &str, operation: Operation) -> Owner {
        Owner {
            manager: manager.to_owned(),
            operation,
            api_version: "v1".to_owned(),
            subresource: String::new(),
        }
    }

    fn set(value: &Value) -> FieldSet {
        FieldSet::from_fields_v1(value).unwrap()
    }

    #[test]
    fn entries_survive_a_round_trip() {
        let mut managed = Managed::default();
        managed.set(&owner("b", Operation::Update), set(&json!({"f:data": {"f:b": {}}})), None);
        managed.set(&owner("a", Operation::Apply), set(&json!({"f:data": {"f:a": {}}})), None);
        let mut object = json!({"metadata": {}});
        managed.write(&mut object);
        let operations: Vec<_> = object["metadata"]["managedFields"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| entry["operation"].as_str().unwrap())
            .collect();
        assert_eq!(operations, ["Apply", "Update"]);
        let mut again = json!({"metadata": {}});
        Managed::of(&object).unwrap().write(&mut again);
        assert_eq!(again, object);
        assert_eq!(
            Managed::of(&json!({"metadata": {"managedFields": [{"operation": "Guess"}]}})),
            None
        );
    }

    #[test]
    fn apply_and_update_of_one_manager_are_two_owners() {
        let mut managed = Managed::default();
        let fields = set(&json!({"f:data": {"f:a": {}}}));
        managed.set(&owner("m", Operation::Apply), fields.clone(), None);
        managed.set(&owner("m", Operation::Update), fields.clone(), None);
        managed.take(&owner("m", Operation::Update), &fields);
        assert!(managed.fields_of(&owner("m", Operation::Apply)).is_empty());
        assert_eq!(managed.fields_of(&owner("m", Operation::Update)), fields);
    }

    /// An applied configuration has the same owner in each version. An update belongs to one
    /// version.
    #[test]
    fn the_version_identifies_updates_but_not_applies() {
        for (operation, same) in [(Operation::Apply, true), (Operation::Update, false)] {
            let one = owner("m", operation);
            let other = Owner { api_version: "v2".to_owned(), ..one.clone() };
            assert_eq!(one.is(&other), same);
            assert!(one.is(&one.clone()));
        }
        let main = owner("m", Operation::Apply);
        assert!(!main.is(&Owner { subresource: "status".to_owned(), ..main.clone() }));
        assert!(!main.is(&owner("n", Operation::Apply)));
    }

    #[test]
    fn an_entry_survives_a_round_trip_or_is_rejected() {
        let mut entry = json!({
            "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:a": {}},
        });
        assert_eq!(Entry::parse(&entry).unwrap().to_value(), entry);
        for (field, value) in
            [("manager", "m"), ("time", "2001-01-01T00:00:00Z"), ("subresource", "status")]
        {
            entry[field] = value.into();
            assert_eq!(Entry::parse(&entry).unwrap().to_value(), entry);
        }
        for (field, value) in
            [("fieldsType", "FieldsV2"), ("apiVersion", ""), ("operation", "Guess")]
        {
            let mut unreadable = entry.clone();
            unreadable[field] = value.into();
            assert_eq!(Entry::parse(&unreadable), None, "{unreadable}");
        }
        assert!(now().parse::<jiff::Timestamp>().is_ok());
    }

    #[test]
    fn the_time_of_an_entry_changes_only_with_its_fields() {
        let mut managed = Managed::default();
        let (me, fields) = (owner("m", Operation::Apply), set(&json!({"f:data": {"f:a": {}}})));
        managed.set(&me, fields.clone(), Some("2001-01-01T00:00:00Z".to_owned()));
        managed.set(&me, fields.clone(), None);
        assert_eq!(managed.0[0].time.as_deref(), Some("2001-01-01T00:00:00Z"));
        managed.set(&me, set(&json!({"f:data": {"f:b": {}}})), None);
        assert_ne!(managed.0[0].time.as_deref(), Some("2001-01-01T00:00:00Z"));
    }
}
