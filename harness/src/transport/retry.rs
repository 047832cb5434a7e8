//! Retries requests that a server rejects with 429. Such requests were not processed.

use std::time::Duration;

use tokio::time::Instant;

use crate::exchange::Exchange;

/// Attempts per request.
const ATTEMPTS: usize = 8;

/// Servers may return 0.
const SHORTEST: Duration = Duration::from_millis(10);

/// A busy server asks for a second or two. A longer delay is a rejection, for example of an
/// eviction by a disruption budget.
const LONGEST: Duration = Duration::from_secs(5);

/// Sends until the response is final, or all attempts are used.
pub(super) async fn with_retries<T, A: Future<Output = T>>(
    deadline: Instant,
    send: impl Fn() -> A,
    exchange: impl Fn(&T) -> &Exchange,
) -> T {
    let mut attempts = 0;
    loop {
        // Boxed because the future is large and has many callers.
        let response = Box::pin(send()).await;
        attempts += 1;
        match pause(exchange(&response), deadline) {
            Some(pause) if attempts < ATTEMPTS => tokio::time::sleep(pause).await,
            _ => return response,
        }
    }
}

/// Reports whether a final response asks for another attempt, for which no time was left.
pub(crate) fn asks_to_wait(exchange: &Exchange) -> bool {
    delay(exchange).is_some()
}

/// Returns the pause before the next attempt, or `None` for a final response.
fn pause(exchange: &Exchange, deadline: Instant) -> Option<Duration> {
    delay(exchange).filter(|pause| Instant::now() + *pause < deadline)
}

fn delay(exchange: &Exchange) -> Option<Duration> {
    let response = exchange.response()?;
    let after = response.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("retry-after"));
    requested_delay(response.status, after.map(|(_, value)| value.as_str()))
}

/// Returns the delay of a 429 with Retry-After.
fn requested_delay(status: u16, after: Option<&str>) -> Option<Duration> {
    let seconds = after.filter(|_| status == 429)?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).max(SHORTEST)).filter(|pause| *pause <= LONGEST)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use rstest::rstest;

    use super::*;
    use crate::exchange::Outcome;
    use crate::testing::{exchange, received};

    #[rstest]
    #[case(429, Some("1"), Some(1000))]
    #[case(429, Some("0"), Some(10))]
    #[case(429, Some("5"), Some(5000))]
    #[case(429, Some("6"), None)]
    #[case(429, Some("10"), None)]
    #[case(429, Some("Fri, 31 Dec 1999 23:59:59 GMT"), None)]
    #[case(429, None, None)]
    #[case(503, Some("1"), None)]
    fn only_a_busy_server_that_reports_when_is_asked_again(
        #[case] status: u16,
        #[case] after: Option<&str>,
        #[case] millis: Option<u64>,
    ) {
        assert_eq!(requested_delay(status, after), millis.map(Duration::from_millis));
    }
    /// Counts the attempts on a server that returns 429 at first.
    async fn times(busy: usize, deadline: Duration) -> usize {
        let requested_delay = AtomicUsize::new(0);
        let send = async || {
            let mut response =
                received(if requested_delay.fetch_add(1, Ordering::Relaxed) < busy {
                    429
                } else {
                    200
                });
            response.headers =
                vec![("date".into(), "0".into()), ("Retry-After".into(), "0".into())];
            exchange("/x", Outcome::Response(response))
        };
        with_retries(Instant::now() + deadline, send, |response| response).await;
        requested_delay.into_inner()
    }

    #[tokio::test]
    async fn a_busy_server_is_asked_until_it_responses_or_has_been_asked_enough() {
        let ample = Duration::from_mins(1);
        assert_eq!(times(0, ample).await, 1);
        assert_eq!(times(2, ample).await, 3);
        assert_eq!(times(ATTEMPTS + 1, ample).await, ATTEMPTS);
        assert_eq!(times(2, Duration::ZERO).await, 1, "there is no time to come back");
    }
}
