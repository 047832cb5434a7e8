//! Finds out which operations the target supports.

use std::sync::Arc;

use super::client::{Verb, Worker};
use super::history::{Action, Outcome, State};
use super::workload::Workload;

/// A verb that the run leaves out, and the reason.
pub(super) type LeftOut = (Verb, String);

/// Tries each verb once, and returns the verbs that the run leaves out. The run cannot test a
/// resource without creating and deleting it. The error is the reason.
pub(super) async fn unsupported(workload: &Arc<Workload>) -> Result<Vec<LeftOut>, String> {
    let mut worker = Worker::new(workload, 0, 0, &[]);
    let name = workload.names[0].clone();
    let mut known = create(workload, &mut worker).await?;
    // Later, a controller could already have removed the object.
    must_go_at_once(workload, &name).await?;
    let mut without = Vec::new();
    for verb in Verb::OPTIONAL {
        let action = worker.action(verb, 0, Some(&known));
        let words = action.verb();
        match workload.perform(0, action).await.outcome {
            // With 404, the checks judge the response, because the object exists.
            Outcome::Rejected(code, reason) if code != 404 => {
                let why = format!("{words}, which the server rejects with {code} {reason}");
                without.push((verb, why));
            }
            Outcome::Object(state) => known = state,
            Outcome::Deleted(_) => {
                must_go_at_once(workload, &name).await?;
                // If the object still exists, the create fails. The checks then judge the delete.
                known = create(workload, &mut worker).await.unwrap_or(known);
            }
            Outcome::Rejected(..) | Outcome::Listed(..) | Outcome::Unknown(_) => {}
        }
    }
    delete(workload, &name).await?;
    if creates_by_update(workload, &mut worker).await {
        let why = "PUT, with which the server creates absent objects".to_owned();
        without.retain(|(verb, _)| !matches!(verb, Verb::Update | Verb::UpdateAny));
        without.extend([(Verb::Update, why.clone()), (Verb::UpdateAny, why)]);
        delete(workload, &name).await?;
    }
    Ok(without)
}

/// Creates the first object.
async fn create(workload: &Workload, worker: &mut Worker) -> Result<State, String> {
    let action = worker.action(Verb::Create, 0, None);
    match workload.perform(0, action).await.outcome {
        Outcome::Object(state) => Ok(state),
        Outcome::Rejected(code, reason) => Err(format!("a create returns {code} {reason}")),
        Outcome::Unknown(why) => Err(format!("a create got no response: {why}")),
        Outcome::Deleted(_) | Outcome::Listed(..) => Err("a create made nothing".to_owned()),
    }
}

/// Deletes the object, which must be gone afterwards.
async fn delete(workload: &Workload, name: &str) -> Result<(), String> {
    must_go_at_once(workload, name).await?;
    let deleted = workload.perform(0, Action::Delete(name.to_owned(), None)).await;
    match deleted.outcome {
        Outcome::Rejected(code, reason) if code != 404 => {
            return Err(format!("a delete returns {code} {reason}"));
        }
        _ => {}
    }
    must_go_at_once(workload, name).await
}

/// Returns an error if the object exists and something keeps it after its deletion.
async fn must_go_at_once(workload: &Workload, name: &str) -> Result<(), String> {
    if workload.outlives_deletion(name).await {
        return Err("a delete does not remove the object at once".to_owned());
    }
    Ok(())
}

/// Kinds whose absent objects a PUT never creates. For others, the conventions leave it open.
const FOUND_BEFORE_UPDATE: [&str; 2] = ["/configmaps", "/secrets"];

/// Reports whether a PUT creates the absent object, and may do so.
async fn creates_by_update(workload: &Workload, worker: &mut Worker) -> bool {
    if FOUND_BEFORE_UPDATE.iter().any(|plural| workload.collection.ends_with(plural)) {
        return false;
    }
    let update = worker.action(Verb::UpdateAny, 0, None);
    matches!(workload.perform(0, update).await.outcome, Outcome::Object(_))
}
