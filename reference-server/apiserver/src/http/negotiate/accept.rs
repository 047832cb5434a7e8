//! The grammar of `Accept`: media ranges with parameters, in the order of the client's preference.

/// One media range of the header.
#[derive(Debug, PartialEq)]
pub(crate) struct Entry<'a> {
    /// The original text of `type/subtype`.
    pub(crate) media_range: &'a str,
    parameters: Vec<(&'a str, &'a str)>,
    quality: f32,
}

impl Entry<'_> {
    /// Returns the value of a parameter. An empty value counts as absent.
    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        let mut found =
            self.parameters.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| *value).filter(|value| !value.is_empty())
    }
}

/// Parses the lines of the header, by descending quality. Entries with `q=0` match no media type.
pub(super) fn parse<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<Entry<'a>> {
    let entries =
        lines.flat_map(|line| line.split(',')).map(str::trim).filter(|entry| !entry.is_empty());
    let mut entries: Vec<_> = entries.map(read).collect();
    entries.sort_by(|a, b| b.quality.total_cmp(&a.quality));
    entries
}

fn read(text: &str) -> Entry<'_> {
    let mut parts = text.split(';').map(str::trim);
    let media_range = parts.next().unwrap_or_default();
    let parameters: Vec<_> = parts
        .filter_map(|part| part.split_once('='))
        .map(|(name, value)| (name.trim(), value.trim().trim_matches('"')))
        .collect();
    let quality = parameters.iter().find(|(name, _)| name.eq_ignore_ascii_case("q"));
    let quality =
        quality.map_or(1.0, |(_, value)| value.parse().unwrap_or(1.0_f32).clamp(0.0, 1.0));
    // A rejected range matches nothing. It stays in the list, because an empty list would accept
    // everything.
    let media_range = if quality > 0.0 { media_range } else { "" };
    Entry { media_range, parameters, quality }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_by_quality_and_then_as_written() {
        let entries = parse(["a/a;q=0.5, b/b", "c/c ; q=0.7;v=v1, d/d"].into_iter());
        let order: Vec<_> = entries.iter().map(|entry| entry.media_range).collect();
        assert_eq!(order, ["b/b", "d/d", "c/c", "a/a"]);
        assert_eq!(entries[2].parameter("V"), Some("v1"));
    }

    #[test]
    fn a_rejected_range_matches_nothing() {
        let entries = parse(["application/json;q=0"].into_iter());
        assert_eq!(entries.len(), 1);
        assert_eq!(entries[0].media_range, "");
    }
}
