//! Asks the server whether a broken connection or a silence decides anything.
//!
//! A server that goes away breaks the connections of running cases. A slow server is silent for
//! long on streams and watches, too.

use std::time::Duration;

use tokio::time::Instant;

use super::case::Session;
use crate::capability::outgoing;
use crate::event::{CaseResult, Judgement, NamedExchange, Verdict};
use crate::exchange::{BrokenKind, Exchange, Outcome, StreamEnd, WatchEnd};

/// Time for a server to accept a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// The pauses after requests whose connection ended, in milliseconds.
const PAUSES: [u64; 4] = [10, 50, 200, 500];

impl Session {
    /// Turns failures by broken connections into errors, if the server is gone.
    pub(super) async fn without_lost_connections(&self, mut result: CaseResult) -> CaseResult {
        let suspects = suspects(&result);
        if suspects.is_empty() || !self.is_gone().await {
            return result;
        }
        for at in suspects {
            let check = &mut result.checks[at];
            check.verdict = Verdict::Error;
            check.message = format!("{}; the server refuses connections now", check.message);
        }
        let judgement = Judgement::of(&result.checks, result.level);
        CaseResult { verdict: judgement.verdict, reason: judgement.reason, ..result }
    }

    /// Reports whether the server refuses connections. When a process ends, its connections can end
    /// before its listener, so a connection that ends at once says nothing yet.
    async fn is_gone(&self) -> bool {
        for pause in PAUSES {
            let exchange = self.ask(CONNECT).await;
            match &exchange.outcome {
                Outcome::Broken(broken) if broken.kind == BrokenKind::Protocol => {
                    tokio::time::sleep(Duration::from_millis(pause)).await;
                }
                Outcome::Broken(broken) => {
                    return matches!(broken.kind, BrokenKind::Connect | BrokenKind::NotSent);
                }
                Outcome::Response(_) => return false,
            }
        }
        false
    }

    /// Reports whether the server or this machine is slow, or the server sends no response at all.
    pub(super) async fn is_slow(&self) -> bool {
        let exchange = self.ask(self.fair_wait()).await;
        exchange.response().is_none() || exchange.took >= self.quick() / 2
    }

    /// Sends a request that costs a server nothing, over its own connection.
    async fn ask(&self, timeout: Duration) -> Exchange {
        let request = outgoing("GET", "/version", "application/json", None);
        self.client.apart().send(request, Instant::now() + timeout).await
    }
}

/// Returns the failed checks of exchanges whose connection ended.
fn suspects(result: &CaseResult) -> Vec<usize> {
    let has_ended = |step: &String| {
        let of_step = |named: &&NamedExchange| named.step == *step;
        result.exchanges.iter().filter(of_step).any(|named| has_ended(&named.exchange))
    };
    let failed = result.checks.iter().enumerate().filter(|(_, check)| {
        matches!(check.verdict, Verdict::Fail | Verdict::Warn) && check.steps.iter().any(has_ended)
    });
    failed.map(|(at, _)| at).collect()
}

fn has_ended(exchange: &Exchange) -> bool {
    let response = match &exchange.outcome {
        Outcome::Broken(broken) => return broken.kind == BrokenKind::Protocol,
        Outcome::Response(response) => response,
    };
    let stream_ended = || {
        let end = response.stream.as_ref().and_then(|stream| stream.end.as_ref());
        matches!(end, Some(StreamEnd::Dropped(_) | StreamEnd::Broken(_)))
    };
    matches!(response.end, Some(WatchEnd::Broken(_) | WatchEnd::Server)) || stream_ended()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rstest::rstest;

    use super::*;
    use crate::exchange::{Broken, Received};
    use crate::testing::{check_result, exchange, received, result};

    fn watch(end: WatchEnd) -> Outcome {
        Outcome::Response(Received { end: Some(end), ..received(200) })
    }

    #[rstest]
    #[case::reset(broken(BrokenKind::Protocol), true)]
    #[case::late(broken(BrokenKind::Deadline), false)]
    #[case::the_server_ended_the_watch(watch(WatchEnd::Server), true)]
    #[case::a_watch_broke(watch(WatchEnd::Broken("reset".to_owned())), true)]
    #[case::the_client_closed_the_watch(watch(WatchEnd::Client), false)]
    #[case::response(Outcome::Response(received(500)), false)]
    fn failures_by_ended_connections_are_suspects(
        #[case] outcome: Outcome,
        #[case] expected: bool,
    ) {
        let exchange = Arc::new(exchange("/x", outcome));
        let exchanges = vec![NamedExchange { step: "step".to_owned(), exchange }];
        let checks = [Verdict::Pass, Verdict::Fail].map(|verdict| check_result("a", verdict));
        let result = CaseResult { exchanges, checks: checks.into(), ..result("a/b", "") };
        assert_eq!(suspects(&result), if expected { vec![1] } else { vec![] });
    }

    fn broken(kind: BrokenKind) -> Outcome {
        Outcome::Broken(Broken { kind, message: "no response".to_owned() })
    }
}
