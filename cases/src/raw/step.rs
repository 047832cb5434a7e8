//! One step of a case.

use schemars::JsonSchema;
use serde::Deserialize;

use super::check::RawCheck;
use super::flow::{RawExplore, RawLoop, RawSchema, RawTogether, RawUntil, RawUse};
use super::request::{RawGiven, RawRequest};
use super::stream::{
    RawFinish, RawFrame, RawOpenStream, RawPing, RawRaw, RawReceive, RawReset, RawResize, RawSend,
    RawStream,
};
use super::verb::{
    RawApply, RawCreate, RawDelete, RawDeleteCollection, RawGet, RawList, RawPatch, RawUpdate,
};
use super::watch::{RawAwait, RawClose, RawEnd, RawWatch};
use crate::yaml::Located;

/// One thing that happens: exactly one action, and `when` if it is conditional.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawStep {
    /// A CEL condition. If it is false, the step does not run, its checks are not judged, and its
    /// name is `null` in expressions.
    pub(crate) when: Option<Located<String>>,
    /// Creates an object that the case needs. Any status but 201 ends the case: as an error after
    /// 401, 403, 429 or 503, else as a failure.
    pub(crate) given: Option<Box<RawGiven>>,
    /// Sends GET for one object or document.
    pub(crate) get: Option<Box<RawGet>>,
    /// Sends GET for a collection.
    pub(crate) list: Option<Box<RawList>>,
    /// Sends POST.
    pub(crate) create: Option<Box<RawCreate>>,
    /// Sends PUT.
    pub(crate) update: Option<Box<RawUpdate>>,
    /// Sends PATCH with a merge patch, a JSON patch or a strategic merge patch.
    pub(crate) patch: Option<Box<RawPatch>>,
    /// Sends PATCH with an apply configuration (server-side apply).
    pub(crate) apply: Option<Box<RawApply>>,
    /// Sends DELETE for one object.
    pub(crate) delete: Option<Box<RawDelete>>,
    /// Sends DELETE for a collection.
    pub(crate) deletecollection: Option<Box<RawDeleteCollection>>,
    /// Sends any request. For methods, media types and bytes that verb steps cannot express.
    pub(crate) request: Option<Box<RawRequest>>,
    /// Opens a watch, which stays open while later steps run.
    pub(crate) watch: Option<Box<RawWatch>>,
    /// Reads events of an open watch.
    #[serde(rename = "await")]
    pub(crate) awaits: Option<Box<RawAwait>>,
    /// Reads a watch until the server closes it. A watch that the server rejected has ended.
    pub(crate) end: Option<Box<RawEnd>>,
    /// Closes a watch or a stream from the client's side.
    pub(crate) close: Option<Box<RawClose>>,
    /// Opens a stream over WebSocket or SPDY, which stays open while later steps run. The step is a
    /// check `ID-opens`, and `ID-framing` fails if the server breaks the protocol later on.
    pub(crate) stream: Option<Box<RawStream>>,
    /// Opens one more SPDY stream on an open connection.
    #[serde(rename = "open-stream")]
    pub(crate) open_stream: Option<Box<RawOpenStream>>,
    /// Sends data on a channel of a stream.
    pub(crate) send: Option<Box<RawSend>>,
    /// Sends the size of the terminal.
    pub(crate) resize: Option<Box<RawResize>>,
    /// Sends a ping.
    pub(crate) ping: Option<Box<RawPing>>,
    /// Sends `RST_STREAM` for a channel. SPDY only.
    pub(crate) reset: Option<Box<RawReset>>,
    /// Sends one WebSocket frame, valid or not.
    pub(crate) frame: Option<Box<RawFrame>>,
    /// Sends bytes below all framing.
    pub(crate) raw: Option<Box<RawRaw>>,
    /// Reads a stream until something has arrived. The step is a check.
    pub(crate) receive: Option<Box<RawReceive>>,
    /// Reads a stream until the server ends it. The step is a check.
    pub(crate) finish: Option<Box<RawFinish>>,
    /// Runs iterations of steps at the same time.
    pub(crate) concurrently: Option<Box<RawLoop>>,
    /// Runs iterations of steps one after another.
    pub(crate) repeat: Option<Box<RawLoop>>,
    /// Runs different steps at the same time.
    pub(crate) together: Option<Box<RawTogether>>,
    /// Repeats steps until a condition holds. The step is a check.
    pub(crate) until: Option<Box<RawUntil>>,
    /// Runs the steps of a fragment: its name, or its name and parameters.
    #[serde(rename = "use")]
    pub(crate) uses: Option<RawUse>,
    /// Judges the published API by design rules.
    pub(crate) schema: Option<Box<RawSchema>>,
    /// Checks a property with objects that the run generates from the schema of the subject. The
    /// step is a check.
    pub(crate) explore: Option<Box<RawExplore>>,
    /// Judges earlier exchanges by CEL.
    pub(crate) expect: Option<Vec<Located<RawCheck>>>,
}

impl RawStep {
    /// The names of the actions that the step has; a correct step has one.
    pub(crate) fn actions(&self) -> Vec<&'static str> {
        let all = [
            ("given", self.given.is_some()),
            ("get", self.get.is_some()),
            ("list", self.list.is_some()),
            ("create", self.create.is_some()),
            ("update", self.update.is_some()),
            ("patch", self.patch.is_some()),
            ("apply", self.apply.is_some()),
            ("delete", self.delete.is_some()),
            ("deletecollection", self.deletecollection.is_some()),
            ("request", self.request.is_some()),
            ("watch", self.watch.is_some()),
            ("await", self.awaits.is_some()),
            ("end", self.end.is_some()),
            ("close", self.close.is_some()),
            ("stream", self.stream.is_some()),
            ("open-stream", self.open_stream.is_some()),
            ("send", self.send.is_some()),
            ("resize", self.resize.is_some()),
            ("ping", self.ping.is_some()),
            ("reset", self.reset.is_some()),
            ("frame", self.frame.is_some()),
            ("raw", self.raw.is_some()),
            ("receive", self.receive.is_some()),
            ("finish", self.finish.is_some()),
            ("concurrently", self.concurrently.is_some()),
            ("repeat", self.repeat.is_some()),
            ("together", self.together.is_some()),
            ("until", self.until.is_some()),
            ("use", self.uses.is_some()),
            ("schema", self.schema.is_some()),
            ("explore", self.explore.is_some()),
            ("expect", self.expect.is_some()),
        ];
        all.into_iter().filter(|(_, is_there)| *is_there).map(|(name, _)| name).collect()
    }
}
