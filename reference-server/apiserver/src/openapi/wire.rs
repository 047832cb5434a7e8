//! A writer for the protobuf wire format.

#[derive(Debug, Default)]
pub(super) struct Message(Vec<u8>);

const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const LENGTH: u64 = 2;

impl Message {
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    pub(super) fn string(&mut self, field: u64, text: &str) {
        self.bytes(field, text.as_bytes());
    }

    pub(super) fn message(&mut self, field: u64, message: &Self) {
        self.bytes(field, &message.0);
    }

    pub(super) fn boolean(&mut self, field: u64, value: bool) {
        self.varint(field << 3 | VARINT);
        self.varint(u64::from(value));
    }

    /// Writes an integer. A negative number takes ten bytes, as the format requires.
    pub(super) fn integer(&mut self, field: u64, value: i64) {
        self.varint(field << 3 | VARINT);
        self.varint(value.cast_unsigned());
    }

    pub(super) fn double(&mut self, field: u64, value: f64) {
        self.varint(field << 3 | FIXED64);
        self.0.extend(value.to_le_bytes());
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | LENGTH);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            // The low seven bits, and a flag for more bytes.
            self.0.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.0.push(value.to_le_bytes()[0]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_written_as_the_format_says() {
        let mut inner = Message::default();
        inner.integer(1, 150);
        let mut message = Message::default();
        message.string(2, "testing");
        message.message(3, &inner);
        message.boolean(4, true);
        message.double(31, 1.0);
        let expected = b"\x12\x07testing\x1a\x03\x08\x96\x01\x20\x01\xf9\x01\0\0\0\0\0\0\xf0\x3f";
        assert_eq!(message.into_bytes(), expected);
    }

    #[test]
    fn negative_numbers_fill_all_bits() {
        let mut message = Message::default();
        message.integer(1, -1);
        assert_eq!(message.into_bytes(), b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
    }
}
