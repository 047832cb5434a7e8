//! Credentials to redact from reports.
//!
//! Credentials may change during a run: plugins log in again, token files are replaced. Therefore
//! each credential is recorded before its request is sent.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD};
use http::HeaderValue;

/// The secrets that were sent so far. Clones share them.
#[derive(Clone, Default)]
pub struct Secrets(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    headers: HashSet<HeaderValue>,
    forms: Arc<[String]>,
}

impl Secrets {
    /// Returns every form in which a server may echo a secret. The longest comes first, so that no
    /// part of it remains.
    pub fn forms(&self) -> Arc<[String]> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).forms.clone()
    }

    /// Records the secret of an Authorization header.
    pub(super) fn learn(&self, header: &HeaderValue) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !known.headers.contains(header) {
            known.headers.insert(header.clone());
            let learned = header.to_str().map(forms).unwrap_or_default();
            known.forms = known.forms.iter().cloned().chain(learned).collect::<Forms>().0;
        }
    }
}

impl FromIterator<String> for Secrets {
    /// Creates secrets with one form each.
    fn from_iter<I: IntoIterator<Item = String>>(secrets: I) -> Self {
        let forms = secrets.into_iter().collect::<Forms>().0;
        Self(Arc::new(Mutex::new(Known { headers: HashSet::new(), forms })))
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets(..)")
    }
}

/// Forms in order.
struct Forms(Arc<[String]>);

impl FromIterator<String> for Forms {
    fn from_iter<I: IntoIterator<Item = String>>(forms: I) -> Self {
        // An empty form would match everywhere.
        let mut forms: Vec<String> = forms.into_iter().filter(|form| !form.is_empty()).collect();
        forms.sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
        forms.dedup();
        Self(forms.into())
    }
}

/// Returns the forms of a value of a Secret: as it is, encoded in base64, and decoded.
pub fn data_forms(value: &str) -> Vec<String> {
    let decoded = BASE64_STANDARD.decode(value).ok();
    let decoded = decoded.and_then(|bytes| String::from_utf8(bytes).ok());
    let encoded = BASE64_STANDARD.encode(value);
    [value.to_owned(), encoded].into_iter().chain(decoded).filter(|form| !form.is_empty()).collect()
}

/// Returns the forms of a secret: plain, as subprotocol, encoded with or without its scheme, and
/// the password of basic auth.
fn forms(header: &str) -> Vec<String> {
    let (scheme, secret) = header.split_once(' ').unwrap_or(("", header));
    let mut forms = vec![secret.to_owned()];
    for text in [secret, header] {
        // Padding follows the redacted part.
        forms.push(BASE64_STANDARD_NO_PAD.encode(text));
        forms.push(BASE64_URL_SAFE_NO_PAD.encode(text));
    }
    if scheme.eq_ignore_ascii_case("basic")
        && let Some(text) =
            BASE64_STANDARD.decode(secret).ok().and_then(|bytes| String::from_utf8(bytes).ok())
    {
        forms.extend(text.split_once(':').map(|(_, password)| password.to_owned()));
        forms.push(text);
    }
    forms
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(
        "Bearer sesame?>",
        &["sesame?>", "c2VzYW1lPz4", "QmVhcmVyIHNlc2FtZT8-", "QmVhcmVyIHNlc2FtZT8+"]
    )]
    #[case("Basic bWU6c2VzYW1l", &["bWU6c2VzYW1l", "me:sesame", "sesame"])]
    #[case("sesame", &["sesame", "c2VzYW1l"])]
    fn a_secret_is_known_in_all_its_forms(#[case] header: &'static str, #[case] expected: &[&str]) {
        let secrets = Secrets::default();
        secrets.learn(&HeaderValue::from_static(header));
        let forms = secrets.forms();
        for form in expected {
            assert!(forms.iter().any(|known| known == form), "{form} is not among {forms:?}");
        }
        assert!(!forms.iter().any(|form| form == "me" || form == "Bearer"));
    }

    #[test]
    fn what_is_learned_later_is_known_beside_what_was_known_and_the_longest_stands_first() {
        let secrets: Secrets = ["", "a-token-of-before"].map(str::to_owned).into_iter().collect();
        let shared = secrets.clone();
        shared.learn(&HeaderValue::from_static("Bearer tick"));
        let after_one = secrets.forms();
        shared.learn(&HeaderValue::from_static("Bearer tick"));
        assert_eq!(secrets.forms(), after_one, "nothing new");
        shared.learn(&HeaderValue::from_static("Bearer tick-tock"));
        let forms = secrets.forms();
        for known in ["a-token-of-before", "tick", "tick-tock"] {
            assert!(forms.iter().any(|form| form == known), "{known} is not among {forms:?}");
        }
        assert!(forms.is_sorted_by_key(|form| std::cmp::Reverse(form.len())), "{forms:?}");
        assert!(!forms.iter().any(String::is_empty));
    }
}
