//! A value of a case. Readers see only the parts that they need.
//!
//! A loop can hold hundreds of responses with large bodies, and an expression may compare only
//! their status codes. So results stay in parts, and share the parsed bodies.

use std::collections::BTreeMap;
use std::fmt;
use std::iter::once;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde_json::Value;

/// A value of a variable. Its copies share it.
#[derive(Clone, Debug)]
pub(crate) enum Variable {
    Known(Arc<Value>),
    Object(Arc<Parts<BTreeMap<String, Self>>>),
    List(Arc<Parts<Vec<Self>>>),
    Deferred(Arc<Deferred>),
}

/// The parts of a value, and the whole value after the first read of it.
#[derive(Debug)]
pub(crate) struct Parts<T> {
    parts: T,
    whole: OnceLock<Value>,
}

/// A variable that the first reader computes.
pub(crate) struct Deferred {
    variable: OnceLock<Variable>,
    compute: Mutex<Option<Compute>>,
}

type Compute = Box<dyn FnOnce() -> Variable + Send>;

/// A step on the path to a part.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step<'p> {
    Member(&'p str),
    Index(usize),
}

impl Variable {
    /// Creates an object of its members.
    pub(crate) fn object(members: BTreeMap<String, Self>) -> Self {
        Self::Object(Arc::new(Parts { parts: members, whole: OnceLock::new() }))
    }

    /// Creates a list of its items.
    pub(crate) fn list(items: Vec<Self>) -> Self {
        Self::List(Arc::new(Parts { parts: items, whole: OnceLock::new() }))
    }

    /// Defers a computation.
    pub(crate) fn deferred(compute: impl FnOnce() -> Self + Send + 'static) -> Self {
        let compute: Compute = Box::new(compute);
        let compute = Mutex::new(Some(compute));
        Self::Deferred(Arc::new(Deferred { variable: OnceLock::new(), compute }))
    }

    /// Returns the result of a deferred computation, or the variable itself.
    pub(crate) fn resolved(&self) -> &Self {
        match self {
            Self::Deferred(deferred) => deferred.variable().resolved(),
            resolved => resolved,
        }
    }

    /// Returns the whole value.
    pub(crate) fn value(&self) -> &Value {
        let whole = |variable: &Self| variable.value().clone();
        match self.resolved() {
            Self::Object(object) => object.whole.get_or_init(|| {
                let members = object.parts.iter();
                Value::Object(members.map(|(name, part)| (name.clone(), whole(part))).collect())
            }),
            Self::List(list) => {
                list.whole.get_or_init(|| Value::Array(list.parts.iter().map(whole).collect()))
            }
            Self::Known(value) => value,
            Self::Deferred(deferred) => deferred.variable().value(),
        }
    }

    /// Returns the value at a place in this one.
    pub(crate) fn at<'p>(&self, mut path: impl Iterator<Item = Step<'p>>) -> Option<&Value> {
        let mut variable = self;
        while let Some(step) = path.next() {
            variable = match (variable.resolved(), step) {
                (Self::Object(object), Step::Member(name)) => object.parts.get(name)?,
                (Self::List(list), Step::Index(index)) => list.parts.get(index)?,
                (other, step) => {
                    let mut rest = once(step).chain(path);
                    return rest.try_fold(other.value(), |value, step| step.of(value));
                }
            };
        }
        Some(variable.value())
    }
}

impl Step<'_> {
    /// Returns the part of a value.
    pub(crate) fn of(self, value: &Value) -> Option<&Value> {
        match self {
            Self::Member(name) => value.get(name),
            Self::Index(index) => value.get(index),
        }
    }
}

impl<T> Parts<T> {
    /// Returns the parts.
    pub(crate) fn parts(&self) -> &T {
        &self.parts
    }
}

impl Deferred {
    fn variable(&self) -> &Variable {
        self.variable.get_or_init(|| {
            let compute = self.compute.lock().unwrap_or_else(PoisonError::into_inner).take();
            compute.map_or_else(|| Value::Null.into(), |compute| compute())
        })
    }
}

impl fmt::Debug for Deferred {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Deferred").field(&self.variable.get()).finish()
    }
}

impl From<Value> for Variable {
    fn from(value: Value) -> Self {
        Self::Known(Arc::new(value))
    }
}

impl From<Arc<Value>> for Variable {
    fn from(value: Arc<Value>) -> Self {
        Self::Known(value)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use serde_json::json;

    use super::*;

    #[test]
    fn a_deferred_value_is_computed_once_and_only_for_a_reader() {
        let computed = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&computed);
        let variable = Variable::deferred(move || {
            counter.fetch_add(1, Ordering::Relaxed);
            json!(1).into()
        });
        let copy = variable.clone();
        assert_eq!(computed.load(Ordering::Relaxed), 0);
        assert_eq!((variable.value(), copy.value()), (&json!(1), &json!(1)));
        assert_eq!(computed.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn parts_are_read_without_the_whole() {
        let unread = Variable::deferred(|| panic!("nobody reads it"));
        let read = Variable::deferred(|| json!({"a": [1, 2]}).into());
        let members = [("read".to_owned(), read), ("unread".to_owned(), unread)];
        let list = Variable::list(vec![Variable::object(members.into())]);
        let path = [Step::Index(0), Step::Member("read"), Step::Member("a"), Step::Index(1)];
        assert_eq!(list.at(path.into_iter()), Some(&json!(2)));
        assert_eq!(list.at([Step::Index(1)].into_iter()), None);
        assert_eq!(list.at([Step::Index(0), Step::Member("other")].into_iter()), None);
    }

    #[test]
    fn the_whole_has_all_parts() {
        let body = Arc::new(json!({"kind": "Pod"}));
        let members = [("body".to_owned(), body.into()), ("n".to_owned(), json!(1).into())];
        let list = Variable::list(vec![Variable::object(members.into()), json!(null).into()]);
        assert_eq!(list.value(), &json!([{"body": {"kind": "Pod"}, "n": 1}, null]));
    }
}
