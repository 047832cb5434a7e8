//! The position of a server on the ladder of profiles.

use std::fmt;

use kubeproof_cases::Profile;
use kubeproof_harness::event::Verdict;

use super::{Document, Record};

/// The results of one profile.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Rung {
    /// The profile.
    pub profile: Profile,
    /// Results that follow the conventions, deviations and warnings included.
    pub pass: usize,
    /// Results that were not judged.
    pub skip: usize,
    /// All results.
    pub total: usize,
}

impl Rung {
    /// Returns whether the server has the profile: nothing fails, and more passes than is skipped.
    pub fn is_complete(self) -> bool {
        self.pass + self.skip == self.total && self.pass > self.skip
    }

    /// Returns the place on the ladder, from 1.
    pub fn number(self) -> usize {
        Profile::ALL.iter().position(|profile| *profile == self.profile).map_or(0, |at| at + 1)
    }
}

impl fmt::Display for Rung {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { profile, pass, skip, total } = self;
        write!(
            f,
            "{} of {}: {profile}, {pass} of {total} pass",
            self.number(),
            Profile::ALL.len()
        )?;
        if *skip > 0 { write!(f, ", {skip} skipped") } else { Ok(()) }
    }
}

impl Document {
    /// Returns the results of each profile that the run contains, from the first profile to the
    /// last.
    pub fn ladder(&self) -> Vec<Rung> {
        let rungs = Profile::ALL.into_iter().map(|profile| self.rung(profile));
        rungs.filter(|rung| rung.total > 0).collect()
    }

    fn rung(&self, profile: Profile) -> Rung {
        let mut rung = Rung { profile, pass: 0, skip: 0, total: 0 };
        for record in self.results.iter().filter(|record| record.profile == Some(profile)) {
            rung.total += 1;
            match record.verdict {
                Verdict::Pass | Verdict::Deviation | Verdict::Warn => rung.pass += 1,
                Verdict::Skip if !is_blocked(record) => rung.skip += 1,
                Verdict::Skip | Verdict::Fail | Verdict::Error => {}
            }
        }
        rung
    }
}

fn is_blocked(record: &Record) -> bool {
    record.blocked_by.is_some()
}
