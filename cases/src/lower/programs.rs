//! Parsed expressions by their text.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use cel::{ParseErrors, Program};

/// Expressions that the parser accepted. Cases repeat many, above all `${name}`, and the parser
/// takes longer than all other work on such an expression.
#[derive(Debug, Default)]
pub(crate) struct Programs(Mutex<HashMap<String, Arc<Program>>>);

impl Programs {
    /// Returns the program of an expression, which is parsed if it is new.
    pub(super) fn compile(&self, text: &str) -> Result<Arc<Program>, ParseErrors> {
        if let Some(known) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(text) {
            return Ok(Arc::clone(known));
        }
        // The lock is free in the meantime: the parser is slow.
        let program = Arc::new(Program::compile(text)?);
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Arc::clone(known.entry(text.to_owned()).or_insert(program)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_share_a_program() {
        let programs = Programs::default();
        let first = programs.compile("name + 'a'").expect("an expression");
        let same = programs.compile("name + 'a'").expect("an expression");
        let other = programs.compile("name").expect("an expression");
        assert!(Arc::ptr_eq(&first, &same));
        assert!(!Arc::ptr_eq(&first, &other));
        assert!(programs.compile("name +").is_err());
    }
}
