//! Steps, in the order in which they happen.

use std::ops::Range;

use super::check::Judged;
use super::{Lowering, first_line};
use crate::case::{Action, Step, Watch};
use crate::raw::RawStep;
use crate::yaml::Located;

impl Lowering<'_> {
    pub(super) fn steps(&mut self, steps: &Located<Vec<Located<RawStep>>>) -> Vec<Step> {
        if steps.value.is_empty() {
            self.error(&first_line(&steps.place), "never-runs", "this list has no steps");
        }
        steps.value.iter().flat_map(|step| self.step(step)).collect()
    }

    /// A step; several where it uses a fragment.
    fn step(&mut self, raw: &Located<RawStep>) -> Vec<Step> {
        let place = first_line(&raw.place);
        let step = &raw.value;
        let actions = step.actions();
        if actions.len() != 1 {
            let found = match actions.as_slice() {
                [] => "none".to_owned(),
                all => format!("`{}`", all.join("`, `")),
            };
            self.error(&place, "one-of", format!("a step has one action, found {found}"))
                .set_help("is something indented too little?");
            return Vec::new();
        }
        let when = self.when(step.when.as_ref());
        self.enter_condition(step.when.as_ref());
        let outer = std::mem::take(&mut self.template_lets);
        let steps = match &step.uses {
            Some(uses) => {
                let mut steps = self.fragment(uses, &place);
                let lets = self.take_lets();
                for inner in &mut steps {
                    inner.when.extend(when.clone());
                    inner.lets.extend(lets.clone());
                }
                steps
            }
            None => match self.action(step, &place) {
                Some(action) => {
                    vec![Step { when: when.into_iter().collect(), lets: self.take_lets(), action }]
                }
                None => Vec::new(),
            },
        };
        self.template_lets = outer;
        self.leave_condition(step.when.as_ref());
        steps
    }

    fn action(&mut self, raw: &RawStep, place: &Range<usize>) -> Option<Action> {
        if let Some(request) = self.request_of(raw, place) {
            return Some(request);
        }
        self.stream_action(raw, place).or_else(|| self.other_action(raw, place))
    }

    fn stream_action(&mut self, raw: &RawStep, place: &Range<usize>) -> Option<Action> {
        if let Some(stream) = &raw.stream {
            return Some(Action::Stream(Box::new(self.stream(stream, place))));
        }
        if let Some(opening) = &raw.open_stream {
            return Some(Action::OpenStream(self.open_spdy_stream(opening, place)));
        }
        if let Some(receive) = &raw.receive {
            return self.receive(receive, place).map(Action::Receive);
        }
        if let Some(finish) = &raw.finish {
            return Some(Action::Finish(self.finish(finish, place)));
        }
        self.sending(raw, place).map(Action::Send)
    }

    fn other_action(&mut self, raw: &RawStep, place: &Range<usize>) -> Option<Action> {
        if let Some(watch) = &raw.watch {
            let keep = watch.keep.iter().map(|pointer| self.kept_member(pointer)).collect();
            return Some(Action::Watch(Watch { request: self.watch(watch, place), keep }));
        }
        if let Some(awaited) = &raw.awaits {
            return self.awaits(awaited, place).map(Action::Await);
        }
        if let Some(end) = &raw.end {
            return Some(Action::End(self.end(end, place)));
        }
        if let Some(close) = &raw.close {
            return self.close(close, place).map(Action::Close);
        }
        if let Some(inner) = &raw.concurrently {
            return self.iterations(inner).map(Action::Concurrently);
        }
        if let Some(inner) = &raw.repeat {
            return self.iterations(inner).map(Action::Repeat);
        }
        if let Some(together) = &raw.together {
            return Some(Action::Together(self.together(together)));
        }
        if let Some(until) = &raw.until {
            return self.until(until, place).map(Action::Until);
        }
        if let Some(schema) = &raw.schema {
            return Some(Action::Schema(self.schema(schema)));
        }
        if let Some(explore) = &raw.explore {
            return Some(Action::Explore(self.explore(explore, place)));
        }
        let checks = raw.expect.as_ref()?;
        if checks.is_empty() {
            self.error(place, "cannot-fail", "`expect` holds no check");
        }
        Some(Action::Expect(self.checks(checks, Judged::Earlier)))
    }
}
