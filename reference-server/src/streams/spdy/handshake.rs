//! The handshake: one protocol out of those that the client offers.

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

use crate::respond::Answer;
use crate::{Fault, Faults};

const VERSION: HeaderName = HeaderName::from_static("x-stream-protocol-version");
const ACCEPTED: HeaderName = HeaderName::from_static("x-accepted-stream-protocol-versions");

/// Chooses the first of the client's protocols that is in `known`, or says why there is none.
pub(crate) fn negotiate(
    headers: &HeaderMap,
    known: &[&'static str],
    faults: Faults,
) -> Result<&'static str, Box<Answer>> {
    if !headers.contains_key(VERSION) {
        if let (true, Some(oldest)) = (faults.on(Fault::SpdyNoOfferAccepted), known.last()) {
            return Ok(oldest);
        }
        let why = format!(
            "header X-Stream-Protocol-Version does not exist in request with {} headers",
            headers.len()
        );
        return Err(Box::new(refuse(StatusCode::BAD_REQUEST, &why)));
    }
    let values = headers.get_all(VERSION).iter().filter_map(|value| value.to_str().ok());
    let offered: Vec<&str> =
        values.flat_map(|value| value.split(',')).map(str::trim).filter(|one| !one.is_empty()).collect();
    if offered.is_empty() {
        let why = "header X-Stream-Protocol-Version contains [], but no valid protocols";
        return Err(Box::new(refuse(StatusCode::BAD_REQUEST, why)));
    }
    choose(&offered, known, faults)
}

/// Chooses the first of `offered` that is in `known`, or refuses.
pub(crate) fn choose(
    offered: &[&str],
    known: &[&'static str],
    faults: Faults,
) -> Result<&'static str, Box<Answer>> {
    let find = |one: &&str| known.iter().find(|known| *known == one).copied();
    let chosen = if faults.on(Fault::SpdyLastOfferWins) {
        offered.iter().rev().find_map(find)
    } else {
        offered.iter().find_map(find)
    };
    match (chosen, known) {
        (Some(chosen), _) => Ok(chosen),
        (None, [first, ..]) if faults.on(Fault::SpdyUnknownProtocolAccepted) => Ok(first),
        (None, _) => {
            let why = format!(
                "unable to negotiate protocol: client supports [{}], server accepts [{}]",
                offered.join(" "),
                known.join(" ")
            );
            let mut answer = refuse(StatusCode::FORBIDDEN, &why);
            if !faults.on(Fault::SpdyAcceptedVersionsMissing) {
                answer.headers.extend(known.iter().map(|one| (ACCEPTED, HeaderValue::from_static(one))));
            }
            Err(Box::new(answer))
        }
    }
}

fn refuse(code: StatusCode, why: &str) -> Answer {
    Answer::text(code, format!("unable to upgrade: {why}\n"))
}

/// The answer that turns the connection over.
pub(crate) fn switch(protocol: &'static str, faults: Faults) -> Answer {
    let answer = Answer::bare(StatusCode::SWITCHING_PROTOCOLS)
        .header(header::CONNECTION, HeaderValue::from_static("Upgrade"))
        .header(header::UPGRADE, HeaderValue::from_static("SPDY/3.1"));
    if faults.on(Fault::SpdyProtocolNotNamed) {
        return answer;
    }
    answer.header(VERSION, HeaderValue::from_static(protocol))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const KNOWN: &[&str] = &["v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io"];

    fn headers(offers: &[&'static str]) -> HeaderMap {
        offers.iter().map(|offer| (VERSION, HeaderValue::from_static(offer))).collect()
    }

    #[rstest]
    #[case(&["v4.channel.k8s.io", "v3.channel.k8s.io"], "v4.channel.k8s.io")]
    #[case(&["v2.channel.k8s.io", "v4.channel.k8s.io"], "v2.channel.k8s.io")]
    #[case(&["bogus", "v3.channel.k8s.io"], "v3.channel.k8s.io")]
    #[case(&["v5.channel.k8s.io,v4.channel.k8s.io"], "v4.channel.k8s.io")]
    fn the_first_offer_that_is_known_wins(#[case] offers: &[&'static str], #[case] chosen: &str) {
        assert_eq!(negotiate(&headers(offers), KNOWN, Faults::none()).ok(), Some(chosen));
    }

    #[rstest]
    #[case(&[], 400, 0)]
    #[case(&["", " , "], 400, 0)]
    #[case(&["v9.channel.k8s.io"], 403, 4)]
    fn what_cannot_be_agreed_on(#[case] offers: &[&'static str], #[case] code: u16, #[case] accepted: usize) {
        let answer = negotiate(&headers(offers), KNOWN, Faults::none()).expect_err("no protocol");
        assert_eq!((answer.status.as_u16(), answer.headers.len()), (code, accepted));
    }
}
