//! The limit of concurrent cases. A run lowers it if the server does not keep up. While little
//! memory is free, one case runs at a time.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, Semaphore, SemaphorePermit};

/// Limits the concurrent cases, over all streams of cases.
pub(super) struct Jobs {
    permits: Semaphore,
    state: Mutex<State>,
    ended: Notify,
}

struct State {
    limit: usize,
    /// Permits of running cases that are not given to others.
    excess: usize,
    /// The number of running cases.
    running: usize,
    /// True after the notice.
    has_notified: bool,
}

/// The permit of a running case.
pub(super) struct Job<'a> {
    jobs: &'a Jobs,
    permit: Option<SemaphorePermit<'a>>,
}

impl Jobs {
    pub(super) fn new(limit: usize) -> Self {
        let limit = limit.max(1);
        let state = State { limit, excess: 0, running: 0, has_notified: false };
        Self { permits: Semaphore::new(limit), state: Mutex::new(state), ended: Notify::new() }
    }

    /// Waits for a permit, and then for `memory` or until no case runs.
    pub(super) async fn start(&self, memory: impl Future<Output = ()>) -> Job<'_> {
        // The semaphore is never closed.
        let permit = self.permits.acquire().await.ok();
        tokio::select! {
            () = memory => self.lock().running += 1,
            () = self.first() => {}
        }
        Job { jobs: self, permit }
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
        let forgotten = self.permits.forget_permits(excess);
        state.excess += excess - forgotten;
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

impl Drop for Job<'_> {
    fn drop(&mut self) {
        let mut state = self.jobs.lock();
        state.running -= 1;
        if state.excess > 0
            && let Some(permit) = self.permit.take()
        {
            state.excess -= 1;
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
        std::iter::from_fn(|| jobs.start(ready(())).now_or_never()).collect()
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
        assert!(jobs.start(ready(())).now_or_never().is_none(), "three are running");
        running.clear();
        assert_eq!(started(&jobs).len(), 2);
    }

    #[tokio::test]
    async fn without_memory_one_case_runs_at_a_time() {
        let jobs = Jobs::new(4);
        let first = jobs.start(pending()).await;
        let mut second = Box::pin(jobs.start(pending()));
        assert!(futures_util::poll!(&mut second).is_pending(), "the first one runs");
        let third = jobs.start(ready(())).await;
        drop(first);
        assert!(futures_util::poll!(&mut second).is_pending(), "the third one runs");
        drop(third);
        let _second = second.await;
        assert!(jobs.start(pending()).now_or_never().is_none());
    }
}
