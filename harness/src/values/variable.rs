//! A value, or a computation that the first reader starts.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde_json::Value;

/// A value of a variable. Its copies share it.
#[derive(Clone, Debug)]
pub(crate) enum Variable {
    Known(Arc<Value>),
    Deferred(Arc<Deferred>),
}

/// A value that nobody may read, and its computation until then.
pub(crate) struct Deferred {
    value: OnceLock<Value>,
    compute: Mutex<Option<Box<dyn FnOnce() -> Value + Send>>>,
}

impl Variable {
    /// Defers a computation.
    pub(crate) fn deferred(compute: impl FnOnce() -> Value + Send + 'static) -> Self {
        let compute = Mutex::new(Some(Box::new(compute) as Box<dyn FnOnce() -> Value + Send>));
        Self::Deferred(Arc::new(Deferred { value: OnceLock::new(), compute }))
    }

    pub(crate) fn value(&self) -> &Value {
        match self {
            Self::Known(value) => value,
            Self::Deferred(deferred) => deferred.value(),
        }
    }

    /// Returns the value, without a copy if no other variable shares it.
    pub(crate) fn into_value(self) -> Value {
        match self {
            Self::Known(value) => Arc::unwrap_or_clone(value),
            Self::Deferred(deferred) => {
                deferred.value();
                match Arc::try_unwrap(deferred) {
                    Ok(own) => own.value.into_inner().unwrap_or_default(),
                    Err(shared) => shared.value().clone(),
                }
            }
        }
    }
}

impl Deferred {
    fn value(&self) -> &Value {
        self.value.get_or_init(|| {
            let compute = self.compute.lock().unwrap_or_else(PoisonError::into_inner).take();
            compute.map(|compute| compute()).unwrap_or_default()
        })
    }
}

impl fmt::Debug for Deferred {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Deferred").field(&self.value.get()).finish()
    }
}

impl From<Value> for Variable {
    fn from(value: Value) -> Self {
        Self::Known(Arc::new(value))
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
            json!(1)
        });
        let copy = variable.clone();
        assert_eq!(computed.load(Ordering::Relaxed), 0);
        assert_eq!((variable.value(), copy.value()), (&json!(1), &json!(1)));
        assert_eq!((variable.into_value(), copy.into_value()), (json!(1), json!(1)));
        assert_eq!(computed.load(Ordering::Relaxed), 1);
    }
}
