//! Checks, and the claims that they make.

use std::collections::BTreeMap;

use super::{Edition, Level};
use crate::expression::Expression;
use crate::pattern::{Pattern, TextPattern};
use crate::rule::{Exemption, Rule};
use crate::yaml::Span;

/// One expectation, with an id of its own.
#[derive(Clone, Debug)]
pub struct Check {
    /// Unique in the case.
    pub id: String,
    /// The named expressions that its templates read.
    pub lets: Vec<(String, Expression)>,
    /// The level.
    pub level: Level,
    /// The requirements it judges: all of the case's unless it names some.
    pub requirements: Vec<String>,
    /// Judged only under these; never empty.
    pub editions: Vec<Edition>,
    /// All of these must hold.
    pub claims: Vec<Claim>,
    /// The behaviour of deployed servers that the suite accepts.
    pub deviation: Option<Deviation>,
    /// The consequence of a failure for users.
    pub means: Option<String>,
    /// What a failed expression shows instead of the default message.
    pub message: Option<Message>,
    /// Its place in the file.
    pub span: Span,
}

/// A behaviour of deployed servers that differs from the strict text of the conventions.
#[derive(Clone, Debug)]
pub struct Deviation {
    /// Why it is accepted.
    pub because: String,
    /// The strict text of each edition that judges the check.
    pub letter: BTreeMap<Edition, String>,
    /// All of these must hold.
    pub claims: Vec<Claim>,
}

/// The message of a failed expression.
#[derive(Clone, Debug)]
pub struct Message {
    /// As written.
    pub text: String,
    /// In order.
    pub parts: Vec<MessagePart>,
}

/// A part of a message.
#[derive(Clone, Debug)]
pub enum MessagePart {
    /// Text.
    Text(String),
    /// The value of an expression; equal items of a list are counted.
    Value(Expression),
}

/// A claim about an exchange.
#[derive(Clone, Debug)]
pub enum Claim {
    /// The HTTP code is one of these.
    Status(Vec<u16>),
    /// The server rejects the request for this reason.
    Rejected(Rejection),
    /// The body matches.
    Body(Pattern),
    /// The header matches.
    Header {
        /// In lower case.
        name: String,
        /// `None`: the header must be absent.
        value: Option<TextPattern>,
    },
    /// The raw body matches.
    Text(TextPattern),
    /// The expression is true.
    Cel(Expression),
    /// One of these sets holds.
    AnyOf(Vec<Vec<Claim>>),
}

/// A rejection: a v1 Status with this code and reason.
#[derive(Clone, Debug)]
pub struct Rejection {
    /// HTTP code, and the Status' own.
    pub code: Vec<u16>,
    /// One of these; empty: any.
    pub reason: Vec<String>,
    /// The pattern for `details`.
    pub details: Option<Pattern>,
    /// The pattern for `message`.
    pub message: Option<TextPattern>,
}

/// One design rule.
#[derive(Clone, Debug)]
pub struct SchemaCheck {
    /// Unique in the case.
    pub id: String,
    /// The rule.
    pub rule: Rule,
    /// The level.
    pub level: Level,
    /// The requirements it judges: all of the case's unless it names some.
    pub requirements: Vec<String>,
    /// Judged only under these; never empty.
    pub editions: Vec<Edition>,
    /// Where Kubernetes itself breaks the rule by history.
    pub history: Vec<Exemption>,
    /// The consequence of a failure for users.
    pub means: Option<String>,
}
