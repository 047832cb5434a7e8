//! Splits chunks with arbitrary boundaries into JSON documents, within limits.
//!
//! Kubernetes sends a newline after each event, and its clients do not need it. So a document ends
//! where its JSON ends. Text that is no JSON ends at the next newline, or at the first wrong byte.

use bytes::{Buf, Bytes, BytesMut};

use super::scanner::{Scanned, Scanner};

#[derive(Debug)]
pub(super) struct Documents {
    /// The incomplete document, without leading white space.
    buffer: BytesMut,
    /// The length of the scanned part of the buffer.
    scanned: usize,
    scanner: Scanner,
    total: usize,
    max_document: usize,
    max_total: usize,
}

/// A limit was exceeded.
#[derive(Debug, Eq, PartialEq, thiserror::Error)]
pub(super) enum Overrun {
    #[error("an event is longer than {0} bytes")]
    Document(usize),
    #[error("the watch is longer than {0} bytes")]
    Total(usize),
}

impl Documents {
    pub(super) fn new(max_document: usize, max_total: usize) -> Self {
        let (buffer, scanner) = (BytesMut::new(), Scanner::default());
        Self { buffer, scanned: 0, scanner, total: 0, max_document, max_total }
    }

    /// Adds a chunk. Its complete documents are returned before an error about the total.
    pub(super) fn push(&mut self, chunk: &[u8]) {
        self.total += chunk.len();
        self.buffer.extend_from_slice(chunk);
    }

    /// Returns the next complete document.
    pub(super) fn next(&mut self) -> Result<Option<Bytes>, Overrun> {
        if self.scanned == 0 && self.scanner.is_between() {
            let blank = self.buffer.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            self.buffer.advance(blank);
        }
        let unscanned = self.buffer.get(self.scanned..).unwrap_or_default();
        let end = match self.scanner.scan(unscanned) {
            Scanned::Incomplete => None,
            Scanned::End(length) => Some(self.scanned + length),
        };
        let length = end.unwrap_or(self.buffer.len());
        if length > self.max_document {
            return Err(Overrun::Document(self.max_document));
        }
        let Some(end) = end else {
            self.scanned = length;
            return if self.total > self.max_total {
                Err(Overrun::Total(self.max_total))
            } else {
                Ok(None)
            };
        };
        self.scanned = 0;
        Ok(Some(self.buffer.split_to(end).freeze()))
    }

    /// Returns the length of the incomplete document.
    pub(super) fn unfinished(&self) -> usize {
        self.buffer.len()
    }

    /// Returns the bytes after the last complete document.
    pub(super) fn rest(self) -> Bytes {
        self.buffer.freeze()
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// Returns the documents for this chunk size, the error that ended them, and the rest.
    fn read(
        text: &str,
        piece: usize,
        max_document: usize,
        max_total: usize,
    ) -> (Vec<String>, Option<Overrun>, String) {
        let mut documents = Documents::new(max_document, max_total);
        let mut found = Vec::new();
        let as_text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        for chunk in text.as_bytes().chunks(piece) {
            documents.push(chunk);
            loop {
                match documents.next() {
                    Ok(Some(document)) => found.push(as_text(&document)),
                    Ok(None) => break,
                    Err(overrun) => return (found, Some(overrun), String::new()),
                }
            }
        }
        (found, None, as_text(&documents.rest()))
    }

    #[rstest]
    #[case::lines("{\"a\":1}\n\n{\"b\":2}\r\n{\"c\"", &["{\"a\":1}", "{\"b\":2}"], "{\"c\"")]
    #[case::concatenated("{\"a\":{}}{\"b\":[1]}", &["{\"a\":{}}", "{\"b\":[1]}"], "")]
    #[case::indented("{\n  \"a\": 1\n}\n{}", &["{\n  \"a\": 1\n}", "{}"], "")]
    #[case::brackets_in_strings(
        "{\"a\":\"}{\\\"]\"}{\"b\\\\\":1}",
        &["{\"a\":\"}{\\\"]\"}", "{\"b\\\\\":1}"],
        ""
    )]
    #[case::other_characters("{\"é\":\"}\u{2028}\"}{}", &["{\"é\":\"}\u{2028}\"}", "{}"], "")]
    #[case::escapes("{\"a\":\"\\u007d\\\\\"}{}", &["{\"a\":\"\\u007d\\\\\"}", "{}"], "")]
    #[case::no_json("watch me\n{}", &["watch me", "{}"], "")]
    #[case::numbers("1 2\n3", &["1 2"], "3")]
    #[case::wrong_byte("{\"a\":1]{}", &["{\"a\":1]", "{}"], "")]
    #[case::missing_bracket("{\"a\":1\n{\"b\":2}\n", &["{\"a\":1\n{", "\"b\":2}"], "")]
    #[case::newline_in_a_string("{\"a\":\"x\n{}", &["{\"a\":\"x\n", "{}"], "")]
    fn documents_are_whole_for_any_chunks(
        #[case] text: &str,
        #[case] expected: &[&str],
        #[case] rest: &str,
        #[values(1, 2, 3, 5, 100)] piece: usize,
    ) {
        let (documents, overrun, left) = read(text, piece, 100, 100);
        assert_eq!(documents, expected);
        assert_eq!((overrun, left.as_str()), (None, rest));
    }

    #[rstest]
    fn a_document_may_be_as_long_as_the_limit(#[values(1, 2, 100)] piece: usize) {
        let five = "[123]".to_owned();
        assert_eq!(read("[123] [12", piece, 5, 100), (vec![five], None, "[12".to_owned()));
        assert_eq!(read("[12]\n[1234]", piece, 5, 100).1, Some(Overrun::Document(5)));
        assert_eq!(read("{\"a\":\"xx", piece, 5, 100).1, Some(Overrun::Document(5)));
        assert_eq!(read("123456\n", piece, 5, 100).1, Some(Overrun::Document(5)));
    }

    #[test]
    fn the_last_documents_are_returned_before_the_limit_of_the_watch() {
        let complete = |found: &[&str]| found.iter().map(|one| (*one).to_owned()).collect();
        assert_eq!(read("[] {}\n", 3, 5, 6), (complete(&["[]", "{}"]), None, String::new()));
        let (documents, overrun, _) = read("[]\n{}\n7", 7, 5, 6);
        assert_eq!((documents, overrun), (complete(&["[]", "{}"]), Some(Overrun::Total(6))));
    }

    /// The reader reserves memory for incomplete documents.
    #[test]
    fn the_length_of_an_incomplete_document_is_known() {
        let mut documents = Documents::new(100, 100);
        documents.push(b"{}\n[1");
        assert!(documents.next().is_ok_and(|document| document.is_some()));
        assert!(documents.next().is_ok_and(|document| document.is_none()));
        assert_eq!(documents.unfinished(), 2);
        documents.push(b"]\n");
        assert!(documents.next().is_ok_and(|document| document.is_some()));
        assert!(documents.next().is_ok_and(|document| document.is_none()));
        assert_eq!(documents.unfinished(), 0);
    }
}
