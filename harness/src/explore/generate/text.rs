//! Texts that servers often change by mistake.

use rand::RngExt;

use super::Generator;

/// Texts with upper case, white space, Unicode, JSON, and what YAML takes for other types.
const TEXTS: [&str; 37] = [
    "",
    " ",
    "a",
    "Mixed Case",
    "  two leading, two trailing  ",
    "\ttab\n",
    "line 1\nline 2\r\nline 3",
    "trailing newline\n",
    "Grüße aus Köln",
    "e\u{301} is not é",
    "日本語のテキスト",
    "🚀👩‍👩‍👧‍👦",
    "שלום עולם",
    "İstanbul ﬀ ß ſ",
    "\u{a0}\u{2003}\u{200b}",
    "\u{2028}\u{2029}",
    "<a href=\"x\">&amp;</a>",
    "it's \"quoted\" \\ and \\n",
    "{\"b\": 1.50, \"A\": [true, null], \"a\": {\"x\": \"\\\"\"}}",
    "{\"kind\":\"Secret\",\"big\":12345678901234567890}\n",
    "[]",
    "{}",
    "null",
    "~",
    "true",
    "NO",
    "007",
    "1e3",
    "1.0",
    "0x1F",
    "2024-05-06",
    "- item",
    "key: value # comment",
    "/a/../b?c=d&e=%20+",
    "\u{feff}byte order mark",
    "\u{1}control\u{1b}",
    "$$(HOME) $$ $(PATH)",
];

/// Letters for texts of a given length: of one, two, three and four bytes.
const LETTERS: [char; 6] = ['x', 'Z', ' ', 'é', '語', '🚀'];

/// The length of long texts, in characters.
pub(super) const LONG: usize = 20_000;

impl Generator<'_> {
    /// Returns any text.
    pub(super) fn text(&mut self) -> String {
        match self.random.random_range(0..16) {
            0 => self.text_of(LONG),
            1 => {
                let length = self.random.random_range(1..300);
                self.text_of(length)
            }
            2 | 3 => {
                let (one, other) = (self.known_text(), self.known_text());
                format!("{one}{other}")
            }
            _ => self.known_text(),
        }
    }

    fn known_text(&mut self) -> String {
        self.one_of(&TEXTS).unwrap_or_default().to_owned()
    }

    /// Returns a text of this number of characters, or of the limit.
    pub(super) fn text_of(&mut self, length: usize) -> String {
        let letter = self.one_of(&LETTERS).unwrap_or('x');
        std::iter::repeat_n(letter, length.min(self.longest)).collect()
    }

    /// Returns a text within these lengths, often at a limit.
    pub(super) fn text_within(&mut self, least: usize, most: Option<usize>) -> String {
        let most = most.unwrap_or(LONG.max(least));
        match self.random.random_range(0..5) {
            0 => self.text_of(least),
            1 if most <= LONG => self.text_of(most),
            _ => {
                let text: String = self.text().chars().take(most).collect();
                let missing = least.saturating_sub(text.chars().count());
                text + &"y".repeat(missing)
            }
        }
    }

    /// Returns a text of letters and digits, with these other letters inside.
    pub(super) fn word(&mut self, length: usize, inner: &str, upper: bool) -> String {
        let ends = if upper { "abzAZ09" } else { "abz09" };
        let all: Vec<char> = ends.chars().chain(inner.chars()).collect();
        let ends: Vec<char> = ends.chars().collect();
        let letter = |place: usize| if place == 0 || place + 1 == length { &ends } else { &all };
        (0..length).filter_map(|place| self.one_of(letter(place))).collect()
    }
}
