//! The log of a container: a bounded list of lines with their times.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;

/// The most bytes of a log.
const CAPACITY: usize = 10 * 1024 * 1024;

/// The most lines of a log. Short lines use more memory than their text.
const MAX_LINES: usize = 250_000;

/// Longer lines are split.
const MAX_LINE: usize = 16 * 1024;

/// The options of a log request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogOptions {
    /// Continue until the container ends.
    pub follow: bool,
    /// Read the log of the previous instance.
    pub previous: bool,
    /// Read at most this many lines from the end.
    pub tail_lines: Option<u64>,
    /// Stop after this many bytes.
    pub limit_bytes: Option<u64>,
    /// Skip older lines.
    pub since: Option<Timestamp>,
    /// Start each line with its time.
    pub timestamps: bool,
}

impl LogOptions {
    /// Returns the time this many seconds ago.
    pub fn since_seconds(seconds: i64) -> Option<Timestamp> {
        Timestamp::now().checked_sub(SignedDuration::from_secs(seconds)).ok()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Channel {
    Stdout,
    Stderr,
}

struct Line {
    /// Counts all lines from 0, including those that were dropped.
    number: u64,
    time: Timestamp,
    channel: Channel,
    text: BytesMut,
}

impl Line {
    fn is_open(&self) -> bool {
        !self.text.ends_with(b"\n") && self.text.len() < MAX_LINE
    }
}

#[derive(Default)]
struct Lines {
    kept: VecDeque<Line>,
    bytes: usize,
    next: u64,
}

/// A log. The container and its readers share it.
#[derive(Clone)]
pub(super) struct Log {
    lines: Arc<Mutex<Lines>>,
    /// False at the end of the log. Each write notifies the readers.
    open: Arc<watch::Sender<bool>>,
}

impl Log {
    pub(super) fn new() -> Self {
        Self { lines: Arc::default(), open: Arc::new(watch::Sender::new(true)) }
    }

    fn lock(&self) -> MutexGuard<'_, Lines> {
        // A panic between the steps of a write could only leave a wrong byte count.
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn append(&self, channel: Channel, bytes: &[u8]) {
        let mut log = self.lock();
        for piece in
            bytes.split_inclusive(|byte| *byte == b'\n').flat_map(|line| line.chunks(MAX_LINE))
        {
            log.bytes += piece.len();
            let last = log.kept.iter_mut().rev().find(|line| line.channel == channel);
            if let Some(open) = last.filter(|line| line.is_open()) {
                open.text.extend_from_slice(piece);
                continue;
            }
            let number = log.next;
            log.next += 1;
            log.kept.push_back(Line {
                number,
                time: Timestamp::now(),
                channel,
                text: BytesMut::from(piece),
            });
        }
        while (log.bytes > CAPACITY || log.kept.len() > MAX_LINES)
            && let Some(oldest) = log.kept.pop_front()
        {
            log.bytes -= oldest.text.len();
        }
        drop(log);
        self.open.send_modify(|_| {});
    }

    /// Ends the log.
    pub(super) fn close(&self) {
        self.open.send_replace(false);
    }

    /// Returns a reader that starts at the first requested line.
    pub(super) fn read(&self, options: LogOptions) -> LogStream {
        let open = self.open.subscribe();
        let log = self.lock();
        let wanted =
            log.kept.iter().filter(|line| options.since.is_none_or(|since| line.time >= since));
        let count = wanted.clone().count() as u64;
        let skip = options.tail_lines.map_or(0, |tail| count.saturating_sub(tail));
        let skip = usize::try_from(skip).unwrap_or(usize::MAX);
        let line = wanted.map(|line| line.number).nth(skip).unwrap_or(log.next);
        drop(log);
        let left = options.limit_bytes.unwrap_or(u64::MAX);
        LogStream { log: self.clone(), open, options, line, offset: 0, left }
    }
}

/// A reader of a log. It stores a position and no lines, so a slow reader uses little memory.
pub(crate) struct LogStream {
    log: Log,
    open: watch::Receiver<bool>,
    options: LogOptions,
    /// The number of the next line.
    line: u64,
    /// The bytes of that line that were read.
    offset: usize,
    /// The bytes that may still be read.
    left: u64,
}

impl LogStream {
    /// Returns the next line, or the part of it that exists. None at the end.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        loop {
            if self.left == 0 {
                return None;
            }
            let open = *self.open.borrow_and_update();
            if let Some(piece) = self.piece() {
                return Some(piece);
            }
            if !self.options.follow || !open {
                return None;
            }
            // The log owns the sender, so this returns only after a change.
            self.open.changed().await.ok()?;
        }
    }

    fn piece(&mut self) -> Option<Bytes> {
        let log = self.log.lock();
        let first = log.kept.front()?.number;
        if self.line < first {
            (self.line, self.offset) = (first, 0);
        }
        loop {
            let line = log.kept.get(usize::try_from(self.line - first).ok()?)?;
            let text = &line.text[self.offset.min(line.text.len())..];
            let mut piece = BytesMut::new();
            if self.options.timestamps && self.offset == 0 && !text.is_empty() {
                piece.extend_from_slice(format!("{:.9} ", line.time).as_bytes());
            }
            piece.extend_from_slice(text);
            self.offset += text.len();
            if line.is_open() && self.line + 1 == log.next {
                if text.is_empty() {
                    return None;
                }
            } else {
                (self.line, self.offset) = (self.line + 1, 0);
                if text.is_empty() {
                    continue;
                }
            }
            piece.truncate(usize::try_from(self.left).unwrap_or(usize::MAX));
            self.left -= piece.len() as u64;
            return Some(piece.freeze());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn text(log: &Log, options: LogOptions) -> String {
        let mut stream = log.read(options);
        let mut text = String::new();
        while let Some(piece) = stream.next().await {
            text.push_str(std::str::from_utf8(&piece).unwrap());
        }
        text
    }

    fn three() -> Log {
        let log = Log::new();
        log.append(Channel::Stdout, b"one\ntw");
        log.append(Channel::Stdout, b"o\nthree\n");
        log
    }

    #[tokio::test]
    async fn lines_do_not_depend_on_the_size_of_writes() {
        assert_eq!(text(&three(), LogOptions::default()).await, "one\ntwo\nthree\n");
    }

    #[tokio::test]
    async fn tail_lines_and_limit_bytes_combine() {
        let options =
            LogOptions { tail_lines: Some(2), limit_bytes: Some(6), ..LogOptions::default() };
        assert_eq!(text(&three(), options).await, "two\nth");
        assert_eq!(
            text(&three(), LogOptions { tail_lines: Some(0), ..LogOptions::default() }).await,
            ""
        );
    }

    #[tokio::test]
    async fn a_follower_receives_new_lines_and_the_end() {
        let log = three();
        let options = LogOptions { follow: true, tail_lines: Some(1), ..LogOptions::default() };
        let mut stream = log.read(options);
        assert_eq!(stream.next().await.unwrap(), "three\n");
        log.append(Channel::Stderr, b"fo");
        assert_eq!(stream.next().await.unwrap(), "fo");
        log.append(Channel::Stderr, b"ur\n");
        assert_eq!(stream.next().await.unwrap(), "ur\n");
        log.close();
        assert_eq!(stream.next().await, None);
    }

    #[tokio::test]
    async fn timestamps_precede_each_line() {
        let options = LogOptions { timestamps: true, ..LogOptions::default() };
        for line in text(&three(), options).await.lines() {
            let (time, _) = line.split_once(' ').unwrap();
            assert!(
                time.parse::<Timestamp>().is_ok()
                    && time.len() == "2020-01-01T00:00:00.000000000Z".len()
            );
        }
    }

    #[tokio::test]
    async fn since_skips_older_lines() {
        let later = Timestamp::now() + SignedDuration::from_secs(60);
        assert_eq!(
            text(&three(), LogOptions { since: Some(later), ..LogOptions::default() }).await,
            ""
        );
    }

    #[tokio::test]
    async fn a_full_log_drops_its_oldest_lines() {
        let log = Log::new();
        let line = [[b'x'; 999].as_slice(), b"\n"].concat();
        for _ in 0..2 * CAPACITY / line.len() {
            log.append(Channel::Stdout, &line);
        }
        let kept = text(&log, LogOptions::default()).await.len();
        assert!(kept <= CAPACITY && kept > CAPACITY / 2, "{kept} bytes are kept");
    }

    #[tokio::test]
    async fn the_number_of_lines_is_bounded() {
        let log = Log::new();
        log.append(Channel::Stdout, &b"\n".repeat(MAX_LINES + 7));
        assert_eq!(log.lock().kept.len(), MAX_LINES);
        assert_eq!(log.lock().bytes, MAX_LINES);
    }
}
