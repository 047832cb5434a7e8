//! Judges the published schemas by design rules. They are loaded once per run.

use kubeproof_cases::case::Schema;

use super::scope::{Flow, Scope};
use crate::schema;

impl Scope<'_> {
    pub(super) async fn schema(&mut self, step: &Schema) -> Flow {
        let session = self.session;
        let load = || schema::published(&session.client, self.deadline);
        let published = match session.published.get_or_try_init(load).await {
            Ok(published) => published,
            Err(error) => return Err(self.ended("schema", error.verdict(), error.to_string())),
        };
        let view = match &self.planned.subject {
            Some(subject) => published.view_of(step.of, &subject.served, &subject.kind),
            None => published.view(step.of),
        };
        let (judging, place) = (&session.judging, self.step("schema"));
        for check in step.expect.iter().filter(|check| check.editions.contains(&judging.edition)) {
            self.record.check(schema::judge(check, &view, judging.letter, &place, &|_| None));
        }
        Ok(())
    }
}
