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

/// Rounds of such requests. The requests of a round wait at the same time, so one pause of this
/// machine or of the server can delay all of them.
const ROUNDS: usize = 3;

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
    /// Each round has requests that were sent after the first one of the round before ended.
    rounds: usize,
    /// The end of the first request of the last round.
    round_ended: Option<Instant>,
    /// The time of the last different outcome. Requests that were sent before it show nothing:
    /// the server responded to others while they waited.
    since: Option<Instant>,
    /// The time of the first one, and the last request with a response before it.
    begun: Option<(Timestamp, Option<String>)>,
}

impl Health {
    pub(crate) fn new(fair_wait: Duration) -> Self {
        Self { fair_wait, state: Mutex::default(), stopped: CancellationToken::new() }
    }

    /// Records an exchange.
    pub(super) fn observe(&self, exchange: &Exchange) {
        self.observe_at(exchange, Instant::now());
    }

    fn observe_at(&self, exchange: &Exchange, now: Instant) {
        let state = &mut *self.lock();
        match &exchange.outcome {
            Outcome::Response(_) => state.responded(exchange, now),
            Outcome::Broken(broken) => match broken.kind {
                BrokenKind::NotSent => return,
                // A listener without a server behind it accepts some connections.
                BrokenKind::Connect | BrokenKind::Deadline if exchange.took >= self.fair_wait => {
                    state.timed_out(exchange, now);
                }
                BrokenKind::Connect => state.refused.add(state.last.as_ref(), None, now),
                BrokenKind::Deadline => {}
                BrokenKind::Protocol | BrokenKind::Tls | BrokenKind::Budget => {
                    (state.refused, state.silent) = (Streak::since(now), Streak::since(now));
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
    fn responded(&mut self, exchange: &Exchange, now: Instant) {
        let verb = exchange.request.verb();
        (self.refused, self.silent) = (Streak::since(now), Streak::since(now));
        if verb == CREATE && !is_review(exchange) {
            self.creates = Streak::since(now);
        }
        self.last = Some(exchange.request.line());
        self.responding.insert(verb);
    }

    fn timed_out(&mut self, exchange: &Exchange, now: Instant) {
        let verb = exchange.request.verb();
        let sent = now.checked_sub(exchange.took);
        self.refused = Streak::since(now);
        let mut streaks = vec![&mut self.silent];
        if verb == CREATE {
            streaks.push(&mut self.creates);
        }
        for streak in streaks.into_iter().filter(|streak| streak.since <= sent) {
            streak.add(self.last.as_ref(), sent, now);
        }
        if self.responding.contains(&verb) && self.late_since <= sent {
            self.late += 1;
        }
    }

    fn reason_to_stop(&self) -> Option<Stopped> {
        let limits = [
            (&self.refused, REFUSED, 1, StopReason::Refused),
            (&self.silent, DEADLINES, ROUNDS, StopReason::Silent),
            (&self.creates, DEADLINES, ROUNDS, StopReason::CreatesHang),
        ];
        let (streak, _, _, reason) = limits.into_iter().find(|(streak, count, rounds, _)| {
            streak.count >= *count && streak.rounds >= *rounds
        })?;
        let (since, after) = streak.begun.clone()?;
        Some(Stopped { reason, since: format!("{since:.3}"), after })
    }
}

impl Streak {
    fn since(now: Instant) -> Self {
        Self { since: Some(now), ..Self::default() }
    }

    fn add(&mut self, last: Option<&String>, sent: Option<Instant>, now: Instant) {
        self.count += 1;
        if self.round_ended.is_none() || self.round_ended <= sent {
            self.rounds += 1;
            self.round_ended = Some(now);
        }
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

    /// Requests follow one another: each is sent when the one before it ends.
    struct Sequence {
        health: Health,
        now: Instant,
    }

    impl Sequence {
        fn new(fair_wait: Duration) -> Self {
            Self { health: Health::new(fair_wait), now: Instant::now() }
        }

        fn observe(&mut self, count: usize, exchange: &Exchange) {
            for _ in 0..count {
                self.now += FAIR;
                self.health.observe_at(exchange, self.now);
            }
        }

        fn reason(&self) -> Option<Stopped> {
            self.health.reason()
        }
    }

    #[test]
    fn a_server_is_gone_after_ten_refused_connections_in_a_row() {
        let mut health = Sequence::new(FAIR);
        let mut refused = broken("GET", "/api/v1/nodes?limit=1", BrokenKind::Connect);
        refused.took = Duration::from_millis(1);
        health.observe(1, &ok("GET", "/version"));
        health.observe(9, &refused);
        health.observe(1, &ok("GET", "/api/v1/pods?watch=true"));
        health.observe(9, &refused);
        assert!(health.reason().is_none());
        health.observe(3, &broken("GET", "/x", BrokenKind::NotSent));
        assert!(health.reason().is_none(), "these were not sent");
        health.observe(1, &refused);
        let stopped = health.reason().expect("it is gone");
        assert_eq!(stopped.reason, StopReason::Refused);
        assert_eq!(stopped.after.as_deref(), Some("GET /api/v1/pods"));
        health.observe(1, &ok("GET", "/version"));
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
        let mut health = Sequence::new(FAIR);
        health.observe(1, &ok("GET", "/api"));
        for round in 0..10 {
            for target in targets {
                assert!(health.reason().is_none(), "{round}");
                health.observe(1, &broken(method, target, BrokenKind::Deadline));
                if reason == StopReason::CreatesHang {
                    health.observe(1, &ok("GET", "/api"));
                    health.observe(1, &ok("POST", "/apis/a/v1/selfsubjectaccessreviews"));
                }
            }
        }
        assert_eq!(health.reason().expect("it hangs").reason, reason);
    }

    /// The connections fill the queue of the listener.
    #[test]
    fn a_suspended_server_refuses_nothing() {
        let mut health = Sequence::new(FAIR);
        health.observe(1, &ok("GET", "/version"));
        for kind in [BrokenKind::Deadline, BrokenKind::Connect] {
            assert!(health.reason().is_none());
            health.observe(10, &broken("GET", "/api/v1/nodes", kind));
        }
        let stopped = health.reason().expect("it is suspended");
        assert_eq!(stopped.reason, StopReason::Silent);
        assert_eq!(stopped.after.as_deref(), Some("GET /version"));
    }

    #[test]
    fn a_request_with_little_time_shows_nothing() {
        let mut health = Sequence::new(FAIR);
        let mut hurried = broken("POST", "/api/v1/pods", BrokenKind::Deadline);
        hurried.took = FAIR / 2;
        health.observe(30, &hurried);
        assert!(health.reason().is_none());
        let late = broken("POST", "/api/v1/pods", BrokenKind::Deadline);
        health.observe(19, &late);
        health.observe(1, &ok("POST", "/api/v1/pods"));
        health.observe(19, &late);
        assert!(health.reason().is_none(), "there was a response in between");
    }

    #[test]
    fn requests_that_hang_beside_others_show_nothing() {
        let mut health = Sequence::new(FAIR);
        let late = broken("POST", "/api/v1/pods", BrokenKind::Deadline);
        health.observe(19, &late);
        health.observe(1, &ok("POST", "/api/v1/pods"));
        for _ in 0..30 {
            health.health.observe_at(&late, health.now);
        }
        assert!(health.reason().is_none(), "the server responded while they waited");
        health.observe(20, &late);
        assert!(health.reason().is_some());
    }

    #[test]
    fn requests_that_hang_at_the_same_time_show_nothing() {
        let mut health = Sequence::new(FAIR);
        let late = broken("POST", "/api/v1/pods", BrokenKind::Deadline);
        for round in 1..=ROUNDS {
            assert!(health.reason().is_none(), "{round}");
            health.now += FAIR;
            for _ in 0..DEADLINES {
                health.health.observe_at(&late, health.now);
            }
        }
        assert!(health.reason().is_some(), "no round had a response");
    }

    #[test]
    fn a_server_is_overloaded_if_it_responded_before() {
        let mut health = Sequence::new(Duration::ZERO);
        let mut late = broken("GET", "/api/v1/nodes", BrokenKind::Deadline);
        late.took = Duration::ZERO;
        health.observe(5, &late);
        assert!(!health.health.is_overloaded(), "it never lists");
        health.observe(1, &ok("GET", "/api/v1/nodes"));
        health.observe(2, &late);
        assert!(!health.health.is_overloaded());
        health.observe(1, &late);
        assert!(health.health.is_overloaded());
        assert!(!health.health.is_overloaded(), "the count begins again");
        late.took = Duration::from_mins(10);
        health.observe(5, &late);
        assert!(!health.health.is_overloaded(), "these requests are older");
    }
}
