//! Repetitions such as `{2,3}`, and the limits of Go for them.

/// The maximum product of nested repetitions.
pub(super) const MAX_REPETITIONS: u64 = 1000;
/// The maximum number of nested parts.
pub(super) const MAX_DEPTH: u32 = 1000;
/// The maximum number of instructions of a compiled pattern.
pub(super) const MAX_SIZE: u64 = (128 << 20) / 40;

/// The numbers that limit a part of a pattern.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Part {
    /// The product of the nested repetitions.
    pub(super) repetitions: u64,
    pub(super) depth: u32,
    pub(super) size: u64,
}

impl Part {
    pub(super) const CHARACTER: Self = Self { repetitions: 0, depth: 1, size: 1 };

    pub(super) fn and(self, other: Self) -> Self {
        Self {
            repetitions: self.repetitions.max(other.repetitions),
            depth: self.depth.max(other.depth),
            size: self.size.saturating_add(other.size),
        }
    }

    /// Returns the numbers of the repeated part.
    pub(super) fn repeated(self, counts: Option<Repetition>) -> Self {
        let depth = self.depth + 1;
        let Some(counts) = counts else {
            return Part { depth, size: self.size.saturating_add(2), ..self };
        };
        let size = match counts {
            Repetition { min: 0, max: None, .. } => self.size.saturating_add(2),
            Repetition { min, max: None, .. } => {
                self.size.saturating_mul(min.into()).saturating_add(1)
            }
            Repetition { min, max: Some(max), .. } => self
                .size
                .saturating_mul(max.into())
                .saturating_add(u64::from(max.saturating_sub(min))),
        };
        let most = u64::from(counts.max.unwrap_or(counts.min));
        // A part that never occurs does not count.
        let repetitions = if counts.max == Some(0) {
            0
        } else {
            most.max(1).saturating_mul(self.repetitions.max(1))
        };
        Part { repetitions, depth, size: size.max(1) }
    }
}

/// How often a repetition operator repeats its argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Repetition {
    pub(super) min: u32,
    /// `None` means that there is no limit.
    pub(super) max: Option<u32>,
    /// The length of the operator in bytes.
    pub(super) length: usize,
}

/// Parses an operator such as `{2}`, `{2,}` or `{2,3}`. Other braces are characters. A number that
/// is too large is the largest one.
pub(super) fn repetition(text: &str) -> Option<Repetition> {
    let (bounds, _) = text.strip_prefix('{')?.split_once('}')?;
    let (low, high) = bounds.split_once(',').map_or((bounds, None), |(a, b)| (a, Some(b)));
    let number = |text: &str| {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let is_plain = text.len() < 2 || !text.starts_with('0');
        (is_number && is_plain).then(|| text.parse().unwrap_or(u32::MAX))
    };
    let min = number(low)?;
    let max = match high {
        None => Some(min),
        Some("") => None,
        Some(high) => Some(number(high)?),
    };
    Some(Repetition { min, max, length: bounds.len() + 2 })
}
