//! Text and JSON with `${...}` in them.

use crate::yaml::Span;

/// Text with variables.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Template {
    /// In order.
    pub parts: Vec<Part>,
    /// Its place in the file.
    pub span: Span,
}

impl Template {
    /// Joins neighbouring texts.
    pub(crate) fn join(&mut self) {
        let mut joined: Vec<Part> = Vec::with_capacity(self.parts.len());
        for part in self.parts.drain(..) {
            match (joined.last_mut(), part) {
                (Some(Part::Text(before)), Part::Text(text)) => before.push_str(&text),
                (_, part) => joined.push(part),
            }
        }
        self.parts = joined;
    }
}

/// A piece of a template.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Part {
    /// Text without variables.
    Text(String),
    /// The value of a variable, by its dotted name: `name`, `subject.kind`, `rv`.
    Variable(String),
    /// `${fill:N}`: N times the letter x.
    Fill(usize),
    /// `${name:N}`: the name of the case's objects, made N letters long with the letter x.
    Name(usize),
}

/// JSON whose strings and member names are templates.
///
/// A string that is one variable and nothing else stands for the variable's value, whatever its
/// type.
#[derive(Clone, Debug, PartialEq)]
pub enum JsonTemplate {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// As written.
    Number(serde_json::Number),
    /// A string with variables.
    String(Template),
    /// Items in order.
    Array(Vec<JsonTemplate>),
    /// Members in order, names distinct.
    Object(Vec<(Template, JsonTemplate)>),
}
