//! Checks the subjects of the user before the cases run on them.

use std::sync::Arc;

use serde_json::json;

use super::subject::{Origin, Subject, SubjectArgument, SubjectError};
use crate::capability::{ProbeOptions, Requester, dry_create};

/// Checks that each template has the kind of its resource.
pub(super) fn check_kinds(
    subjects: &[Arc<Subject>],
    arguments: &[SubjectArgument],
) -> Result<(), SubjectError> {
    for (argument, subject) in given(subjects, arguments) {
        if let Some(kind) = argument.kind.as_ref().filter(|kind| **kind != subject.kind) {
            return Err(SubjectError::Kind {
                name: subject.name.to_string(),
                expected: subject.kind.clone(),
                found: kind.clone(),
            });
        }
    }
    Ok(())
}

/// Checks that the server accepts an object with only a name where there is no template. If it does
/// not, each case would fail for the same reason.
pub(super) async fn check_accepted(
    requester: &Requester<'_>,
    subjects: &[Arc<Subject>],
    arguments: &[SubjectArgument],
    options: &ProbeOptions<'_>,
) -> Result<(), SubjectError> {
    for (argument, subject) in given(subjects, arguments) {
        let is_made_up = subject.origin == Origin::User && subject.template == json!({});
        if is_made_up && argument.template.is_none() {
            accepts(requester, subject, options).await?;
        }
    }
    Ok(())
}

fn given<'a>(
    subjects: &'a [Arc<Subject>],
    arguments: &'a [SubjectArgument],
) -> impl Iterator<Item = (&'a SubjectArgument, &'a Subject)> {
    arguments.iter().filter_map(|argument| {
        let subject = subjects.iter().find(|subject| subject.name == argument.name)?;
        Some((argument, &**subject))
    })
}

/// Only a rejection for invalid content is decisive: cases judge all other responses.
async fn accepts(
    requester: &Requester<'_>,
    subject: &Subject,
    options: &ProbeOptions<'_>,
) -> Result<(), SubjectError> {
    let collection = subject.collection(options.home());
    if !subject.verbs.contains("create") || !options.may_send("POST", &collection) {
        return Ok(());
    }
    let object = subject.object(options.home(), options.probe_name);
    let exchange = dry_create(requester, &collection, &object).await;
    if exchange.status() == 422 {
        return Err(SubjectError::Rejected {
            name: subject.name.clone(),
            response: exchange.in_words(),
        });
    }
    Ok(())
}
