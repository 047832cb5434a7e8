//! `metadata.managedFields`: who owns which fields of an object.

use serde_json::{Map, Value, json};

use super::fields::FieldSet;
use crate::object::Object;

/// What a manager did to own fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operation {
    /// Server-side apply.
    Apply,
    /// Any other write.
    Update,
}

/// Who writes, in which way and through which endpoint. One manager is several owners when these differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) manager: String,
    pub(crate) operation: Operation,
    pub(crate) api_version: String,
    /// Empty for the main endpoint.
    pub(crate) subresource: String,
}

impl Owner {
    /// The same owner; the version of an applied configuration may change.
    fn is(&self, other: &Self) -> bool {
        let version = self.operation == Operation::Apply || self.api_version == other.api_version;
        self.manager == other.manager
            && self.operation == other.operation
            && self.subresource == other.subresource
            && version
    }

    /// As a conflict names it.
    pub(crate) fn in_words(&self) -> String {
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

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) owner: Owner,
    pub(crate) time: Option<String>,
    pub(crate) fields: FieldSet,
}

/// All entries of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Managed(Vec<Entry>);

impl Managed {
    /// Reads the entries of an object; none when one of them cannot be read.
    pub(crate) fn of(object: &Value) -> Option<Self> {
        let list = object.metadata().and_then(|metadata| metadata.get("managedFields"));
        let list = list.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        list.iter().map(Entry::parse).collect::<Option<_>>().map(Self)
    }

    /// Writes them into an object, in their order.
    pub(crate) fn write(mut self, object: &mut Value) {
        if self.0.is_empty() {
            object.unset_meta("managedFields");
            return;
        }
        self.0.sort_by(|a, b| {
            let key =
                |entry: &Entry| (entry.owner.operation, entry.time.clone(), entry.owner.manager.clone());
            key(a).cmp(&key(b)).then_with(|| a.owner.subresource.cmp(&b.owner.subresource))
        });
        object.set_meta("managedFields", self.0.iter().map(Entry::to_value).collect::<Vec<_>>());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What an owner has; nothing when there is no such owner.
    pub(crate) fn fields_of(&self, owner: &Owner) -> FieldSet {
        self.0
            .iter()
            .find(|entry| entry.owner.is(owner))
            .map(|entry| entry.fields.clone())
            .unwrap_or_default()
    }

    /// The entries of everybody else.
    pub(crate) fn others(&self, owner: &Owner) -> impl Iterator<Item = &Entry> {
        self.0.iter().filter(|entry| !entry.owner.is(owner))
    }

    /// Everything that is owned.
    pub(crate) fn all(&self) -> FieldSet {
        self.0.iter().fold(FieldSet::default(), |all, entry| all.union(&entry.fields))
    }

    /// Makes `fields` what the owner has. The time is that of the change, if there was one.
    pub(crate) fn set(&mut self, owner: &Owner, fields: FieldSet, changed: Option<String>) {
        let at = self.0.iter().position(|entry| entry.owner.is(owner));
        let before = at.map(|at| self.0.remove(at));
        let same = before.as_ref().is_some_and(|before| before.fields == fields);
        let time = before.and_then(|before| before.time);
        if !fields.is_empty() {
            let time = if same && changed.is_none() { time } else { changed.or_else(|| Some(now())) };
            self.0.push(Entry { owner: owner.clone(), time, fields });
        }
    }

    /// Takes fields away from everybody but the owner.
    pub(crate) fn take(&mut self, owner: &Owner, fields: &FieldSet) {
        for entry in self.0.iter_mut().filter(|entry| !entry.owner.is(owner)) {
            entry.fields = entry.fields.difference(fields);
        }
        self.0.retain(|entry| !entry.fields.is_empty());
    }
}

/// A time as the entries write it.
pub(crate) fn now() -> String {
    crate::object::timestamp(0)
}

impl Entry {
    fn parse(value: &Value) -> Option<Self> {
        let text = |field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
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
        let fields = value.get("fieldsV1").map_or(Some(FieldSet::default()), FieldSet::from_fields_v1)?;
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
    fn entries_read_back_as_they_were_written() {
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
        assert_eq!(Managed::of(&json!({"metadata": {"managedFields": [{"operation": "Guess"}]}})), None);
    }

    #[test]
    fn one_name_is_two_owners_when_it_applies_and_updates() {
        let mut managed = Managed::default();
        let fields = set(&json!({"f:data": {"f:a": {}}}));
        managed.set(&owner("m", Operation::Apply), fields.clone(), None);
        managed.set(&owner("m", Operation::Update), fields.clone(), None);
        managed.take(&owner("m", Operation::Update), &fields);
        assert!(managed.fields_of(&owner("m", Operation::Apply)).is_empty());
        assert_eq!(managed.fields_of(&owner("m", Operation::Update)), fields);
    }

    /// A configuration is the same manager's in every version; an update is of one version.
    #[test]
    fn versions_tell_updaters_apart_and_no_appliers() {
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
    fn an_entry_says_no_more_than_it_knows() {
        let mut entry = json!({"operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:a": {}}});
        assert_eq!(Entry::parse(&entry).unwrap().to_value(), entry);
        for (field, value) in [("manager", "m"), ("time", "2001-01-01T00:00:00Z"), ("subresource", "status")]
        {
            entry[field] = value.into();
            assert_eq!(Entry::parse(&entry).unwrap().to_value(), entry);
        }
        for (field, value) in [("fieldsType", "FieldsV2"), ("apiVersion", ""), ("operation", "Guess")] {
            let mut unreadable = entry.clone();
            unreadable[field] = value.into();
            assert_eq!(Entry::parse(&unreadable), None, "{unreadable}");
        }
        assert!(now().parse::<jiff::Timestamp>().is_ok());
    }

    #[test]
    fn the_time_of_an_entry_moves_only_when_something_changed() {
        let mut managed = Managed::default();
        let (me, fields) = (owner("m", Operation::Apply), set(&json!({"f:data": {"f:a": {}}})));
        managed.set(&me, fields.clone(), Some("2001-01-01T00:00:00Z".to_owned()));
        managed.set(&me, fields.clone(), None);
        assert_eq!(managed.0[0].time.as_deref(), Some("2001-01-01T00:00:00Z"));
        managed.set(&me, set(&json!({"f:data": {"f:b": {}}})), None);
        assert_ne!(managed.0[0].time.as_deref(), Some("2001-01-01T00:00:00Z"));
    }
}
