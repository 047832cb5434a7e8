//! Reads the bodies of requests within limits of size, time and memory.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header};
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::config::Limits;
use kubeproof_apimachinery::status::ApiError;

/// The longest accepted body.
pub(crate) const MAX_BODY: usize = 3 * 1024 * 1024;
/// The number of bytes of a longer body that are discarded, so that the client reads the response.
const MAX_DISCARDED: usize = 32 * 1024 * 1024;

/// The timeout for discarding a body.
const DISCARD_TIME: Duration = Duration::from_secs(2);

/// The bytes of each body that need no share of the common memory budget.
const FREE: usize = 64 * 1024;
/// The unit of the common memory budget.
const UNIT: usize = 1024;

/// Reads bodies within a common memory budget.
#[derive(Clone, Debug)]
pub(crate) struct Intake {
    room: Arc<Semaphore>,
    time: Duration,
}

impl Intake {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self { room: Arc::new(Semaphore::new(limits.bodies / UNIT)), time: limits.body }
    }

    /// Reads a complete body.
    pub(crate) async fn read(&self, body: &mut Incoming) -> Result<Bytes, ApiError> {
        let read = tokio::time::timeout(self.time, self.collect(body)).await;
        read.unwrap_or_else(|_| Err(ApiError::slow_body(self.time)))
    }

    async fn collect(&self, body: &mut Incoming) -> Result<Bytes, ApiError> {
        let too_large = || ApiError::too_large(&format!("limit is {MAX_BODY}"));
        // A body that announces such a length is rejected at once.
        if body.size_hint().lower() > MAX_BODY as u64 {
            return Err(too_large());
        }
        let mut bytes = BytesMut::new();
        let mut share: Option<SemaphorePermit<'_>> = None;
        let mut discarded = 0;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| {
                ApiError::bad_request(format!("the body cannot be read: {error}"))
            })?;
            let Ok(data) = frame.into_data() else { continue };
            let length = bytes.len() + data.len();
            if discarded > 0 || length > MAX_BODY {
                // The body is too long, so its first part is useless.
                bytes = BytesMut::new();
                share = None;
                discarded += data.len();
                if discarded > MAX_DISCARDED {
                    break;
                }
                continue;
            }
            let held = share.as_ref().map_or(0, SemaphorePermit::num_permits);
            let more = length.saturating_sub(FREE).div_ceil(UNIT) - held;
            if more > 0 {
                let more =
                    u32::try_from(more).ok().and_then(|more| self.room.try_acquire_many(more).ok());
                let more = more.ok_or_else(ApiError::memory_exhausted)?;
                match &mut share {
                    Some(share) => share.merge(more),
                    None => share = Some(more),
                }
            }
            bytes.extend_from_slice(&data);
        }
        if discarded > 0 { Err(too_large()) } else { Ok(bytes.freeze()) }
    }
}

/// Reads an unused body to its end. Closing a connection with unread bytes resets it, and a client
/// that is still sending would lose the response.
pub(crate) async fn discard(body: &mut Incoming) {
    let rest = async {
        let mut discarded = 0;
        while let Some(Ok(frame)) = body.frame().await {
            discarded += frame.data_ref().map_or(0, Bytes::len);
            if discarded > MAX_DISCARDED {
                break;
            }
        }
    };
    // A slower client gets the reset.
    let _ = tokio::time::timeout(DISCARD_TIME, rest).await;
}

/// Returns the media type of the body without parameters. It is empty if the header is absent.
pub(crate) fn media_type(headers: &HeaderMap) -> String {
    let value =
        headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Rejects a body of POST, PUT or DELETE that is not JSON. An absent media type counts as JSON. The
/// error lists the accepted media types.
pub(crate) fn require_json(headers: &HeaderMap, accepted: &[&str]) -> Result<(), ApiError> {
    let media = media_type(headers);
    if media.is_empty() || media == "application/json" {
        return Ok(());
    }
    Err(ApiError::unsupported_media_type(accepted))
}
