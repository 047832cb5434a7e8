//! Coming back to a server that has too much to do. It has not looked at the request, so asking again changes nothing.

use std::time::Duration;

use tokio::time::Instant;

use crate::exchange::Exchange;

/// How often a request is sent before 429 is the answer.
const ATTEMPTS: usize = 8;

/// Servers may say 0, and may say it to many.
const SHORTEST: Duration = Duration::from_millis(10);

/// Servers that are busy ask for a second or two. Whoever asks for more means what it refuses, as with an eviction that a budget forbids.
const LONGEST: Duration = Duration::from_secs(5);

/// Asks until the server does not ask to come back, or has been asked often enough.
pub(super) async fn insist<T, A: Future<Output = T>>(
    deadline: Instant,
    ask: impl Fn() -> A,
    exchange: impl Fn(&T) -> &Exchange,
) -> T {
    let mut attempts = 0;
    loop {
        // On the heap: what asks is called from everywhere, and its state is large.
        let answer = Box::pin(ask()).await;
        attempts += 1;
        match pause(exchange(&answer), deadline) {
            Some(pause) if attempts < ATTEMPTS => tokio::time::sleep(pause).await,
            _ => return answer,
        }
    }
}

/// How long to wait before the request is sent again; `None`: the exchange stands.
fn pause(exchange: &Exchange, deadline: Instant) -> Option<Duration> {
    let answer = exchange.answer()?;
    let after = answer.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("retry-after"));
    let pause = asked(answer.status, after.map(|(_, value)| value.as_str()))?;
    (Instant::now() + pause < deadline).then_some(pause)
}

/// What a server asks for that is busy and says until when.
fn asked(status: u16, after: Option<&str>) -> Option<Duration> {
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
    fn only_a_busy_server_that_says_when_is_asked_again(
        #[case] status: u16,
        #[case] after: Option<&str>,
        #[case] millis: Option<u64>,
    ) {
        assert_eq!(asked(status, after), millis.map(Duration::from_millis));
    }
    /// How often a server is asked that is busy for the first times, and has always time a moment later.
    async fn times(busy: usize, deadline: Duration) -> usize {
        let asked = AtomicUsize::new(0);
        let ask = async || {
            let mut answer = received(if asked.fetch_add(1, Ordering::Relaxed) < busy { 429 } else { 200 });
            answer.headers = vec![("date".into(), "0".into()), ("Retry-After".into(), "0".into())];
            exchange("/x", Outcome::Answered(answer))
        };
        insist(Instant::now() + deadline, ask, |answer| answer).await;
        asked.into_inner()
    }

    #[tokio::test]
    async fn a_busy_server_is_asked_until_it_answers_or_has_been_asked_enough() {
        let ample = Duration::from_mins(1);
        assert_eq!(times(0, ample).await, 1);
        assert_eq!(times(2, ample).await, 3);
        assert_eq!(times(ATTEMPTS + 1, ample).await, ATTEMPTS);
        assert_eq!(times(2, Duration::ZERO).await, 1, "there is no time to come back");
    }
}
