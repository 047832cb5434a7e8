//! CEL values of objects, sets and list maps, which compare and add in their own way.
//!
//! Functions read them as ordinary maps and lists.

use std::any::Any;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use cel::common::traits::{self, Adder, Container, Indexer, Iterable, Sizer};
use cel::common::types::{CelInt, CelList, CelMap, CelMapKey, CelString, Kind, Type};
use cel::common::value::{Builtin, BuiltinRef, CowVal, StaticVal, Val};
use cel::{ExecutionError, Value as Cel};
use serde_json::Value;

use super::value::{canonical, escaped, to_json};

/// An object with declared fields. A field that is null is absent.
#[derive(Clone, Debug, Default)]
pub(super) struct Object {
    /// The declared fields, by their names in expressions.
    fields: CelMap<'static>,
    /// The names of the declared fields. Fields that are null have a name, but no value.
    names: CelList<'static>,
    /// The fields that expressions cannot access.
    hidden: BTreeMap<String, Value>,
}

impl Object {
    /// Creates an object. Each declared field has its value, or `None` for null.
    pub(super) fn new(
        declared: Vec<(&str, Option<Box<dyn Val>>)>,
        hidden: BTreeMap<String, Value>,
    ) -> Self {
        let mut names: Vec<Box<dyn Val>> = Vec::new();
        let mut fields: HashMap<CelMapKey<'static>, Box<dyn Val>> = HashMap::new();
        for (name, value) in declared {
            let name = escaped(name).unwrap_or_else(|| name.to_owned());
            names.push(Box::new(CelString::from(name.clone())));
            if let Some(value) = value {
                fields.insert(CelMapKey::String(name.into()), value);
            }
        }
        Self { fields: fields.into(), names: names.into(), hidden }
    }

    fn count(&self) -> usize {
        self.names.len() + self.hidden.len()
    }
}

impl Val for Object {
    fn get_type(&self) -> &Type {
        Self::cel_type()
    }

    fn cel_type() -> &'static Type {
        <CelMap<'_> as Val>::cel_type()
    }

    fn as_container(&self) -> Option<&dyn Container> {
        Some(self)
    }

    fn as_indexer<'b, 'v>(&'b self) -> Option<&'b (dyn Indexer + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn into_indexer<'v>(self: Box<Self>) -> Option<Box<dyn Indexer + 'v>>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn as_iterable<'b, 'v>(&'b self) -> Option<&'b (dyn Iterable + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn as_sizer(&self) -> Option<&dyn Sizer> {
        Some(self)
    }

    fn equals(&self, other: &dyn Val) -> bool {
        let (Some(fields), Some(size)) = (other.as_indexer(), other.as_sizer()) else {
            return false;
        };
        let same = |name: &dyn Val| match (self.get(name), fields.get(name)) {
            (Ok(one), Ok(other)) => one.equals(&*other),
            (one, other) => one.is_err() && other.is_err(),
        };
        let object = other.downcast_ref::<Self>();
        let mut hidden = self.hidden.iter();
        other.get_type().kind() == Kind::Map
            && size.size() == self.size()
            && self.names.inner().iter().all(|name| same(&**name))
            && hidden.all(|(name, value)| {
                object.is_some_and(|it| it.hidden.get(name).is_none_or(|other| other == value))
            })
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v>
    where
        Self: 'v,
    {
        Box::new(self.clone())
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn as_builtin<'b, 'v>(&'b self) -> BuiltinRef<'b, 'v>
    where
        Self: 'v,
    {
        BuiltinRef::Map(&self.fields)
    }

    fn into_builtin<'v>(self: Box<Self>) -> Option<Builtin<'v>>
    where
        Self: 'v,
    {
        Some(Builtin::Map(self.fields))
    }
}

impl StaticVal for Object {}

impl Container for Object {
    fn contains(&self, key: &dyn Val) -> Result<bool, ExecutionError> {
        match key.downcast_ref::<CelString<'_>>() {
            Some(_) => Ok(self.get(key).is_ok()),
            None => self.fields.contains(key),
        }
    }
}

impl Indexer for Object {
    fn get<'b, 'v>(&'b self, key: &dyn Val) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        let Some(given) = key.downcast_ref::<CelString<'_>>() else { return self.fields.get(key) };
        let missing = || ExecutionError::NoSuchKey(Arc::new(given.inner().to_owned()));
        let name = canonical(given.inner()).ok_or_else(missing)?;
        self.fields.get(&CelString::from(name)).map_err(|_| missing())
    }

    fn steal<'v>(self: Box<Self>, key: &dyn Val) -> Result<Box<dyn Val + 'v>, ExecutionError>
    where
        Self: 'v,
    {
        self.get(key).map(CowVal::into_owned)
    }
}

impl Iterable for Object {
    fn iter<'b, 'v>(&'b self) -> Box<dyn traits::Iterator<'b, 'v> + 'b>
    where
        Self: 'v,
    {
        Iterable::iter(&self.names)
    }
}

impl Sizer for Object {
    fn size(&self) -> CelInt {
        i64::try_from(self.count()).unwrap_or(i64::MAX).into()
    }
}

/// Reports whether a value is an object. `optional.ofNonZeroValue` also keeps empty ones.
pub(super) fn is_object(value: &dyn Val) -> bool {
    value.downcast_ref::<Object>().is_some()
}

/// A list in which the order of the items has no meaning for comparisons.
#[derive(Clone, Debug)]
pub(super) struct Unordered<'v> {
    items: CelList<'v>,
    /// The fields that identify the items of a list map; `None` for a set.
    keys: Option<Arc<[String]>>,
}

impl Unordered<'static> {
    /// Creates a set.
    pub(super) fn set(items: Vec<Box<dyn Val>>) -> Self {
        Self { items: items.into(), keys: None }
    }

    /// Creates a list map with these keys.
    pub(super) fn list_map(items: Vec<Box<dyn Val>>, keys: &[String]) -> Self {
        let keys = keys.iter().map(|key| escaped(key).unwrap_or_else(|| key.clone()));
        Self { items: items.into(), keys: Some(keys.collect()) }
    }
}

impl Unordered<'_> {
    /// Returns a text that is the same for items with the same identity.
    fn identity(&self, item: &dyn Val) -> String {
        let Some(keys) = &self.keys else { return text(item) };
        let key = |name: &String| {
            let value = item.as_indexer()?.get(&CelString::from(name.as_str())).ok()?;
            Some(text(&*value))
        };
        let keys: Vec<String> = keys.iter().map(|name| key(name).unwrap_or_default()).collect();
        Value::from(keys).to_string()
    }
}

fn text(value: &dyn Val) -> String {
    let value = Cel::try_from(value);
    let json = value.as_ref().ok().and_then(|value| to_json(value).ok());
    json.map_or_else(|| format!("{value:?}"), |json| json.to_string())
}

impl<'a> Val for Unordered<'a> {
    fn get_type(&self) -> &Type {
        Self::cel_type()
    }

    fn cel_type() -> &'static Type {
        <CelList<'_> as Val>::cel_type()
    }

    fn as_adder<'b, 'v>(&'b self) -> Option<&'b (dyn Adder + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn as_container(&self) -> Option<&dyn Container> {
        self.items.as_container()
    }

    fn as_indexer<'b, 'v>(&'b self) -> Option<&'b (dyn Indexer + 'v)>
    where
        Self: 'v,
    {
        Some(&self.items)
    }

    fn into_indexer<'v>(self: Box<Self>) -> Option<Box<dyn Indexer + 'v>>
    where
        Self: 'v,
    {
        Some(Box::new(self.items))
    }

    fn as_iterable<'b, 'v>(&'b self) -> Option<&'b (dyn Iterable + 'v)>
    where
        Self: 'v,
    {
        Some(&self.items)
    }

    fn as_sizer(&self) -> Option<&dyn Sizer> {
        self.items.as_sizer()
    }

    fn equals(&self, other: &dyn Val) -> bool {
        let Some(other) = other.downcast_ref::<CelList<'_>>() else { return false };
        if self.items.len() != other.len() {
            return false;
        }
        let known = self.items.inner().iter().map(|item| (self.identity(&**item), &**item));
        if self.keys.is_none() {
            let known: HashSet<String> = known.map(|(identity, _)| identity).collect();
            return other.inner().iter().all(|item| known.contains(&self.identity(&**item)));
        }
        let known: HashMap<String, &(dyn Val + 'a)> = known.collect();
        let same = |item: &(dyn Val + '_)| {
            known.get(&self.identity(item)).is_some_and(|known| known.equals(item))
        };
        other.inner().iter().all(|item| same(&**item))
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v>
    where
        Self: 'v,
    {
        Box::new(self.clone())
    }

    fn as_builtin<'b, 'v>(&'b self) -> BuiltinRef<'b, 'v>
    where
        Self: 'v,
    {
        BuiltinRef::List(&self.items)
    }

    fn into_builtin<'v>(self: Box<Self>) -> Option<Builtin<'v>>
    where
        Self: 'v,
    {
        Some(Builtin::List(self.items))
    }
}

impl Adder for Unordered<'_> {
    /// Returns the items of both lists. An item of a list map replaces that with the same keys.
    fn add<'b, 'v>(&'b self, rhs: &(dyn Val + 'v)) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        let Some(added) = rhs.downcast_ref::<CelList<'_>>() else {
            let types = vec!["list".to_owned(), rhs.get_type().name().to_owned()];
            return Err(ExecutionError::no_such_overload("_+_", types));
        };
        let mut items: Vec<Box<dyn Val + 'v>> =
            self.items.inner().iter().map(|item| item.clone_as_boxed()).collect();
        let places = items.iter().enumerate().map(|(place, item)| (self.identity(&**item), place));
        let mut places: HashMap<String, usize> = places.collect();
        for item in added.inner() {
            let identity = self.identity(&**item);
            match places.get(&identity) {
                Some(&place) if self.keys.is_some() => items[place] = item.clone(),
                Some(_) => {}
                None => {
                    if self.keys.is_none() {
                        places.insert(identity, items.len());
                    }
                    items.push(item.clone());
                }
            }
        }
        Ok(CowVal::owned(Unordered { items: items.into(), keys: self.keys.clone() }))
    }
}
