//! Pairs of an error stream and a data stream, which share a request id.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::spdy::connection::Stream;
use crate::spdy::header_block::Headers;

/// The time for the client to open the second stream of a pair.
const STREAM_CREATION_TIMEOUT: Duration = Duration::from_secs(30);

/// The longest request id. Clients use small numbers.
const MAX_REQUEST_ID: usize = 128;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Half {
    Error,
    Data,
}

/// The headers of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Announcement {
    pub(super) half: Half,
    pub(super) port: u16,
    pub(super) request: String,
}

impl Announcement {
    /// Returns none when the headers are not those of a port-forward.
    pub(super) fn parse(id: u32, headers: &Headers) -> Option<Self> {
        let half = match headers.get("streamtype")? {
            "error" => Half::Error,
            "data" => Half::Data,
            _ => return None,
        };
        let port = headers.get("port")?.parse().ok().filter(|port| *port != 0)?;
        let request = match headers.get("requestid") {
            Some(request) if request.len() > MAX_REQUEST_ID => return None,
            Some(request) if !request.is_empty() => request.to_owned(),
            // Old clients have no request ids. They open the data stream after the error stream.
            _ if half == Half::Error => id.to_string(),
            _ => id.saturating_sub(2).to_string(),
        };
        Some(Self { half, port, request })
    }
}

/// Both streams of a connection to a port.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) port: u16,
    pub(super) error: Stream,
    pub(super) data: Stream,
}

/// The streams that wait for the other half of their pair.
#[derive(Debug, Default)]
pub(super) struct Pending(BTreeMap<String, First>);

#[derive(Debug)]
struct First {
    deadline: Instant,
    half: Half,
    stream: Stream,
}

/// Another stream of this pair already has the same half.
#[derive(Debug)]
pub(super) struct Taken(pub(super) Stream);

impl Pending {
    /// Adds a stream, and returns the pair that it completes.
    pub(super) fn add(
        &mut self,
        announced: Announcement,
        stream: Stream,
    ) -> Result<Option<Pair>, Taken> {
        let Announcement { half, port, request } = announced;
        match self.0.remove(&request) {
            None => {
                let deadline = Instant::now() + STREAM_CREATION_TIMEOUT;
                self.0.insert(request, First { deadline, half, stream });
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

    /// Waits until a stream has waited too long. Returns its request id and the stream.
    pub(super) async fn next_timeout(&mut self) -> (String, Stream) {
        let next = self.0.iter().min_by_key(|(_, first)| first.deadline);
        let Some((request, deadline)) =
            next.map(|(request, first)| (request.clone(), first.deadline))
        else {
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

    fn headers(pairs: &[(&str, &str)]) -> Headers {
        pairs.iter().copied().collect()
    }

    /// The expected request ids are those of the error stream and of the data stream.
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
        for (index, (kind, half)) in
            [("error", Half::Error), ("data", Half::Data)].into_iter().enumerate()
        {
            let mut pairs = vec![("streamtype", kind), ("port", port)];
            pairs.extend(request.map(|request| ("requestid", request)));
            let expected = expected.map(|requests| Announcement {
                half,
                port: 7,
                request: requests[index].to_owned(),
            });
            assert_eq!(Announcement::parse(5, &headers(&pairs)), expected, "{kind}");
        }
    }

    #[test]
    fn a_request_id_may_have_128_bytes() {
        for (length, valid) in [(128, true), (129, false)] {
            let request = "r".repeat(length);
            let pairs = [("streamtype", "data"), ("port", "7"), ("requestid", &request)];
            assert_eq!(Announcement::parse(5, &headers(&pairs)).is_some(), valid, "{length}");
        }
    }

    #[rstest]
    #[case(&[("port", "7")])]
    #[case(&[("streamtype", "data")])]
    #[case(&[("streamtype", "stdin"), ("port", "7")])]
    fn other_headers_are_invalid(#[case] pairs: &[(&str, &str)]) {
        assert_eq!(Announcement::parse(5, &headers(pairs)), None);
    }
}
