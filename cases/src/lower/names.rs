//! Names that a case gives: steps, captures, loop variables.

use super::Lowering;
use super::scope::Kind;
use crate::case::Capture;
use crate::raw::forms::Entries;
use crate::yaml::Located;

/// Names that expressions and templates use for something else.
const RESERVED: [&str; 22] = [
    "load",
    "seed",
    "collection",
    "pod",
    "protocol",
    "subject",
    "name",
    "ns",
    "run",
    "i",
    "fill",
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "for",
    "function",
    "if",
    "else",
];

impl Lowering<'_> {
    pub(super) fn captures(&mut self, captures: Option<&Entries<String>>) -> Vec<Capture> {
        let Some(captures) = captures else { return Vec::new() };
        let entries = captures.0.iter();
        entries
            .map(|(name, pointer)| {
                if !pointer.value.is_empty() && !pointer.value.starts_with('/') {
                    self.error(
                        &pointer.place,
                        "malformed-pointer",
                        format!("`{}` is not a JSON Pointer", pointer.value),
                    )
                    .set_help(
                        "it starts with `/`, such as `/metadata/resourceVersion`; `\"\"` is the \
                         whole body",
                    );
                }
                self.new_name(name, Kind::Capture);
                Capture {
                    name: name.value.clone(),
                    pointer: pointer.value.clone(),
                    span: self.source.span(name.place.start),
                }
            })
            .collect()
    }

    /// The id of a step, which expressions can use from here on.
    pub(super) fn step_id(&mut self, id: &Located<String>, kind: Kind) {
        self.new_name(id, kind);
    }

    /// The id of a step that reports name and expressions do not: what it reads is kept by its
    /// watch.
    pub(super) fn label(&mut self, id: &Located<String>) {
        if !super::is_words(&id.value) {
            self.error(&id.place, "malformed-id", format!("`{}` is not a valid id", id.value))
                .set_help(
                    "expected words of letters and digits joined by `-`, such as `first-events`",
                );
        }
    }

    pub(super) fn new_name(&mut self, name: &Located<String>, kind: Kind) {
        let text = name.value.as_str();
        let is_identifier = text.starts_with(|c: char| c.is_ascii_alphabetic())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !is_identifier {
            self.error(
                &name.place,
                "malformed-id",
                format!("`{text}` cannot be a name in expressions"),
            )
            .set_help(
                "expected a letter, then letters, digits and `_`, such as `second` or \
                 `afterUpdate`",
            );
        } else if RESERVED.contains(&text) {
            self.error(&name.place, "reserved-name", format!("`{text}` is a reserved name"));
        }
        if let Some(first) = self.scopes.get(text).map(|known| known.place.start) {
            let line = self.source.span(first).line;
            self.error(&name.place, "duplicate-id", format!("`{text}` already names something"))
                .set_help(format!("line {line} has it, too; names are unique in their scope"));
        } else {
            self.scopes.add(text, kind, &name.place);
        }
    }
}
