//! `use`: steps that several cases share.

use std::collections::BTreeMap;
use std::ops::Range;

use super::Lowering;
use crate::case::Step;
use crate::raw::{RawFragment, RawUse};
use crate::template::JsonTemplate;
use crate::yaml::{Content, Source};

/// A file of `fragments/` that has the right shape.
#[derive(Debug)]
pub(crate) struct Fragment {
    pub(crate) source: Source,
    pub(crate) raw: RawFragment,
}

/// The deepest nesting of fragments that use fragments.
const DEEPEST: usize = 8;

impl Lowering<'_> {
    /// The steps of a fragment, with its parameters filled in.
    pub(super) fn fragment(&mut self, raw: &RawUse, place: &Range<usize>) -> Vec<Step> {
        let fragments = self.known.fragments;
        let Some(fragment) = fragments.get(&raw.fragment.value) else {
            let name = &raw.fragment.value;
            self.error(
                &raw.fragment.place,
                "unknown-fragment",
                format!("no fragment has the name `{name}`"),
            )
            .suggest_from(name, fragments.keys().map(String::as_str));
            return Vec::new();
        };
        if self.open_fragments >= DEEPEST {
            let message = "fragments use each other without end";
            self.error(place, "unknown-fragment", message);
            return Vec::new();
        }
        let parameters = self.parameters(raw, fragment, place);
        let outer = std::mem::replace(&mut self.parameters, parameters);
        let source = std::mem::replace(&mut self.source, &fragment.source);
        self.open_fragments += 1;
        let steps = self.steps(&fragment.raw.steps);
        self.open_fragments -= 1;
        self.source = source;
        self.parameters = outer;
        steps
    }

    /// The values of a fragment's parameters, given or by default.
    fn parameters(
        &mut self,
        raw: &RawUse,
        fragment: &Fragment,
        place: &Range<usize>,
    ) -> BTreeMap<String, JsonTemplate> {
        let known = fragment.raw.parameters.as_ref().map_or(&[][..], |all| &all.0);
        for (name, _) in &raw.parameters {
            if !known.iter().any(|(one, _)| one.value == name.value) {
                let message = format!("the fragment has no parameter `{}`", name.value);
                self.error(&name.place, "unknown-key", message)
                    .suggest_from(&name.value, known.iter().map(|(name, _)| name.value.as_str()));
            }
        }
        let mut values = BTreeMap::new();
        for (name, default) in known {
            let given = raw.parameters.iter().find(|(given, _)| given.value == name.value);
            let value = match given {
                Some((_, value)) => self.node(&value.value.0),
                None if default.value.0.content == Content::Null => {
                    let message = format!("the fragment needs a value of `{}`", name.value);
                    self.error(place, "missing-key", message)
                        .set_help(format!("add `with: {{{}: ..}}`", name.value));
                    JsonTemplate::Null
                }
                None => self.node(&default.value.0),
            };
            values.insert(name.value.clone(), value);
        }
        values
    }
}
