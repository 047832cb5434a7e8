//! `kubeproof explore` against servers with one fault each: it must find the fault without cases.

use std::time::Duration;

use kubeproof_cases::Catalogue;
use kubeproof_harness::generated::explore::{ExploreOptions, Failure, explore};
use kubeproof_harness::plan::RunOptions;
use kubeproof_reference_server::{Config, Fault, Faults, Variations};
use tokio_util::sync::CancellationToken;

use super::{Bundled, SHORT_HISTORY, SelfTestError};

/// The faults that `kubeproof explore` finds: values that reads change, objects that one verb
/// accepts and another rejects, patches with another result, and lists that differ.
pub const FAULTS: [Fault; 69] = [
    Fault::AnnotationsTrimmed,
    Fault::ResponsesWithoutKind,
    Fault::ApiVersionNotChecked,
    Fault::ApplyCreateReturnsOk,
    Fault::ApplyDryRunPersists,
    Fault::ApplyForceIgnored,
    Fault::ApplyKeepsGivenUp,
    Fault::ApplyNeverCreates,
    Fault::ApplyNoOpBumpsVersion,
    Fault::ApplyRejectsLastLabel,
    Fault::ApplyRemovesShared,
    Fault::ApplyReplaces,
    Fault::ContinueSkipsAnObject,
    Fault::CountsClamped,
    Fault::CreateReturnsTheRequest,
    Fault::CreateReturnsOk,
    Fault::DefaultsNotApplied,
    Fault::DefaultsOverrideValues,
    Fault::DryRunPersists,
    Fault::DryRunUnchecked,
    Fault::EmptyLabelsDropped,
    Fault::EnumIgnored,
    Fault::FieldPathLeafOnly,
    Fault::GenerationAlwaysBumped,
    Fault::GetLags,
    Fault::ItemsAbridged,
    Fault::ItemsCarryListKind,
    Fault::ItemsCarryListVersion,
    Fault::JsonPatchDashPrepends,
    Fault::JsonPatchNotAtomic,
    Fault::JsonPatchTestIgnored,
    Fault::KindNotChecked,
    Fault::LabelSelectorIgnored,
    Fault::LabelValuesOf64,
    Fault::LabelsNotValidated,
    Fault::LaterPagesWithoutAnnotations,
    Fault::LettersComposed,
    Fault::LimitOffByOne,
    Fault::LineEndsChanged,
    Fault::ListsWithoutManagedFields,
    Fault::MergePatchAppendsLists,
    Fault::MergePatchAsStrategic,
    Fault::MergePatchKeepsNull,
    Fault::MissingObjectAsServerError,
    Fault::MissingObjectIsNull,
    Fault::ModifiedIsAdded,
    Fault::NameMismatchAccepted,
    Fault::NamespaceMismatchAccepted,
    Fault::NamespaceNotStated,
    Fault::NoOpBumpsVersion,
    Fault::NullableIgnored,
    Fault::NullsKept,
    Fault::OneBasedIndexes,
    Fault::PatchedLabelsLowerCased,
    Fault::PruningTopLevelOnly,
    Fault::PutMerges,
    Fault::RequiredNotEnforced,
    Fault::SelectorsIgnored,
    Fault::StatusWithoutDetails,
    Fault::StrategicPatchAsMerge,
    Fault::StrategicReplacesKeyedLists,
    Fault::StrictValidationIgnored,
    Fault::UidChangesOnUpdate,
    Fault::UnknownFieldsKept,
    Fault::WatchDeletedIsBare,
    Fault::WatchDoublesAnEvent,
    Fault::WatchLosesAnEvent,
    Fault::WatchSkipsFirstEvent,
    Fault::WrongTypesAccepted,
];

/// The resources to explore: those that show most faults.
const SUBJECTS: [&str; 3] = ["specimens.v1.kubeproof.dev", "configmaps.v1", "deployments.v1.apps"];

/// Time for a server. The requests end a run before.
const TIMEOUT: Duration = Duration::from_mins(3);

/// The most requests for a server with a fault.
const REQUESTS: usize = 4_000;

/// Explores a server with one fault. Returns what was found.
pub async fn row(catalogue: &Catalogue, fault: Fault) -> Result<Option<Failure>, SelfTestError> {
    let config = Config { faults: Faults::none().with(fault), ..Config::default() };
    found(catalogue, config, REQUESTS).await
}

/// Explores a server that varies as the conventions permit. Returns what was found.
pub async fn variation(
    catalogue: &Catalogue,
    variations: Variations,
    requests: usize,
) -> Result<Option<Failure>, SelfTestError> {
    found(catalogue, Config { variations, ..Config::default() }, requests).await
}

async fn found(
    catalogue: &Catalogue,
    config: Config,
    max_requests: usize,
) -> Result<Option<Failure>, SelfTestError> {
    let server = Bundled::start(Config { history: SHORT_HISTORY, ..config }).await?;
    let subjects = SUBJECTS.iter().filter_map(|name| name.parse().ok()).collect();
    let options = ExploreOptions {
        run: RunOptions { subjects, seed: 1, ..RunOptions::default() },
        max_requests,
        timeout: TIMEOUT,
        shrink: 0,
    };
    let report = explore(catalogue, &server.client, &options, &CancellationToken::new()).await;
    server.stop().await;
    Ok(report?.failure)
}
