//! Timeouts of streams.
//!
//! A server without progress for a long time has stalled, and is wrong. A server that still makes
//! progress at the deadline is slow, which decides nothing. Therefore quick progress extends the
//! deadline, up to a limit.

use std::time::Duration;

use tokio::time::Instant;

/// The timeout of a stream operation.
#[derive(Clone, Copy, Debug)]
pub struct StreamTimeout {
    /// The current deadline.
    pub deadline: Instant,
    /// The latest deadline after all extensions.
    pub limit: Instant,
    /// Time without data after which the stream has stalled.
    pub silence: Duration,
    /// Progress within this time extends the deadline.
    pub quick: Duration,
}

/// Why a wait timed out.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum TimeoutCause {
    /// No progress for this long.
    #[error("no progress for {} s", .0.as_secs_f64())]
    Stalled(Duration),
    /// The deadline expired during progress, or soon after it.
    #[error("the case timeout (--case-timeout) expired before the stream was silent for long")]
    Deadline,
}

impl StreamTimeout {
    /// Creates a timeout whose deadline never moves.
    pub fn fixed(deadline: Instant, silence: Duration) -> Self {
        Self { deadline, limit: deadline, silence, quick: Duration::ZERO }
    }

    /// Extends the deadline if this progress was quick.
    pub(super) fn moved(&mut self, after: Duration) {
        if after < self.quick {
            self.deadline = (self.deadline + after).min(self.limit);
        }
    }

    /// Returns when a write times out, and why. A command may stop reading for a while, so a write
    /// has until its deadline.
    pub(super) fn ends_write(&self, moved: Instant) -> (Instant, TimeoutCause) {
        let silent = self.deadline.saturating_duration_since(moved);
        let why = if silent >= self.silence {
            TimeoutCause::Stalled(silent)
        } else {
            TimeoutCause::Deadline
        };
        (self.deadline, why)
    }

    /// Returns when a read times out without progress, and why.
    pub(super) fn ends(&self) -> (Instant, TimeoutCause) {
        let silent = Instant::now() + self.silence;
        if silent <= self.deadline {
            (silent, TimeoutCause::Stalled(self.silence))
        } else {
            (self.deadline, TimeoutCause::Deadline)
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
        let mut timeout = StreamTimeout { deadline, limit, silence: 5 * SECOND, quick: SECOND };
        timeout.moved(SECOND);
        assert_eq!(timeout.deadline, deadline);
        for moved in [SECOND * 3 / 4, SECOND * 3 / 2, 2 * SECOND, 2 * SECOND] {
            timeout.moved(SECOND * 3 / 4);
            assert_eq!(timeout.deadline, deadline + moved);
        }
    }

    #[rstest]
    #[case::the_deadline_is_far(60, TimeoutCause::Stalled(5 * SECOND))]
    #[case::the_deadline_is_near(1, TimeoutCause::Deadline)]
    fn silence_counts_where_there_is_time_for_it(#[case] seconds: u32, #[case] why: TimeoutCause) {
        let deadline = Instant::now() + seconds * SECOND;
        let (end, cause) = StreamTimeout::fixed(deadline, 5 * SECOND).ends();
        assert_eq!((cause, end == deadline), (why, why == TimeoutCause::Deadline));
    }

    #[rstest]
    #[case::it_stood_still(5, TimeoutCause::Stalled(5 * SECOND))]
    #[case::it_moved_of_late(6, TimeoutCause::Deadline)]
    fn a_write_has_until_its_deadline(#[case] moved: u32, #[case] why: TimeoutCause) {
        let begun = Instant::now();
        let timeout = StreamTimeout::fixed(begun + 10 * SECOND, 5 * SECOND);
        assert_eq!(timeout.ends_write(begun + moved * SECOND), (timeout.deadline, why));
    }
}
