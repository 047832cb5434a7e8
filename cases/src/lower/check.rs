//! Checks and their claims.

use std::collections::BTreeMap;
use std::ops::Range;

use super::{Lowering, first_line};
use crate::case::{Check, Claim, Deviation, Edition, Rejection};
use crate::pattern::TextPattern;
use crate::raw::forms::{Entries, HeaderExpectation, HeaderForm, OneOrMany};
use crate::raw::{Claims, RawCheck, RawDeviation, RawRejected};
use crate::yaml::Located;

/// The reasons that a v1 Status may give; the empty one is `Unknown` on the wire.
const REASONS: [&str; 21] = [
    "",
    "AlreadyExists",
    "BadRequest",
    "Conflict",
    "Expired",
    "Forbidden",
    "Gone",
    "InternalError",
    "Invalid",
    "MethodNotAllowed",
    "NotAcceptable",
    "NotFound",
    "RequestEntityTooLarge",
    "ServerTimeout",
    "ServiceUnavailable",
    "StoreReadError",
    "Timeout",
    "TooManyRequests",
    "Unauthorized",
    "Unknown",
    "UnsupportedMediaType",
];

/// What the checks judge.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Judged {
    /// The response of the step.
    Response,
    /// Earlier steps. Only expressions name the step that they judge.
    Earlier,
}

impl Lowering<'_> {
    pub(super) fn checks(&mut self, checks: &[Located<RawCheck>], judged: Judged) -> Vec<Check> {
        checks.iter().map(|check| self.check(check, judged)).collect()
    }

    fn check(&mut self, raw: &Located<RawCheck>, judged: Judged) -> Check {
        let (check, place) = (&raw.value, &raw.place);
        let outer = std::mem::take(&mut self.template_lets);
        self.check_id(&check.id);
        let requirements = self.judged_requirements(&check.requirements);
        let level = self.level_of(check.level.as_ref(), &requirements);
        let requirements = self.of_level_first(requirements, level);
        let claims = self.claims(check.claims(), judged);
        if claims.is_empty() && !has_claim(check.claims()) {
            self.error(&first_line(place), "cannot-fail", "this check expects nothing")
                .set_help("add `status`, `rejected`, `body`, `header`, `text`, `cel` or `anyOf`");
        }
        let editions = self.editions_of(&check.editions, &requirements, &check.id.place);
        let letter = self.strict_texts(&requirements, &editions);
        let deviation =
            check.deviation.as_ref().map(|deviation| self.deviation(deviation, letter, judged));
        let lets = self.take_lets();
        self.template_lets = outer;
        let has_cel = check.cel.is_some();
        let message = check.message.as_ref().and_then(|message| self.message(message, has_cel));
        Check {
            id: check.id.value.clone(),
            lets,
            level,
            requirements,
            editions,
            claims,
            deviation,
            means: check.means.clone(),
            message,
            span: self.source.span(place.start),
        }
    }

    /// The id of a check that the harness makes of its own, for what the case takes for granted.
    pub(super) fn implied_check(&mut self, id: &Located<String>) {
        self.check_id(id);
        self.judges_all(&id.place);
    }

    /// Counts a check and sees that its id is well formed and new.
    pub(super) fn check_id(&mut self, id: &Located<String>) {
        self.checks += 1;
        if !super::is_words(&id.value) {
            self.error(
                &id.place,
                "malformed-id",
                format!("`{}` is not a valid id of a check", id.value),
            )
            .set_help(
                "expected words of letters and digits joined by `-`, such as `names-the-object`",
            );
        }
        if let Some(first) = self.check_ids.get(&id.value).cloned() {
            let line = self.source.span(first.start).line;
            self.error(&id.place, "duplicate-id", format!("the id `{}` is used twice", id.value))
                .set_help(format!("line {line} has it, too; ids are unique in a case"));
        } else {
            self.check_ids.insert(id.value.clone(), id.place.clone());
        }
    }

    /// The requirements of a check; by default, those of the case.
    pub(super) fn judged_requirements(&mut self, named: &[Located<String>]) -> Vec<String> {
        if named.is_empty() {
            return self.requirements.clone();
        }
        named.iter().map(|id| self.part_of_case(id)).collect()
    }

    fn part_of_case(&mut self, id: &Located<String>) -> String {
        if !self.requirements.contains(&id.value) {
            let known = self.requirements.clone();
            self.error(
                &id.place,
                "unknown-requirement",
                format!("the case does not name the requirement `{}`", id.value),
            )
            .suggest_from(&id.value, known.iter().map(String::as_str));
        }
        id.value.clone()
    }

    /// The text of each edition, from the first requirement that it has.
    fn strict_texts(
        &self,
        requirements: &[String],
        editions: &[Edition],
    ) -> BTreeMap<Edition, String> {
        let catalogue = self.known.catalogue;
        let known: Vec<_> = requirements.iter().filter_map(|id| catalogue.get(id)).collect();
        let text_of = |edition: &Edition| {
            let text = known.iter().find_map(|requirement| requirement.text_of(*edition))?;
            Some((*edition, text.to_owned()))
        };
        editions.iter().filter_map(text_of).collect()
    }

    fn deviation(
        &mut self,
        raw: &Located<RawDeviation>,
        letter: BTreeMap<Edition, String>,
        judged: Judged,
    ) -> Deviation {
        if raw.value.because.trim().is_empty() {
            self.error(&first_line(&raw.place), "empty", "`because` is empty");
        }
        if !has_claim(raw.value.claims()) {
            self.error(&first_line(&raw.place), "cannot-fail", "this deviation accepts everything")
                .set_help("add what deployed servers return: `status`, `rejected`, `body`, ...");
        }
        Deviation {
            because: raw.value.because.clone(),
            letter,
            claims: self.claims(raw.value.claims(), judged),
        }
    }

    fn claims(&mut self, raw: Claims<'_>, judged: Judged) -> Vec<Claim> {
        if judged == Judged::Earlier {
            self.only_expressions(raw);
        }
        let mut claims = Vec::new();
        claims.extend(raw.status.map(|status| self.status(status)));
        claims.extend(raw.rejected.map(|rejected| Claim::Rejected(self.rejection(rejected))));
        claims.extend(raw.body.and_then(|body| self.pattern(body)).map(Claim::Body));
        if let Some(header) = raw.header {
            claims.extend(self.headers(header));
        }
        claims.extend(raw.text.map(|text| Claim::Text(self.regex(text))));
        claims.extend(raw.cel.and_then(|cel| self.condition(cel)).map(Claim::Cel));
        if let Some(any_of) = raw.any_of {
            if any_of.value.len() < 2 {
                self.error(
                    &first_line(&any_of.place),
                    "cannot-fail",
                    "`anyOf` takes at least two sets",
                )
                .set_help("write a single set beside the id of the check");
            }
            for set in &any_of.value {
                if !has_claim(set.value.claims()) {
                    self.error(&first_line(&set.place), "cannot-fail", "an empty set always holds");
                }
            }
            let sets = any_of.value.iter().map(|set| self.claims(set.value.claims(), judged));
            claims.push(Claim::AnyOf(sets.collect()));
        }
        claims
    }

    fn only_expressions(&mut self, raw: Claims<'_>) {
        let responses = [
            raw.status.map(|claim| &claim.place),
            raw.rejected.map(|claim| &claim.code.place),
            raw.body.map(|claim| &claim.0.place),
            raw.header.map(|claim| &claim.place),
            raw.text.map(|claim| &claim.place),
        ];
        for place in responses.into_iter().flatten() {
            self.error(&first_line(place), "no-response", "this step has no response to judge")
                .set_help("use `cel`, which names the step it means, as `created.status == 201`");
        }
    }

    fn status(&mut self, codes: &Located<OneOrMany<u16>>) -> Claim {
        Claim::Status(self.codes(codes, 100..600, "an HTTP code"))
    }

    fn codes(
        &mut self,
        codes: &Located<OneOrMany<u16>>,
        valid: Range<u16>,
        what: &str,
    ) -> Vec<u16> {
        if codes.value.0.is_empty() {
            self.error(&codes.place, "empty", format!("expected {what}, found an empty list"));
        }
        for code in &codes.value.0 {
            if !valid.contains(&code.value) {
                self.error(&code.place, "out-of-range", format!("{} is not {what}", code.value));
            }
        }
        codes.value.0.iter().map(|code| code.value).collect()
    }

    fn rejection(&mut self, raw: &RawRejected) -> Rejection {
        if raw.reason.value.0.is_empty() {
            self.error(&raw.reason.place, "empty", "expected a reason, found an empty list");
        }
        for reason in &raw.reason.value.0 {
            if !REASONS.contains(&reason.value.as_str()) {
                self.error(
                    &reason.place,
                    "unknown-reason",
                    format!("no rejection has the reason `{}`", reason.value),
                )
                .suggest_from(&reason.value, REASONS);
            }
        }
        Rejection {
            code: self.codes(&raw.code, 400..600, "the code of a rejection, 400 to 599"),
            reason: raw.reason.value.0.iter().map(|reason| reason.value.clone()).collect(),
            details: raw.details.as_ref().and_then(|details| self.pattern(details)),
            message: raw.message.as_ref().map(|message| self.regex(message)),
        }
    }

    fn headers(&mut self, raw: &Located<Entries<HeaderExpectation>>) -> Vec<Claim> {
        if raw.value.0.is_empty() {
            self.error(&first_line(&raw.place), "cannot-fail", "no header is named");
        }
        let entries = raw.value.0.iter();
        entries.filter_map(|(name, expected)| self.header(name, expected)).collect()
    }

    fn header(
        &mut self,
        name: &Located<String>,
        expected: &Located<HeaderExpectation>,
    ) -> Option<Claim> {
        let value = match &expected.value {
            HeaderExpectation::Value(value) => {
                let text = Located { value: value.clone(), place: expected.place.clone() };
                Some(TextPattern::Equal(self.template(&text)))
            }
            HeaderExpectation::Form(HeaderForm { matches: Some(regex), absent: None }) => {
                Some(self.regex(regex))
            }
            HeaderExpectation::Form(HeaderForm {
                matches: None,
                absent: Some(Located { value: true, .. }),
            }) => None,
            HeaderExpectation::Form(_) => {
                self.error(
                    &first_line(&name.place),
                    "malformed-header",
                    "expected a value, `{match: regex}` or `{absent: true}`",
                );
                return None;
            }
        };
        Some(Claim::Header { name: name.value.to_ascii_lowercase(), value })
    }
}

/// Returns whether there is any claim, valid or not.
fn has_claim(claims: Claims<'_>) -> bool {
    claims.status.is_some()
        || claims.rejected.is_some()
        || claims.body.is_some()
        || claims.header.is_some()
        || claims.text.is_some()
        || claims.cel.is_some()
        || claims.any_of.is_some()
}
