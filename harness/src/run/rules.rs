//! Design rules over what the server publishes, which is read once in a run.

use kubeproof_cases::case::Schema;

use super::scope::{Flow, Scope};
use crate::schema;

impl Scope<'_> {
    pub(super) async fn schema(&mut self, step: &Schema) -> Flow {
        let session = self.session;
        let load = || schema::published(&session.client, self.deadline);
        let published = match session.published.get_or_try_init(load).await {
            Ok(published) => published,
            Err(error) => return Err(self.stuck("schema", error.to_string())),
        };
        let edition = session.judging.edition;
        for check in step.expect.iter().filter(|check| check.editions.contains(&edition)) {
            let place = self.step("schema");
            self.record.check(schema::judge(check, step.of, published, session.judging.letter, &place));
        }
        Ok(())
    }
}
