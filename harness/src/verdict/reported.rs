//! Defects that another case reports. A check that meets one judges the rest of its claims.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use kubeproof_cases::pattern::Pattern;
use serde_json::Value;

use super::pattern::{Mismatch, matches};
use crate::event::Symptom;
use crate::values::{Segment, Undefined, Values, segments};

/// Defects, each with the case that reports it.
pub(crate) type Reported = BTreeMap<Defect, String>;

/// A defect that many cases meet: the response lacks something, but the request works.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Defect {
    /// Objects or lists lack a member.
    MissingField(String),
    /// A kind of request succeeds with another status code than one of these.
    SuccessCode { request: String, expected: Vec<u16>, got: u16 },
}

impl Defect {
    /// Returns the defect behind a symptom. Other symptoms belong to a single case.
    pub(crate) fn of(symptom: &Symptom) -> Option<Self> {
        match symptom {
            Symptom::MissingField { field } => Some(Self::MissingField(of_object(field))),
            Symptom::StatusCode { request, expected, got } => {
                let is_success = |code: &u16| (200..300).contains(code);
                let (request, got) = (request.clone(), *got);
                let expected: Vec<u16> = expected.iter().copied().filter(is_success).collect();
                (is_success(&got) && !expected.is_empty()).then_some(Self::SuccessCode {
                    request,
                    expected,
                    got,
                })
            }
            Symptom::WrongField { .. }
            | Symptom::NoResponse { .. }
            | Symptom::BrokenFraming { .. }
            | Symptom::Setup { .. } => None,
        }
    }
}

/// Returns the path of a member in its object, without the list or event around it.
fn of_object(field: &str) -> String {
    let is_index = |name: &&str| name.is_empty() || name.bytes().all(|b| b.is_ascii_digit());
    let names: Vec<&str> =
        field.split(['/', '.', '[', ']']).filter(|name| !is_index(name)).collect();
    let start = names.iter().position(|name| !matches!(*name, "items" | "rows" | "object"));
    names[start.unwrap_or_default()..].join(".")
}

/// What a check may pass over, and what it met.
#[derive(Debug)]
pub(crate) struct Tolerance<'a> {
    reported: &'a Reported,
    /// The message of the first defect that the check met, and the case that reports it.
    met: RefCell<Option<(String, String)>>,
    /// True if something else held.
    judged: Cell<bool>,
}

impl<'a> Tolerance<'a> {
    pub(crate) fn new(reported: &'a Reported) -> Self {
        Self { reported, met: RefCell::default(), judged: Cell::default() }
    }

    /// Reports whether another case reports this symptom, and remembers it.
    pub(crate) fn covers(&self, symptom: Option<&Symptom>, message: &str) -> bool {
        let case = symptom.and_then(Defect::of).and_then(|defect| self.reported.get(&defect));
        let Some(case) = case else { return false };
        self.met.borrow_mut().get_or_insert_with(|| (message.to_owned(), case.clone()));
        true
    }

    /// Records that a claim held.
    pub(crate) fn held(&self) {
        self.judged.set(true);
    }

    /// Returns the first defect with its case, and whether something else held.
    pub(crate) fn met(self) -> Option<(String, String, bool)> {
        let (message, case) = self.met.into_inner()?;
        Some((message, case, self.judged.get()))
    }
}

/// Matches a value against a pattern, except for members that another case reports as missing.
pub(crate) fn matches_but_reported(
    pattern: &Pattern,
    actual: Option<&Value>,
    values: &Values,
    tolerance: &Tolerance<'_>,
) -> Result<Result<(), Mismatch>, Undefined> {
    let mut rest: Option<Pattern> = None;
    loop {
        let Err(mismatch) = matches(rest.as_ref().unwrap_or(pattern), actual, values)? else {
            if rest.as_ref().is_none_or(|rest| !is_empty(rest)) {
                tolerance.held();
            }
            return Ok(Ok(()));
        };
        let path = segments(&mismatch.at);
        let mut less = rest.take().unwrap_or_else(|| pattern.clone());
        if !tolerance.covers(Some(&mismatch.symptom()), &mismatch.in_words())
            || !remove(&mut less, &path, values)?
        {
            return Ok(Err(mismatch));
        }
        rest = Some(less);
    }
}

/// Removes the part of a pattern that judges a place. Returns false if the part is not separate.
fn remove(pattern: &mut Pattern, path: &[Segment], values: &Values) -> Result<bool, Undefined> {
    match (pattern, path) {
        (Pattern::Object(members), [Segment::Member(name), rest @ ..]) => {
            for at in 0..members.len() {
                if values.render(&members[at].0)? != *name {
                    continue;
                }
                if rest.is_empty() {
                    members.remove(at);
                    return Ok(true);
                }
                return remove(&mut members[at].1, rest, values);
            }
            Ok(false)
        }
        (Pattern::Array(items), [Segment::Index(at), rest @ ..]) if !rest.is_empty() => {
            items.get_mut(*at).map_or(Ok(false), |item| remove(item, rest, values))
        }
        (Pattern::Each(item), [Segment::Index(_), rest @ ..]) if !rest.is_empty() => {
            remove(item, rest, values)
        }
        _ => Ok(false),
    }
}

/// Reports whether a pattern judges nothing.
fn is_empty(pattern: &Pattern) -> bool {
    match pattern {
        Pattern::Object(members) => members.iter().all(|(_, pattern)| is_empty(pattern)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use kubeproof_cases::template::{JsonTemplate, Part, Template};
    use kubeproof_cases::yaml::Span;
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn text(text: &str) -> Template {
        Template { parts: vec![Part::Text(text.to_owned())], span: Span::default() }
    }

    fn object(members: Vec<(&str, Pattern)>) -> Pattern {
        Pattern::Object(members.into_iter().map(|(name, part)| (text(name), part)).collect())
    }

    fn metadata(name: &str) -> Pattern {
        let name = Pattern::Value(JsonTemplate::String(text(name)));
        object(vec![("metadata", object(vec![("uid", Pattern::Present), ("name", name)]))])
    }

    fn without_uid() -> Reported {
        let defect = Defect::MissingField("metadata.uid".to_owned());
        Reported::from([(defect, "a/judge".to_owned())])
    }

    #[rstest]
    #[case::the_rest_holds(metadata("a"), true)]
    #[case::the_rest_fails(metadata("b"), false)]
    #[case::another_member(object(vec![("spec", Pattern::Present)]), false)]
    fn the_rest_of_a_pattern_is_judged(#[case] pattern: Pattern, #[case] holds: bool) {
        let (reported, body) = (without_uid(), json!({"metadata": {"name": "a"}}));
        let tolerance = Tolerance::new(&reported);
        let matched = matches_but_reported(&pattern, Some(&body), &Values::new(), &tolerance);
        assert_eq!(matched.expect("no variables").is_ok(), holds);
        let expected = ("metadata.uid is missing".to_owned(), "a/judge".to_owned(), true);
        assert!(!holds || tolerance.met() == Some(expected));
    }

    #[test]
    fn items_and_events_are_judged_without_the_member() {
        let reported = without_uid();
        let list = json!({"items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "a"}}]});
        let pattern = object(vec![("items", Pattern::Each(Box::new(metadata("a"))))]);
        let tolerance = Tolerance::new(&reported);
        let matched = matches_but_reported(&pattern, Some(&list), &Values::new(), &tolerance);
        assert!(matched.expect("no variables").is_ok());
    }

    #[test]
    fn a_pattern_of_one_member_judges_nothing_else() {
        let reported = without_uid();
        let pattern = object(vec![("metadata", object(vec![("uid", Pattern::Present)]))]);
        let tolerance = Tolerance::new(&reported);
        let body = json!({"metadata": {}});
        let matched = matches_but_reported(&pattern, Some(&body), &Values::new(), &tolerance);
        assert!(matched.expect("no variables").is_ok());
        assert!(tolerance.met().is_some_and(|(_, _, holds)| !holds));
    }

    #[rstest]
    #[case(&[201], 200, true)]
    #[case(&[201, 409], 200, true)]
    #[case(&[409], 200, false)]
    #[case(&[201], 500, false)]
    fn a_rejection_is_no_shared_defect(
        #[case] expected: &[u16],
        #[case] got: u16,
        #[case] is_shared: bool,
    ) {
        let (request, expected) = ("create".to_owned(), expected.to_vec());
        let symptom = Symptom::StatusCode { request, expected, got };
        assert_eq!(Defect::of(&symptom).is_some(), is_shared);
    }

    #[test]
    fn lists_and_events_do_not_separate_members() {
        for field in ["metadata.uid", "items[2].metadata.uid", "items.metadata.uid"] {
            let found = Defect::of(&Symptom::MissingField { field: field.to_owned() });
            assert_eq!(found, Some(Defect::MissingField("metadata.uid".to_owned())), "{field}");
        }
    }
}
