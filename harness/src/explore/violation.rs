//! A broken property, and what a correct server returns instead.

use kubeproof_cases::case::{Property, ResourceName};
use serde_json::Value;

use super::property::Input;
use crate::exchange::Exchange;

/// A response that breaks a property.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The property.
    pub property: Property,
    /// What was expected, and what happened.
    pub message: String,
    /// The place of the request among all requests of the check.
    pub step: usize,
    /// What a correct server returns.
    pub claim: Claim,
}

/// What a correct server returns.
#[derive(Clone, Debug, PartialEq)]
pub enum Claim {
    /// A successful response.
    Accepted,
    /// A rejection with 400 or 422, which names the field.
    Rejected {
        /// The field, as in the causes of a Status. Empty if none must be named.
        field: String,
    },
    /// This status code.
    Status(u16),
    /// A member of the response.
    Member {
        /// The object that has the member.
        scope: Scope,
        /// JSON Pointer.
        at: String,
        /// `None` if it must be absent.
        value: Option<Value>,
    },
    /// Any value at this JSON Pointer.
    Present(&'static str),
    /// A list of objects with these names.
    Names(Vec<String>),
    /// An event of this type.
    Event(String),
}

/// The object that a claim is about.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Scope {
    /// The body of the response.
    Body,
    /// The item of a list with this name.
    Item(String),
    /// The object of the first event of this type.
    Event(String),
}

/// A broken property with the smallest objects that show it.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The resource.
    pub subject: ResourceName,
    /// What is broken.
    pub violation: Violation,
    /// The objects.
    pub input: Input,
    /// All requests of the check, with their responses.
    pub exchanges: Vec<Exchange>,
    /// The URL of the server.
    pub server: String,
    /// The collection of the objects.
    pub collection: String,
    /// The name of the first object.
    pub name: String,
}

impl Failure {
    /// Returns the requests up to the wrong response. A watch needs those after it, too.
    pub(super) fn shown(&self) -> &[Exchange] {
        let step = self.violation.step;
        let is_watch = |exchange: &Exchange| exchange.request.target.contains("watch=true");
        match self.exchanges.get(step) {
            Some(wrong) if !is_watch(wrong) => &self.exchanges[..=step],
            _ => &self.exchanges,
        }
    }
}
