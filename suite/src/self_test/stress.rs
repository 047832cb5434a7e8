//! `kubeproof stress` against servers with one fault each: it must find the fault without cases.

use std::time::Duration;

use kubeproof_cases::Catalogue;
use kubeproof_harness::generated::stress::{Failure, StressOptions, stress};
use kubeproof_harness::plan::{RunOptions, SubjectArgument};
use kubeproof_reference_server::{Config, Fault, Faults, Variations};
use tokio_util::sync::CancellationToken;

use super::{Bundled, LONG_HISTORY, SelfTestError};

/// The faults that `kubeproof stress` finds: lost writes, stale reads, shared versions, lists that
/// mix states, and watches that lose, repeat or change events.
pub const FAULTS: [Fault; 24] = [
    Fault::ContinueReadsLatest,
    Fault::ContinueSkipsAnObject,
    Fault::CreateOverwrites,
    Fault::GetByPrefix,
    Fault::GetLags,
    Fault::LimitOffByOne,
    Fault::ListLags,
    Fault::LostUpdate,
    Fault::ModifiedIsAdded,
    Fault::PutCreates,
    Fault::StaleWriteAccepted,
    Fault::UidChangesOnUpdate,
    Fault::UidReused,
    Fault::VersionMissing,
    Fault::VersionPreconditionIgnored,
    Fault::VersionsShared,
    Fault::WatchDeletedIsBare,
    Fault::WatchDeletionsInARow,
    Fault::WatchDoublesAnEvent,
    Fault::WatchLosesAnEvent,
    Fault::WatchLosesUnderLoad,
    Fault::WatchReplaysItsVersion,
    Fault::WatchSkipsFirstEvent,
    Fault::CreateStoresNothing,
];

/// Time for a server. A fault ends the run in its first rounds.
const DURATION: Duration = Duration::from_secs(20);

/// Time for a late event, which many servers share the machine for.
const STALL: Duration = Duration::from_secs(8);

const CLIENTS: usize = 4;

const OBJECTS: usize = 4;

/// Stresses a server with one fault. Returns what was found.
pub async fn row(catalogue: &Catalogue, fault: Fault) -> Result<Option<Failure>, SelfTestError> {
    let config = Config { faults: Faults::none().with(fault), ..Config::default() };
    found(catalogue, config, usual(), DURATION).await
}

/// Stresses one resource of a server without faults. Returns what was found.
pub async fn subject_alone(
    catalogue: &Catalogue,
    subject: SubjectArgument,
    duration: Duration,
) -> Result<Option<Failure>, SelfTestError> {
    found(catalogue, Config::default(), vec![subject], duration).await
}

/// Stresses a server that varies as the conventions permit. Returns what was found.
pub async fn variation(
    catalogue: &Catalogue,
    variations: Variations,
    duration: Duration,
) -> Result<Option<Failure>, SelfTestError> {
    found(catalogue, Config { variations, ..Config::default() }, usual(), duration).await
}

fn usual() -> Vec<SubjectArgument> {
    ["configmaps.v1".parse()].into_iter().filter_map(Result::ok).collect()
}

async fn found(
    catalogue: &Catalogue,
    config: Config,
    subjects: Vec<SubjectArgument>,
    duration: Duration,
) -> Result<Option<Failure>, SelfTestError> {
    let server = Bundled::start(Config { history: LONG_HISTORY, ..config }).await?;
    let options = StressOptions {
        run: RunOptions { subjects, seed: 1, ..RunOptions::default() },
        clients: CLIENTS,
        objects: OBJECTS,
        duration,
        stall: STALL,
        restart_command: None,
    };
    let report = stress(catalogue, &server.client, &options, &CancellationToken::new()).await;
    server.stop().await;
    Ok(report?.failure)
}
