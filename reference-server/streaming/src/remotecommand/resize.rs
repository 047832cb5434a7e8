//! Terminal sizes: a stream of JSON objects, which may be split anywhere.

use serde_json::Value;

use super::TerminalSize;

/// The most bytes of an incomplete object.
const MAX_PENDING: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct SizeParser {
    pending: Vec<u8>,
}

impl SizeParser {
    /// Adds bytes, and returns the sizes that they complete. Invalid JSON is dropped.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<TerminalSize> {
        self.pending.extend_from_slice(bytes);
        let mut values = serde_json::Deserializer::from_slice(&self.pending).into_iter::<Value>();
        let (mut sizes, mut read, mut broken) = (Vec::new(), 0, false);
        while let Some(value) = values.next() {
            match value {
                Ok(value) => {
                    sizes.extend(size(&value));
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

/// Go ignores the case of field names, so this function does too.
fn size(value: &Value) -> Option<TerminalSize> {
    let side = |name: &str| {
        let mut fields = value.as_object()?.iter();
        let (_, value) = fields.find(|(field, _)| field.eq_ignore_ascii_case(name))?;
        u16::try_from(value.as_u64()?).ok()
    };
    let (width, height) = (side("Width").unwrap_or_default(), side("Height").unwrap_or_default());
    if width == 0 && height == 0 {
        return None;
    }
    Some(TerminalSize { width, height })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_may_be_whole_split_or_joined() {
        let mut parser = SizeParser::default();
        let mut push = |text: &str| {
            let sizes = parser.push(text.as_bytes());
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
    fn an_incomplete_object_may_have_4_kib() {
        for (length, expected) in [(4096, 1), (4097, 0)] {
            let mut parser = SizeParser::default();
            let start = format!("{:length$}", r#"{"Width":1,"Height":2"#);
            assert_eq!(parser.push(start.as_bytes()), []);
            assert_eq!(parser.push(b"}").len(), expected, "{length}");
        }
    }
}
