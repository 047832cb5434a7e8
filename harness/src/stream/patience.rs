//! How long a stream is waited for.
//!
//! A server that says nothing for long has stalled, and is wrong. One that is still at it when the time is over is slow, or
//! on a machine that is: of that nothing can be told, so what came quickly costs no time, up to a limit.

use std::time::Duration;

use tokio::time::Instant;

/// How long to wait.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Not beyond.
    pub deadline: Instant,
    /// Where the deadline cannot be moved beyond.
    pub limit: Instant,
    /// Nor when nothing has come for so long.
    pub silence: Duration,
    /// What takes less is quick: its time is given back.
    pub quick: Duration,
}

/// Why waiting ended with nothing.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Impatience {
    /// Nothing moved for this long.
    #[error("nothing more for {} s", .0.as_secs_f64())]
    Silence(Duration),
    /// The deadline, while things moved or had not stood still for long.
    #[error("the time of the case was over (--case-timeout) before the stream had stood still for long")]
    Deadline,
}

impl Patience {
    /// One that stays where it is: until this deadline, or for so long without a word.
    pub fn fixed(deadline: Instant, silence: Duration) -> Self {
        Self { deadline, limit: deadline, silence, quick: Duration::ZERO }
    }

    /// Takes note of something that came, or went, after this time.
    pub(super) fn moved(&mut self, after: Duration) {
        if after < self.quick {
            self.deadline = (self.deadline + after).min(self.limit);
        }
    }

    /// When a write ends that nobody takes, and how that is called, if something has moved at this time. A command may have its
    /// reasons to read nothing for long, so silence ends no write before its deadline.
    pub(super) fn ends_write(&self, moved: Instant) -> (Instant, Impatience) {
        let silent = self.deadline.saturating_duration_since(moved);
        let why = if silent >= self.silence { Impatience::Silence(silent) } else { Impatience::Deadline };
        (self.deadline, why)
    }

    /// When it ends unless something happens, and how that is called.
    pub(super) fn ends(&self) -> (Instant, Impatience) {
        let silent = Instant::now() + self.silence;
        if silent <= self.deadline {
            (silent, Impatience::Silence(self.silence))
        } else {
            (self.deadline, Impatience::Deadline)
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn what_is_quick_costs_no_time_up_to_a_limit() {
        let deadline = Instant::now() + 10 * SECOND;
        let limit = deadline + 2 * SECOND;
        let mut patience = Patience { deadline, limit, silence: 5 * SECOND, quick: SECOND };
        patience.moved(SECOND);
        assert_eq!(patience.deadline, deadline);
        for moved in [SECOND * 3 / 4, SECOND * 3 / 2, 2 * SECOND, 2 * SECOND] {
            patience.moved(SECOND * 3 / 4);
            assert_eq!(patience.deadline, deadline + moved);
        }
    }

    #[rstest]
    #[case::the_deadline_is_far(60, Impatience::Silence(5 * SECOND))]
    #[case::the_deadline_is_near(1, Impatience::Deadline)]
    fn silence_counts_where_there_is_time_for_it(#[case] seconds: u32, #[case] why: Impatience) {
        let deadline = Instant::now() + seconds * SECOND;
        let (end, told) = Patience::fixed(deadline, 5 * SECOND).ends();
        assert_eq!((told, end == deadline), (why, why == Impatience::Deadline));
    }

    #[rstest]
    #[case::it_stood_still(5, Impatience::Silence(5 * SECOND))]
    #[case::it_moved_of_late(6, Impatience::Deadline)]
    fn a_write_has_until_its_deadline(#[case] moved: u32, #[case] why: Impatience) {
        let begun = Instant::now();
        let patience = Patience::fixed(begun + 10 * SECOND, 5 * SECOND);
        assert_eq!(patience.ends_write(begun + moved * SECOND), (patience.deadline, why));
    }
}
