//! Steps that contain steps, and design rules.

use std::ops::Range;

use super::scope::Kind;
use super::{Lowering, first_line};
use crate::case::{Explore, Loop, Schema, SchemaCheck, Times, Together, Until};
use crate::raw::{RawExplore, RawLoop, RawSchema, RawTogether, RawUntil};
use crate::yaml::Located;

/// The most rounds of a loop.
const MAX_ROUNDS: u32 = 10_000;

impl Lowering<'_> {
    pub(super) fn iterations(&mut self, raw: &RawLoop) -> Option<Loop> {
        let times = match (&raw.times, &raw.over, &raw.variable) {
            (Some(times), None, None) => {
                self.rounds(times);
                Some(Times::Count(times.value))
            }
            (None, Some(over), Some(variable)) => self
                .expression(over)
                .map(|list| Times::Over { list, variable: variable.value.clone() }),
            _ => {
                self.error(
                    &raw.id.place,
                    "one-of",
                    "a loop takes either `times`, or `over` and `as`",
                );
                None
            }
        };
        self.scopes.enter();
        self.scopes.add("i", Kind::LoopVariable, &raw.id.place);
        if let Some(variable) = &raw.variable {
            self.new_name(variable, Kind::LoopVariable);
        }
        let steps = self.steps(&raw.steps);
        self.scopes.leave();
        self.step_id(&raw.id, Kind::Results);
        Some(Loop { id: raw.id.value.clone(), times: times?, steps })
    }

    pub(super) fn together(&mut self, raw: &RawTogether) -> Together {
        if raw.branches.value.len() < 2 {
            self.error(
                &first_line(&raw.branches.place),
                "never-runs",
                "`together` takes at least two branches",
            );
        }
        let mut branches = Vec::new();
        for branch in &raw.branches.value {
            self.scopes.enter();
            branches.push(self.steps(branch));
            self.scopes.leave();
        }
        self.step_id(&raw.id, Kind::Results);
        Together { id: raw.id.value.clone(), branches }
    }

    pub(super) fn until(&mut self, raw: &RawUntil, place: &Range<usize>) -> Option<Until> {
        self.rounds(&raw.attempts);
        self.implied_check(&raw.id);
        self.scopes.enter();
        self.scopes.add("i", Kind::LoopVariable, &raw.id.place);
        let steps = self.steps(&raw.steps);
        let condition = self.condition(&raw.cel);
        self.scopes.leave();
        self.step_id(&raw.id, Kind::Round);
        Some(Until {
            id: raw.id.value.clone(),
            attempts: raw.attempts.value,
            steps,
            condition: condition?,
            span: self.source.span(place.start),
        })
    }

    pub(super) fn schema(&mut self, raw: &RawSchema) -> Schema {
        if raw.expect.value.is_empty() {
            self.error(&first_line(&raw.expect.place), "cannot-fail", "`expect` holds no rule");
        }
        let checks = raw.expect.value.iter().map(|check| {
            let check = &check.value;
            self.check_id(&check.id);
            let requirements = self.judged_requirements(&check.requirements);
            let level = self.level_of(check.level.as_ref(), &requirements);
            let requirements = self.of_level_first(requirements, level);
            SchemaCheck {
                id: check.id.value.clone(),
                rule: check.rule,
                level,
                editions: self.editions_of(&[], &requirements, &check.id.place),
                requirements,
                history: self
                    .known
                    .history
                    .iter()
                    .filter(|known| known.rule == check.rule)
                    .cloned()
                    .collect(),
                means: check.means.clone(),
            }
        });
        Schema { of: raw.of, expect: checks.collect() }
    }

    pub(super) fn explore(&mut self, raw: &RawExplore, place: &Range<usize>) -> Explore {
        self.rounds(&raw.checks);
        self.check_id(&raw.id);
        self.judges_all(&raw.id.place);
        self.can_explore(raw.property, place);
        Explore { id: raw.id.value.clone(), property: raw.property, checks: raw.checks.value }
    }

    fn rounds(&mut self, count: &Located<u32>) {
        if count.value == 0 {
            self.error(&count.place, "never-runs", "these steps cannot run");
        } else if count.value > MAX_ROUNDS {
            self.error(&count.place, "out-of-range", format!("more than {MAX_ROUNDS} rounds"));
        }
    }
}
