//! The level of cases and checks.
//!
//! A failed check at `must` fails the run, so the level of a check is at most that of the
//! requirements that it judges. A case at a lower level never fails a run. Otherwise servers that
//! do without a SHOULD would fail.

use super::Lowering;
use crate::case::Level;
use crate::yaml::Located;

impl Lowering<'_> {
    /// The level of the case.
    pub(super) fn level_of_case(&mut self, named: Option<&Located<Level>>) -> Level {
        let strongest = self.strongest(&self.requirements);
        let Some(level) = named else { return strongest };
        if level.value > strongest {
            self.above_requirements(level, strongest);
        }
        level.value
    }

    /// The level of a check that judges these requirements.
    pub(super) fn level_of(
        &mut self,
        named: Option<&Located<Level>>,
        requirements: &[String],
    ) -> Level {
        let strongest = self.strongest(requirements);
        let Some(level) = named else { return strongest.min(self.level) };
        if level.value > self.level {
            let message = format!("a check at `{}` in a case at `{}`", level.value, self.level);
            self.error(&level.place, "level-too-high", message).set_help(
                "remove the level here, or raise that of the case and lower those of other checks",
            );
        } else if level.value > strongest {
            self.above_requirements(level, strongest);
        }
        level.value
    }

    /// Moves the requirements of a level to the front, because reports name the first one.
    pub(super) fn of_level_first(
        &self,
        mut requirements: Vec<String>,
        level: Level,
    ) -> Vec<String> {
        let catalogue = self.known.catalogue;
        requirements.sort_by_key(|id| {
            catalogue.get(id).is_none_or(|requirement| requirement.level != level)
        });
        requirements
    }

    fn strongest(&self, requirements: &[String]) -> Level {
        let known = requirements.iter().filter_map(|id| self.known.catalogue.get(id));
        known.map(|requirement| requirement.level).max().unwrap_or(Level::Must)
    }

    fn above_requirements(&mut self, level: &Located<Level>, strongest: Level) {
        let message =
            format!("the level is `{}`, and no requirement is above `{strongest}`", level.value);
        self.error(&level.place, "level-too-high", message)
            .set_help("lower the level, or name the requirement that demands it");
    }
}
