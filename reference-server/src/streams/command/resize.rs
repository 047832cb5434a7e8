//! Terminal sizes: a stream of JSON objects, in whatever pieces they come.

use serde_json::Value;

use crate::runtime::TerminalSize;
use crate::{Fault, Faults};

/// How much of an object is kept that does not end.
const MAX_PENDING: usize = 4096;

/// Reads sizes.
#[derive(Debug, Default)]
pub(super) struct Sizes {
    pending: Vec<u8>,
}

impl Sizes {
    /// Adds bytes, and gives the sizes that they complete.
    pub(super) fn push(&mut self, bytes: &[u8], faults: Faults) -> Vec<TerminalSize> {
        if faults.on(Fault::ResizeIgnored) {
            return Vec::new();
        }
        self.pending.extend_from_slice(bytes);
        let mut values = serde_json::Deserializer::from_slice(&self.pending).into_iter::<Value>();
        let (mut sizes, mut read, mut broken) = (Vec::new(), 0, false);
        while let Some(value) = values.next() {
            match value {
                Ok(value) => {
                    sizes.extend(size(&value, faults));
                    read = values.byte_offset();
                }
                Err(error) => broken = !error.is_eof(),
            }
        }
        self.pending.drain(..read);
        if broken || self.pending.len() > MAX_PENDING {
            self.pending.clear();
        }
        sizes
    }
}

/// Names count in any case, as they do for everything that is written in Go.
fn size(value: &Value, faults: Faults) -> Option<TerminalSize> {
    let side = |name: &str| {
        let mut fields = value.as_object()?.iter();
        let (_, value) = fields.find(|(field, _)| field.eq_ignore_ascii_case(name))?;
        u16::try_from(value.as_u64()?).ok()
    };
    let (width, height) = (side("Width").unwrap_or_default(), side("Height").unwrap_or_default());
    if width == 0 && height == 0 {
        return None;
    }
    if faults.on(Fault::ResizeSwapsSides) {
        return Some(TerminalSize { width: height, height: width });
    }
    Some(TerminalSize { width, height })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_come_whole_in_parts_and_several_at_once() {
        let mut sizes = Sizes::default();
        let mut push = |text: &str| {
            let sizes = sizes.push(text.as_bytes(), Faults::none());
            sizes.into_iter().map(|size| (size.width, size.height)).collect::<Vec<_>>()
        };
        assert_eq!(push(r#"{"Width":120,"Height":40}"#), [(120, 40)]);
        assert_eq!(push("{\"width\":80,\"height\":24}\n"), [(80, 24)]);
        assert_eq!(push(r#"{"Width":1,"Height":2}{"Width":3,"Hei"#), [(1, 2)]);
        assert_eq!(push("ght\":4}"), [(3, 4)]);
        assert_eq!(push(r#"{"Width":0,"Height":0}{"Width":7}{"Height":7}"#), [(7, 0), (0, 7)]);
        assert_eq!(push("no json"), []);
        assert_eq!(push(r#"{"Width":5,"Height":6}"#), [(5, 6)]);
    }

    #[test]
    fn of_an_object_without_end_4_kibibytes_are_kept() {
        for (length, expected) in [(4096, 1), (4097, 0)] {
            let mut sizes = Sizes::default();
            let begin = format!("{:length$}", r#"{"Width":1,"Height":2"#);
            assert_eq!(sizes.push(begin.as_bytes(), Faults::none()), []);
            assert_eq!(sizes.push(b"}", Faults::none()).len(), expected, "{length}");
        }
    }
}
