//! The limit of concurrent cases. A run lowers it if the server does not keep up. While little
//! memory is free, one case runs at a time.
//!
//! Cases that wait for the server's clock have a limit of their own, of the same size. Otherwise
//! they would hold most permits at the start, and the server would be idle.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, Semaphore, SemaphorePermit};

/// Limits the concurrent cases, over all streams of cases.
pub(super) struct Jobs {
    working: Semaphore,
    /// For cases that wait for the server's clock. `None` if one case runs at a time.
    waiting: Option<Semaphore>,
    state: Mutex<State>,
    ended: Notify,
}

struct State {
    limit: usize,
    /// Permits of running cases that are not given to others.
    excess: Excess,
    /// The number of running cases.
    running: usize,
    /// True after the notice.
    has_notified: bool,
}

#[derive(Default)]
struct Excess {
    working: usize,
    waiting: usize,
}

/// The permit of a running case.
pub(super) struct Job<'a> {
    jobs: &'a Jobs,
    permit: Option<SemaphorePermit<'a>>,
    waits: bool,
}

impl Jobs {
    pub(super) fn new(limit: usize) -> Self {
        let limit = limit.max(1);
        let excess = Excess::default();
        Self {
            working: Semaphore::new(limit),
            waiting: (limit > 1).then(|| Semaphore::new(limit)),
            state: Mutex::new(State { limit, excess, running: 0, has_notified: false }),
            ended: Notify::new(),
        }
    }

    /// Waits for a permit, and then for `memory` or until no case runs. `waits` is true for a case
    /// that waits for the server's clock.
    pub(super) async fn start(&self, waits: bool, memory: impl Future<Output = ()>) -> Job<'_> {
        let waiting = self.waiting.as_ref().filter(|_| waits);
        // The semaphores are never closed.
        let permit = waiting.unwrap_or(&self.working).acquire().await.ok();
        tokio::select! {
            () = memory => self.lock().running += 1,
            () = self.first() => {}
        }
        Job { jobs: self, permit, waits: waiting.is_some() }
    }

    /// Waits until no case runs, and counts one.
    async fn first(&self) {
        loop {
            // Registered before the check, so that no end is missed.
            let ended = self.ended.notified();
            {
                let mut state = self.lock();
                if state.running == 0 {
                    state.running = 1;
                    return;
                }
            }
            ended.await;
        }
    }

    /// Halves the limit. Returns the notice of the first time.
    pub(super) fn lower(&self) -> Option<String> {
        let mut state = self.lock();
        let before = state.limit;
        state.limit = (before / 2).max(1);
        let excess = before - state.limit;
        state.excess.working += excess - self.working.forget_permits(excess);
        if let Some(waiting) = &self.waiting {
            state.excess.waiting += excess - waiting.forget_permits(excess);
        }
        let notice = format!(
            "several requests had no response in time; the run lowers --jobs from {before} to {}, \
             and further if needed",
            state.limit
        );
        (excess > 0 && !std::mem::replace(&mut state.has_notified, true)).then_some(notice)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Excess {
    fn of(&mut self, waits: bool) -> &mut usize {
        if waits { &mut self.waiting } else { &mut self.working }
    }
}

impl Drop for Job<'_> {
    fn drop(&mut self) {
        let mut state = self.jobs.lock();
        state.running -= 1;
        let excess = state.excess.of(self.waits);
        if *excess > 0
            && let Some(permit) = self.permit.take()
        {
            *excess -= 1;
            permit.forget();
        }
        drop(state);
        self.jobs.ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use futures_util::FutureExt;

    use super::*;

    /// Starts cases until one must wait.
    fn started(jobs: &Jobs) -> Vec<Job<'_>> {
        std::iter::from_fn(|| jobs.start(false, ready(())).now_or_never()).collect()
    }

    #[test]
    fn the_limit_is_halved_down_to_one_with_one_notice() {
        let jobs = Jobs::new(5);
        let running = started(&jobs);
        assert_eq!(running.len(), 5);
        let notice = jobs.lower().expect("a notice");
        assert!(notice.contains("from 5 to 2"), "{notice}");
        drop(running);
        assert_eq!(started(&jobs).len(), 2);
        assert_eq!(jobs.lower(), None, "the user knows");
        assert_eq!(started(&jobs).len(), 1);
        assert_eq!(jobs.lower(), None);
        assert_eq!(started(&jobs).len(), 1);
        assert_eq!(Jobs::new(1).lower(), None, "there is nothing to lower");
    }

    #[test]
    fn running_cases_count_until_they_end() {
        let jobs = Jobs::new(4);
        let mut running = started(&jobs);
        jobs.lower();
        running.pop();
        assert!(jobs.start(false, ready(())).now_or_never().is_none(), "three are running");
        running.clear();
        assert_eq!(started(&jobs).len(), 2);
    }

    #[test]
    fn cases_that_wait_for_the_clock_are_counted_apart() {
        let jobs = Jobs::new(2);
        let waiting = || jobs.start(true, ready(())).now_or_never();
        let mut waits = vec![waiting().expect("a permit"), waiting().expect("a permit")];
        assert!(waiting().is_none());
        assert_eq!(started(&jobs).len(), 2);
        jobs.lower();
        waits.pop();
        assert!(waiting().is_none(), "the limit is one now");
        waits.clear();
        assert!(waiting().is_some());
        let one = Jobs::new(1);
        let _first = one.start(true, ready(())).now_or_never().expect("a permit");
        assert_eq!(started(&one).len(), 0, "one case runs at a time");
    }

    #[tokio::test]
    async fn without_memory_one_case_runs_at_a_time() {
        let jobs = Jobs::new(4);
        let first = jobs.start(false, pending()).await;
        let mut second = Box::pin(jobs.start(false, pending()));
        assert!(futures_util::poll!(&mut second).is_pending(), "the first one runs");
        let third = jobs.start(false, ready(())).await;
        drop(first);
        assert!(futures_util::poll!(&mut second).is_pending(), "the third one runs");
        drop(third);
        let _second = second.await;
        assert!(jobs.start(false, pending()).now_or_never().is_none());
    }
}
