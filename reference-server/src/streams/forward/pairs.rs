//! The streams of port-forwarding come in pairs, an error and a data stream, which know each other by a request id.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::streams::spdy::header_block::Headers;
use crate::streams::spdy::session::Stream;

/// How long the second stream of a pair may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// The longest request id. Clients count.
const MAX_REQUEST: usize = 128;

/// Which of a pair a stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Half {
    Error,
    Data,
}

/// What the headers of a stream say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Announcement {
    pub(super) half: Half,
    pub(super) port: u16,
    pub(super) request: String,
}

impl Announcement {
    /// None when the headers are not those of a port-forward.
    pub(super) fn read(id: u32, headers: &Headers) -> Option<Self> {
        let half = match headers.get("streamtype")? {
            "error" => Half::Error,
            "data" => Half::Data,
            _ => return None,
        };
        let port = headers.get("port")?.parse().ok().filter(|port| *port != 0)?;
        let request = match headers.get("requestid") {
            Some(request) if request.len() > MAX_REQUEST => return None,
            Some(request) if !request.is_empty() => request.to_owned(),
            // Old clients have no ids, and open the data stream right behind the error stream.
            _ if half == Half::Error => id.to_string(),
            _ => id.saturating_sub(2).to_string(),
        };
        Some(Self { half, port, request })
    }
}

/// A connection to make: both streams are there.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) port: u16,
    pub(super) error: Stream,
    pub(super) data: Stream,
}

/// The pairs that wait for their second stream.
#[derive(Debug, Default)]
pub(super) struct Waiting(BTreeMap<String, First>);

#[derive(Debug)]
struct First {
    deadline: Instant,
    half: Half,
    stream: Stream,
}

/// A stream that cannot have a place in its pair.
#[derive(Debug)]
pub(super) struct Taken(pub(super) Stream);

impl Waiting {
    /// Adds a stream; gives the pair that it completes.
    pub(super) fn add(&mut self, announced: Announcement, stream: Stream) -> Result<Option<Pair>, Taken> {
        let Announcement { half, port, request } = announced;
        match self.0.remove(&request) {
            None => {
                self.0.insert(request, First { deadline: Instant::now() + PATIENCE, half, stream });
                Ok(None)
            }
            Some(first) if first.half == half => {
                self.0.insert(request, first);
                Err(Taken(stream))
            }
            Some(first) => Ok(Some(match half {
                Half::Data => Pair { port, error: first.stream, data: stream },
                Half::Error => Pair { port, error: stream, data: first.stream },
            })),
        }
    }

    /// Waits until a pair has waited too long, and gives its request id and the stream that there is.
    pub(super) async fn overdue(&mut self) -> (String, Stream) {
        let next = self.0.iter().min_by_key(|(_, first)| first.deadline);
        let Some((request, deadline)) = next.map(|(request, first)| (request.clone(), first.deadline)) else {
            return std::future::pending().await;
        };
        tokio::time::sleep_until(deadline).await;
        match self.0.remove(&request) {
            Some(first) => (request, first.stream),
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::streams::spdy::header_block::headers;

    /// What an error stream and a data stream with these headers say, by the request that they belong to.
    #[rstest]
    #[case("7", Some("a"), Some(["a", "a"]))]
    #[case("7", None, Some(["5", "3"]))]
    #[case("7", Some(""), Some(["5", "3"]))]
    #[case("0", Some("a"), None)]
    #[case("65536", Some("a"), None)]
    fn a_stream_belongs_to_a_request(
        #[case] port: &str,
        #[case] request: Option<&str>,
        #[case] expected: Option<[&str; 2]>,
    ) {
        for (place, (kind, half)) in [("error", Half::Error), ("data", Half::Data)].into_iter().enumerate() {
            let mut said = vec![("streamtype", kind), ("port", port)];
            said.extend(request.map(|request| ("requestid", request)));
            let expected =
                expected.map(|requests| Announcement { half, port: 7, request: requests[place].to_owned() });
            assert_eq!(Announcement::read(5, &headers(&said)), expected, "{kind}");
        }
    }

    #[test]
    fn the_name_of_a_request_has_up_to_128_bytes() {
        for (length, read) in [(128, true), (129, false)] {
            let request = "r".repeat(length);
            let said = [("streamtype", "data"), ("port", "7"), ("requestid", &request)];
            assert_eq!(Announcement::read(5, &headers(&said)).is_some(), read, "{length}");
        }
    }

    #[rstest]
    #[case(&[("port", "7")])]
    #[case(&[("streamtype", "data")])]
    #[case(&[("streamtype", "stdin"), ("port", "7")])]
    fn other_streams_have_no_business_here(#[case] said: &[(&str, &str)]) {
        assert_eq!(Announcement::read(5, &headers(said)), None);
    }
}
