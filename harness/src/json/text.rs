//! Strings: escapes, control characters, surrogates.

/// The flaw of a string, and its offset after the opening quote.
pub(super) struct Flaw {
    pub(super) message: String,
    pub(super) offset: usize,
}

/// Reads a string after its opening quote. Returns it with its length, including the closing quote.
pub(super) fn read(text: &str) -> Result<(String, usize), Flaw> {
    let flaw = |message: &str, offset| Flaw { message: message.to_owned(), offset };
    let mut out = String::new();
    let mut at = 0;
    loop {
        let rest = &text[at..];
        // Bytes below 0x80 are whole characters in UTF-8.
        let special = rest.bytes().position(|b| matches!(b, b'"' | b'\\' | 0..0x20));
        let plain = special.unwrap_or(rest.len());
        out.push_str(&rest[..plain]);
        at += plain;
        match rest.as_bytes().get(plain) {
            Some(b'"') => return Ok((out, at + 1)),
            Some(b'\\') => {
                let (c, length) =
                    escape(&rest[plain..]).map_err(|message| Flaw { message, offset: at })?;
                out.push(c);
                at += length;
            }
            Some(control) => {
                return Err(Flaw {
                    message: format!("control character 0x{control:02x} in a string"),
                    offset: at,
                });
            }
            None => return Err(flaw("the text ends inside a string", at)),
        }
    }
}

/// Returns the character of an escape, and the length of the escape.
fn escape(text: &str) -> Result<(char, usize), String> {
    let c = match text.as_bytes().get(1) {
        Some(b'"') => '"',
        Some(b'\\') => '\\',
        Some(b'/') => '/',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{C}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') => return unicode_escape(text),
        _ => return Err("unknown escape in a string".to_owned()),
    };
    Ok((c, 2))
}

fn unicode_escape(text: &str) -> Result<(char, usize), String> {
    let unit = |at: usize| {
        let digits = text.get(at..at + 4).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()))?;
        u32::from_str_radix(digits, 16).ok()
    };
    let high = unit(2).ok_or("\\u without four hexadecimal digits")?;
    if let Some(c) = char::from_u32(high) {
        return Ok((c, 6));
    }
    let low = text.get(6..8).filter(|escape| *escape == "\\u").and_then(|_| unit(8));
    let low = low.filter(|low| (0xDC00..=0xDFFF).contains(low));
    // Two low surrogates add up to a value beyond all characters.
    let c = low.and_then(|low| char::from_u32(0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00)));
    c.map(|c| (c, 12)).ok_or_else(|| format!("lone surrogate \\u{high:04x}"))
}
