//! What can be referred to at a point of a case.

use std::ops::Range;

/// Scopes from the outermost in: one for the case, one for each loop, branch or round that is open.
#[derive(Debug)]
pub(super) struct Scopes {
    open: Vec<Vec<Name>>,
    /// The conditions of the steps that are open.
    pub(super) conditions: Vec<String>,
    /// Captures of scopes that are closed and that nothing read.
    unused: Vec<(String, Range<usize>)>,
}

impl Default for Scopes {
    fn default() -> Self {
        Self { open: vec![Vec::new()], conditions: Vec::new(), unused: Vec::new() }
    }
}

/// A name that was given to something.
#[derive(Clone, Debug)]
pub(super) struct Name {
    pub(super) text: String,
    pub(super) kind: Kind,
    pub(super) place: Range<usize>,
    pub(super) used: bool,
    /// The conditions under which it exists.
    pub(super) conditions: Vec<String>,
}

/// The kind of a name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    /// An exchange.
    Exchange,
    /// A watch, and whether it is still read.
    Watch { open: bool },
    /// A stream, and whether it is still read.
    Stream { open: bool },
    /// The results of a loop or of branches: a list.
    Results,
    /// The last round of an `until`.
    Round,
    /// A captured value.
    Capture,
    /// The item of `over`, or `i`.
    LoopVariable,
    /// A named expression of the case.
    Let,
}

impl Kind {
    /// Templates can use values, but not steps.
    pub(super) fn is_value(self) -> bool {
        matches!(self, Self::Capture | Self::LoopVariable | Self::Let)
    }
}

impl Scopes {
    pub(super) fn enter(&mut self) {
        self.open.push(Vec::new());
    }

    pub(super) fn leave(&mut self) {
        if let Some(names) = self.open.pop() {
            let unused = names.into_iter().filter(|name| name.kind == Kind::Capture && !name.used);
            self.unused.extend(unused.map(|name| (name.text, name.place)));
        }
    }

    /// All captures that nothing read; ends the outermost scope.
    pub(super) fn finish(&mut self) -> Vec<(String, Range<usize>)> {
        while !self.open.is_empty() {
            self.leave();
        }
        std::mem::take(&mut self.unused)
    }

    pub(super) fn add(&mut self, name: &str, kind: Kind, place: &Range<usize>) {
        let conditions = self.conditions.clone();
        if let Some(scope) = self.open.last_mut() {
            let text = name.to_owned();
            scope.push(Name { text, kind, place: place.clone(), used: false, conditions });
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<&Name> {
        self.open.iter().rev().flat_map(|scope| scope.iter().rev()).find(|known| known.text == name)
    }

    pub(super) fn get_mut(&mut self, name: &str) -> Option<&mut Name> {
        self.open
            .iter_mut()
            .rev()
            .flat_map(|scope| scope.iter_mut().rev())
            .find(|known| known.text == name)
    }

    /// Everything that can be referred to, the nearest first.
    pub(super) fn names(&self) -> impl Iterator<Item = &Name> {
        self.open.iter().rev().flat_map(|scope| scope.iter().rev())
    }
}
