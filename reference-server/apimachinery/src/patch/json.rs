//! JSON Patch (RFC 6902).
//!
//! The implementation follows the RFC where the engine of kube-apiserver differs. `replace`, `copy`
//! and `test` need an existing target, `add` needs a value, and a path starts with a slash. As in
//! kube-apiserver, a document that is not a list of operations is a bad request (400). An operation
//! that is invalid or has no target is unprocessable (422).

use serde_json::Value;

use super::pointer::{Pointer, descend, index};
use super::{PatchError, type_name};

use crate::serializer::json::{MAX_DEPTH, depth};

/// The maximum number of operations in one patch.
pub const MAX_OPERATIONS: usize = 10_000;

/// The maximum total size of the `copy` operations of one patch, in bytes. Each copy can double the
/// document.
const MAX_COPIED_BYTES: usize = 3 * 1024 * 1024;

/// The maximum number of array items that the insertions and removals of one patch may shift.
const MAX_MOVED: usize = 50_000_000;

/// Applies all operations of `patch` to `document`, or none.
pub fn apply(document: &Value, patch: &Value) -> Result<Value, PatchError> {
    let Value::Array(operations) = patch else {
        return Err(PatchError::Malformed(format!(
            "error decoding patch: a JSON patch is an array of operations, not {}",
            type_name(patch)
        )));
    };
    if operations.len() > MAX_OPERATIONS {
        return Err(PatchError::TooLarge(format!(
            "The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {}",
            operations.len()
        )));
    }
    // A malformed operation is a bad request, even if an earlier operation would fail. Therefore
    // all operations are parsed before the first one is applied.
    let operations = operations.iter().enumerate().map(|(i, value)| Operation::read(i, value));
    let operations = operations.collect::<Result<Vec<_>, _>>()?;

    let mut target = Target { document: document.clone(), copied: 0, moved: 0 };
    for (i, operation) in operations.iter().enumerate() {
        if let Err(error) = target.perform(operation) {
            return Err(error.at(i, operation.name()));
        }
    }
    Ok(target.document)
}

enum Operation<'p> {
    Add(Pointer, &'p Value),
    Remove(Pointer),
    Replace(Pointer, &'p Value),
    Move { from: Pointer, path: Pointer },
    Copy { from: Pointer, path: Pointer },
    Test(Pointer, &'p Value),
}

impl<'p> Operation<'p> {
    fn read(i: usize, value: &'p Value) -> Result<Self, PatchError> {
        let member = |name: &str| value.get(name);
        let unprocessable =
            |what: String| PatchError::Unprocessable(format!("operation {i}: {what}"));
        if !value.is_object() && !value.is_null() {
            let found = type_name(value);
            return Err(PatchError::Malformed(format!(
                "error decoding patch: operation {i} is {found}, not an object"
            )));
        }
        let text = |name: &str| match member(name) {
            Some(Value::String(text)) => Ok(text.as_str()),
            None => Err(unprocessable(format!("{name:?} is missing"))),
            Some(other) => Err(PatchError::Malformed(format!(
                "error decoding patch: {name:?} of operation {i} is {}, not a string",
                type_name(other)
            ))),
        };
        let pointer = |name: &str| Pointer::parse(text(name)?).map_err(unprocessable);
        let operand =
            || member("value").ok_or_else(|| unprocessable("\"value\" is missing".to_owned()));
        Ok(match text("op")? {
            "add" => Self::Add(pointer("path")?, operand()?),
            "remove" => Self::Remove(pointer("path")?),
            "replace" => Self::Replace(pointer("path")?, operand()?),
            "move" => Self::Move { from: pointer("from")?, path: pointer("path")? },
            "copy" => Self::Copy { from: pointer("from")?, path: pointer("path")? },
            "test" => Self::Test(pointer("path")?, operand()?),
            other => return Err(unprocessable(format!("{other:?} is not an operation"))),
        })
    }

    const fn name(&self) -> &'static str {
        match self {
            Self::Add(..) => "add",
            Self::Remove(..) => "remove",
            Self::Replace(..) => "replace",
            Self::Move { .. } => "move",
            Self::Copy { .. } => "copy",
            Self::Test(..) => "test",
        }
    }
}

enum Failure {
    NoTarget,
    NotEqual,
    IntoItself,
    TooDeep,
    CopiesTooMuch,
    MovesTooMuch,
}

impl Failure {
    fn at(&self, i: usize, name: &str) -> PatchError {
        let what = match self {
            Self::NoTarget => "no such place in the document",
            Self::NotEqual => "the value at the path is another one",
            Self::IntoItself => "a value cannot be moved into itself",
            Self::TooDeep => "the document would be nested too deeply",
            Self::CopiesTooMuch => {
                let text =
                    format!("the copies of a JSON patch may add up to {MAX_COPIED_BYTES} bytes");
                return PatchError::TooLarge(text);
            }
            Self::MovesTooMuch => {
                let text =
                    format!("the operations of a JSON patch may move {MAX_MOVED} items of arrays");
                return PatchError::TooLarge(text);
            }
        };
        PatchError::Unprocessable(format!("operation {i} ({name}): {what}"))
    }
}

struct Target {
    document: Value,
    copied: usize,
    moved: usize,
}

impl Target {
    fn perform(&mut self, operation: &Operation<'_>) -> Result<(), Failure> {
        match operation {
            Operation::Add(path, value) => self.add(path, (*value).clone()),
            Operation::Remove(path) => self.remove(path).map(drop),
            Operation::Replace(path, value) => self.replace(path, (*value).clone()),
            Operation::Move { from, path } if path == from => {
                from.get(&self.document).map(drop).ok_or(Failure::NoTarget)
            }
            Operation::Move { from, path } if path.is_inside(from) => Err(Failure::IntoItself),
            Operation::Move { from, path } => {
                let value = self.remove(from)?;
                self.add(path, value)
            }
            Operation::Copy { from, path } => {
                let value = from.get(&self.document).ok_or(Failure::NoTarget)?.clone();
                self.copied += value.to_string().len();
                if self.copied > MAX_COPIED_BYTES {
                    return Err(Failure::CopiesTooMuch);
                }
                self.add(path, value)
            }
            Operation::Test(path, expected) => {
                // A test for null succeeds on an absent member. Controllers use this to write only
                // if a field is unset.
                let absent = || path.is_absent_member(&self.document).then_some(&Value::Null);
                let actual = path.get(&self.document).or_else(absent).ok_or(Failure::NoTarget)?;
                if equal(actual, expected) { Ok(()) } else { Err(Failure::NotEqual) }
            }
        }
    }

    fn add(&mut self, path: &Pointer, value: Value) -> Result<(), Failure> {
        if path.depth() + depth(&value) > MAX_DEPTH {
            return Err(Failure::TooDeep);
        }
        let Some((parents, last)) = path.split() else {
            self.document = value;
            return Ok(());
        };
        match descend(&mut self.document, parents).ok_or(Failure::NoTarget)? {
            Value::Object(object) => {
                object.insert(last.to_owned(), value);
            }
            Value::Array(items) => {
                let at = match last {
                    "-" => items.len(),
                    step => index(step).filter(|&at| at <= items.len()).ok_or(Failure::NoTarget)?,
                };
                self.moved += items.len() - at;
                if self.moved > MAX_MOVED {
                    return Err(Failure::MovesTooMuch);
                }
                items.insert(at, value);
            }
            _ => return Err(Failure::NoTarget),
        }
        Ok(())
    }

    fn remove(&mut self, path: &Pointer) -> Result<Value, Failure> {
        let (parents, last) = path.split().ok_or(Failure::NoTarget)?;
        match descend(&mut self.document, parents) {
            Some(Value::Object(object)) => object.remove(last).ok_or(Failure::NoTarget),
            Some(Value::Array(items)) => {
                let at = index(last).filter(|&at| at < items.len()).ok_or(Failure::NoTarget)?;
                self.moved += items.len() - at;
                if self.moved > MAX_MOVED {
                    return Err(Failure::MovesTooMuch);
                }
                Ok(items.remove(at))
            }
            _ => Err(Failure::NoTarget),
        }
    }

    fn replace(&mut self, path: &Pointer, value: Value) -> Result<(), Failure> {
        if path.depth() + depth(&value) > MAX_DEPTH {
            return Err(Failure::TooDeep);
        }
        *path.get_mut(&mut self.document).ok_or(Failure::NoTarget)? = value;
        Ok(())
    }
}

/// Compares as the RFC defines for `test`: numbers by value, objects without regard to order.
fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            a == b || ((a.is_f64() || b.is_f64()) && a.as_f64() == b.as_f64())
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| equal(a, b)))
        }
        _ => a == b,
    }
}

#[cfg(test)]
mod tests;
