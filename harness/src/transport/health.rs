//! Watches the outcomes of all requests of a run: a server that goes away, one that hangs, and one
//! that is overloaded.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::event::{StopReason, Stopped};
use crate::exchange::{BrokenKind, Exchange, Outcome};

/// Consecutive refused connections that show that the server is gone.
const REFUSED: usize = 10;

/// Consecutive requests without a timely response that show that the server hangs.
const DEADLINES: usize = 20;

/// Requests without a timely response that show that the server is overloaded.
const OVERLOAD: usize = 3;

/// Without this verb, almost no case can run.
const CREATE: &str = "create";

/// The health of the server during a run.
#[derive(Debug)]
pub(crate) struct Health {
    /// The minimum time for a response before the server is at fault.
    fair_wait: Duration,
    state: Mutex<State>,
    stopped: CancellationToken,
}

#[derive(Debug, Default)]
struct State {
    /// The last request with a response.
    last: Option<String>,
    refused: Streak,
    /// Requests of any kind without a response in time.
    silent: Streak,
    creates: Streak,
    /// Verbs that had a response.
    responding: BTreeSet<String>,
    /// Requests without a response in time, of verbs that had responses before.
    late: usize,
    /// Older requests do not count as late.
    late_since: Option<Instant>,
    stopped: Option<Stopped>,
}

/// Consecutive equal outcomes.
#[derive(Debug, Default)]
struct Streak {
    count: usize,
    /// The time of the first one, and the last request with a response before it.
    begun: Option<(Timestamp, Option<String>)>,
}

impl Health {
    pub(crate) fn new(fair_wait: Duration) -> Self {
        Self { fair_wait, state: Mutex::default(), stopped: CancellationToken::new() }
    }

    /// Records an exchange.
    pub(super) fn observe(&self, exchange: &Exchange) {
        let state = &mut *self.lock();
        match &exchange.outcome {
            Outcome::Response(_) => state.responded(exchange),
            Outcome::Broken(broken) => match broken.kind {
                BrokenKind::NotSent | BrokenKind::Interrupted => return,
                BrokenKind::Connect => state.refused.add(state.last.as_ref()),
                BrokenKind::Deadline if exchange.took >= self.fair_wait => {
                    state.timed_out(exchange);
                }
                BrokenKind::Deadline => {}
                BrokenKind::Protocol | BrokenKind::Tls | BrokenKind::Budget => {
                    (state.refused, state.silent) = Default::default();
                }
            },
        }
        if state.stopped.is_none() {
            state.stopped = state.reason_to_stop();
        }
        if state.stopped.is_some() {
            self.stopped.cancel();
        }
    }

    /// Returns why the run stops.
    pub(crate) fn reason(&self) -> Option<Stopped> {
        self.lock().stopped.clone()
    }

    /// Waits until there is a reason to stop the run.
    pub(crate) async fn stopped(&self) {
        self.stopped.cancelled().await;
    }

    /// Reports whether the server does not keep up with the requests. Then counts again.
    pub(crate) fn is_overloaded(&self) -> bool {
        let state = &mut *self.lock();
        let overloaded = state.late >= OVERLOAD;
        if overloaded {
            (state.late, state.late_since) = (0, Some(Instant::now()));
        }
        overloaded
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn responded(&mut self, exchange: &Exchange) {
        let verb = exchange.request.verb();
        (self.refused, self.silent) = Default::default();
        if verb == CREATE && !is_review(exchange) {
            self.creates = Streak::default();
        }
        self.last = Some(exchange.request.line());
        self.responding.insert(verb);
    }

    fn timed_out(&mut self, exchange: &Exchange) {
        let verb = exchange.request.verb();
        self.refused = Streak::default();
        self.silent.add(self.last.as_ref());
        if verb == CREATE {
            self.creates.add(self.last.as_ref());
        }
        let begun = Instant::now().checked_sub(exchange.took);
        if self.responding.contains(&verb) && self.late_since <= begun {
            self.late += 1;
        }
    }

    fn reason_to_stop(&self) -> Option<Stopped> {
        let limits = [
            (&self.refused, REFUSED, StopReason::Refused),
            (&self.silent, DEADLINES, StopReason::Silent),
            (&self.creates, DEADLINES, StopReason::CreatesHang),
        ];
        let (streak, _, reason) =
            limits.into_iter().find(|(streak, limit, _)| streak.count >= *limit)?;
        let (since, after) = streak.begun.clone()?;
        Some(Stopped { reason, since: format!("{since:.3}"), after })
    }
}

impl Streak {
    fn add(&mut self, last: Option<&String>) {
        self.count += 1;
        self.begun.get_or_insert_with(|| (Timestamp::now(), last.cloned()));
    }
}

/// Reviews are posted, but create nothing.
fn is_review(exchange: &Exchange) -> bool {
    exchange.request.line().ends_with("reviews")
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::exchange::Broken;
    use crate::testing::{exchange, received};

    const FAIR: Duration = Duration::from_secs(5);

    fn ok(method: &str, target: &str) -> Exchange {
        with(method, target, Outcome::Response(received(200)))
    }

    fn broken(method: &str, target: &str, kind: BrokenKind) -> Exchange {
        with(method, target, Outcome::Broken(Broken { kind, message: "no".to_owned() }))
    }

    fn with(method: &str, target: &str, outcome: Outcome) -> Exchange {
        let mut exchange = exchange(target, outcome);
        exchange.request.method = method.to_owned();
        exchange.took = FAIR;
        exchange
    }

    fn observe(health: &Health, count: usize, exchange: &Exchange) {
        for _ in 0..count {
            health.observe(exchange);
        }
    }

    #[test]
    fn a_server_is_gone_after_ten_refused_connections_in_a_row() {
        let health = Health::new(FAIR);
        let refused = broken("GET", "/api/v1/nodes?limit=1", BrokenKind::Connect);
        health.observe(&ok("GET", "/version"));
        observe(&health, 9, &refused);
        health.observe(&ok("GET", "/api/v1/pods?watch=true"));
        observe(&health, 9, &refused);
        assert!(health.reason().is_none());
        observe(&health, 3, &broken("GET", "/x", BrokenKind::NotSent));
        assert!(health.reason().is_none(), "these were not sent");
        health.observe(&refused);
        let stopped = health.reason().expect("it is gone");
        assert_eq!(stopped.reason, StopReason::Refused);
        assert_eq!(stopped.after.as_deref(), Some("GET /api/v1/pods"));
        health.observe(&ok("GET", "/version"));
        assert!(health.reason().is_some(), "the run stays stopped");
    }

    #[rstest]
    #[case::all(&["/api/v1/nodes", "/version"], "GET", StopReason::Silent)]
    #[case::creates(&["/api/v1/pods", "/api/v1/nodes"], "POST", StopReason::CreatesHang)]
    fn a_server_hangs_after_twenty_deadlines_in_a_row(
        #[case] targets: &[&str],
        #[case] method: &str,
        #[case] reason: StopReason,
    ) {
        let health = Health::new(FAIR);
        health.observe(&ok("GET", "/api"));
        for round in 0..10 {
            for target in targets {
                assert!(health.reason().is_none(), "{round}");
                health.observe(&broken(method, target, BrokenKind::Deadline));
                if reason == StopReason::CreatesHang {
                    health.observe(&ok("GET", "/api"));
                    health.observe(&ok("POST", "/apis/a/v1/selfsubjectaccessreviews"));
                }
            }
        }
        assert_eq!(health.reason().expect("it hangs").reason, reason);
    }

    #[test]
    fn a_request_with_little_time_shows_nothing() {
        let health = Health::new(FAIR);
        let mut hurried = broken("POST", "/api/v1/pods", BrokenKind::Deadline);
        hurried.took = FAIR / 2;
        observe(&health, 30, &hurried);
        assert!(health.reason().is_none());
        let late = broken("POST", "/api/v1/pods", BrokenKind::Deadline);
        observe(&health, 19, &late);
        health.observe(&ok("POST", "/api/v1/pods"));
        observe(&health, 19, &late);
        assert!(health.reason().is_none(), "there was a response in between");
    }

    #[test]
    fn a_server_is_overloaded_if_it_responded_before() {
        let health = Health::new(Duration::ZERO);
        let mut late = broken("GET", "/api/v1/nodes", BrokenKind::Deadline);
        late.took = Duration::ZERO;
        observe(&health, 5, &late);
        assert!(!health.is_overloaded(), "it never lists");
        health.observe(&ok("GET", "/api/v1/nodes"));
        observe(&health, 2, &late);
        assert!(!health.is_overloaded());
        health.observe(&late);
        assert!(health.is_overloaded());
        assert!(!health.is_overloaded(), "the count begins again");
        late.took = Duration::from_mins(1);
        observe(&health, 5, &late);
        assert!(!health.is_overloaded(), "these requests are older");
    }
}
