//! Steps: what happens in a case, in order.

use super::Capture;
use super::explore::Explore;
use super::stream::{Creation, Finish, Receiving, Sending, Stream};
use super::{Check, Request, SchemaCheck};
use crate::expression::Expression;
use crate::pattern::Pattern;
use crate::rule::SchemaSet;
use crate::yaml::Span;

/// One thing that happens.
#[derive(Clone, Debug)]
pub struct Step {
    /// All of these must hold, or the step does not run.
    pub when: Vec<Expression>,
    /// The named expressions that its templates read.
    pub lets: Vec<(String, Expression)>,
    /// What happens.
    pub action: Action,
}

impl Step {
    /// Returns the name under which expressions see the results of the step.
    pub fn name(&self) -> Option<&str> {
        Some(match &self.action {
            Action::Given(request) | Action::Request(request) => &request.id,
            Action::Watch(watch) => &watch.request.id,
            Action::Stream(stream) => &stream.request.id,
            Action::Concurrently(inner) | Action::Repeat(inner) => &inner.id,
            Action::Together(together) => &together.id,
            Action::Until(until) => &until.id,
            _ => return None,
        })
    }
}

/// What happens in a step.
#[derive(Clone, Debug)]
pub enum Action {
    /// Creates an object that the case needs.
    Given(Request),
    /// One exchange.
    Request(Request),
    /// Opens a watch.
    Watch(Watch),
    /// Reads events of an open watch.
    Await(Await),
    /// Reads a watch to the end that the server makes.
    End(End),
    /// Closes a watch or a stream.
    Close(Close),
    /// Opens a stream.
    Stream(Box<Stream>),
    /// Opens one more SPDY stream.
    OpenStream(Creation),
    /// Sends on a stream.
    Send(Sending),
    /// Reads a stream until something has come.
    Receive(Receiving),
    /// Reads a stream to the end that the server makes.
    Finish(Finish),
    /// Iterations at once.
    Concurrently(Loop),
    /// Iterations one after another.
    Repeat(Loop),
    /// Different things at once.
    Together(Together),
    /// Iterations until something holds.
    Until(Until),
    /// Design rules over the published API.
    Schema(Schema),
    /// A property, with generated objects.
    Explore(Explore),
    /// Checks that relate earlier exchanges.
    Expect(Vec<Check>),
}

/// A watch that is opened, and stays open while later steps run.
#[derive(Clone, Debug)]
pub struct Watch {
    /// The opening exchange; its `expect` judges status and headers. `watch=true` is in its query.
    pub request: Request,
    /// JSON Pointers of what is kept of each object; all of it when there are none.
    pub keep: Vec<String>,
}

/// Events read from an open watch.
#[derive(Clone, Debug)]
pub struct Await {
    /// The id of the watch.
    pub watch: String,
    /// The id of this step.
    pub id: String,
    /// What is read.
    pub what: Awaited,
    /// Its place in the file.
    pub span: Span,
}

/// What an await reads.
#[derive(Clone, Debug)]
pub enum Awaited {
    /// The next events, in order.
    Next(Vec<EventPattern>),
    /// Everything up to an event that matches.
    Until(EventPattern),
}

/// One expected event.
#[derive(Clone, Debug)]
pub struct EventPattern {
    /// The id of the check.
    pub id: String,
    /// ADDED, MODIFIED, DELETED, BOOKMARK, ERROR; one of these. Empty: any but BOOKMARK.
    pub types: Vec<String>,
    /// The pattern for the object.
    pub object: Option<Pattern>,
    /// Values of the object.
    pub capture: Vec<Capture>,
    /// Its place in the file.
    pub span: Span,
}

/// Reads a watch to the end that the server makes.
#[derive(Clone, Debug)]
pub struct End {
    /// The id of the watch.
    pub watch: String,
    /// The id of the check that the end comes; default `<watch>-ends`.
    pub id: String,
    /// Checks by CEL over the finished watch.
    pub expect: Vec<Check>,
    /// Its place in the file.
    pub span: Span,
}

/// Closes a watch or a stream.
#[derive(Clone, Debug)]
pub struct Close {
    /// The id of the watch or stream.
    pub of: String,
    /// It is a stream, not a watch.
    pub stream: bool,
}

/// Iterations of the same steps.
#[derive(Clone, Debug)]
pub struct Loop {
    /// The name of the list of results.
    pub id: String,
    /// How many.
    pub times: Times,
    /// The steps of one iteration. Their ids and captures belong to the iteration.
    pub steps: Vec<Step>,
}

/// How many iterations.
#[derive(Clone, Debug)]
pub enum Times {
    /// This many; `i` counts them.
    Count(u32),
    /// One per item of a list.
    Over {
        /// The list.
        list: Expression,
        /// The variable that holds the item.
        variable: String,
    },
}

/// Different things at once.
#[derive(Clone, Debug)]
pub struct Together {
    /// The name of the list of results, one per branch.
    pub id: String,
    /// The steps of each branch.
    pub branches: Vec<Vec<Step>>,
}

/// Iterations until something holds.
#[derive(Clone, Debug)]
pub struct Until {
    /// The name of the last round's results, and the id of the check.
    pub id: String,
    /// How often at most.
    pub attempts: u32,
    /// One round.
    pub steps: Vec<Step>,
    /// Ends it. Sees the steps of the round by their own ids.
    pub condition: Expression,
    /// Its place in the file.
    pub span: Span,
}

/// Design rules over a published API.
#[derive(Clone, Debug)]
pub struct Schema {
    /// What is held against the rules.
    pub of: SchemaSet,
    /// The rules.
    pub expect: Vec<SchemaCheck>,
}
