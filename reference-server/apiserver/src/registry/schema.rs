//! The schema of a type.

use std::fmt::{self, Debug, Formatter};
use std::ops::Deref;
use std::sync::{Arc, LazyLock};

use kubeproof_apimachinery::schema::Schema;

type Build = Box<dyn FnOnce() -> Arc<Schema> + Send + Sync>;

/// A schema that is built on its first use. A server needs few of the built-in types at its start.
#[derive(Clone)]
pub(crate) struct LazySchema(Arc<LazyLock<Arc<Schema>, Build>>);

impl LazySchema {
    pub(crate) fn new(build: impl FnOnce() -> Arc<Schema> + Send + Sync + 'static) -> Self {
        Self(Arc::new(LazyLock::new(Box::new(build))))
    }
}

impl From<Arc<Schema>> for LazySchema {
    fn from(schema: Arc<Schema>) -> Self {
        Self::new(move || schema)
    }
}

impl Deref for LazySchema {
    type Target = Arc<Schema>;

    fn deref(&self) -> &Arc<Schema> {
        &self.0
    }
}

impl Debug for LazySchema {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        Debug::fmt(&*self.0, formatter)
    }
}
