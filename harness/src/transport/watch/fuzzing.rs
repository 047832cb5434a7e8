//! Splits bytes into documents for comparison.

use bytes::Bytes;

use super::documents::Documents;

/// Returns the documents, the rest, and whether a document was too long.
pub(crate) fn documents(pieces: &[&[u8]], max_document: usize) -> (Vec<Bytes>, Bytes, bool) {
    let mut documents = Documents::new(max_document, usize::MAX);
    let mut found = Vec::new();
    for piece in pieces {
        documents.push(piece);
        loop {
            match documents.next() {
                Ok(Some(document)) => found.push(document),
                Ok(None) => break,
                Err(_) => return (found, Bytes::new(), true),
            }
        }
    }
    (found, documents.rest(), false)
}
