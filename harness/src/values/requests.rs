//! The requests of a case so far, by the variables that hold their responses.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter, Write as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::exchange::{Exchange, Sent};

/// Segments of a path that can belong to the id of a step: loops, their indexes, and the step.
const LONGEST_STEP: usize = 8;

/// The requests of a case. All scopes of the case share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Requests {
    all: Arc<Mutex<BTreeMap<String, Origin>>>,
    /// The prefix of step ids in this scope, such as `writers[3].`.
    prefix: String,
}

/// The exchange that a variable comes from.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    /// The step, as in the exchanges of a result: `writers[3].put`.
    pub step: String,
    /// The request.
    pub request: Arc<Sent>,
    /// The status code; 0 without a response.
    pub status: u16,
    /// The member of the response that the variable holds; `None` if it holds the whole exchange.
    pub member: Option<String>,
}

/// A place in a variable: `writers[3].put.body.metadata`.
#[derive(Clone, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Path(pub Vec<Segment>);

/// A part of a [`Path`].
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Segment {
    /// A variable, or a member of an object.
    Member(String),
    /// The index of an item.
    Index(usize),
}

impl Requests {
    /// Returns the same requests for a scope with this prefix.
    pub(crate) fn within(&self, prefix: &str) -> Self {
        Self { all: Arc::clone(&self.all), prefix: prefix.to_owned() }
    }

    /// Records the exchange of a step. `name` is its variable.
    pub(crate) fn add(&self, name: &str, exchange: &Exchange) {
        let step = format!("{}{name}", self.prefix);
        let origin = Origin {
            step: step.clone(),
            request: Arc::new(exchange.request.clone()),
            status: exchange.status(),
            member: None,
        };
        self.all().insert(step, origin);
    }

    /// Records that a variable holds a member of the response to a step.
    pub(crate) fn captured(&self, variable: &str, step: &str, pointer: &str) {
        let member = pointer.trim_start_matches('/').replace("~1", "/").replace('/', ".");
        let mut all = self.all();
        if let Some(origin) = all.get(&format!("{}{step}", self.prefix)) {
            let origin = Origin { member: Some(member), ..origin.clone() };
            all.insert(format!("{}{variable}", self.prefix), origin);
        }
    }

    /// Makes the steps of the last round of a loop available by the name of the loop.
    pub(crate) fn last_round(&self, name: &str, round: usize) {
        let from = format!("{}{name}[{round}].", self.prefix);
        let to = format!("{}{name}.", self.prefix);
        let mut all = self.all();
        let of_round: Vec<(String, Origin)> = all
            .range(from.clone()..)
            .take_while(|(step, _)| step.starts_with(&from))
            .map(|(step, origin)| (format!("{to}{}", &step[from.len()..]), origin.clone()))
            .collect();
        all.extend(of_round);
    }

    /// Returns the exchange that a place belongs to, and the rest of the path within it.
    pub(crate) fn find<'p>(&self, path: &'p Path) -> Option<(Origin, &'p [Segment])> {
        let all = self.all();
        for length in (1..=path.0.len().min(LONGEST_STEP)).rev() {
            let name = Path(path.0[..length].to_vec()).to_string();
            let mut scope = self.prefix.as_str();
            loop {
                if let Some(origin) = all.get(&format!("{scope}{name}")) {
                    return Some((origin.clone(), &path.0[length..]));
                }
                let Some(inner) = scope.strip_suffix('.') else { break };
                scope = inner.rfind('.').map_or("", |at| &inner[..=at]);
            }
        }
        None
    }

    /// Returns the steps of a variable, for loops in the order of their ids.
    pub(crate) fn steps_of(&self, variable: &str) -> Vec<String> {
        let all = self.all();
        let name = format!("{}{variable}", self.prefix);
        let is_inside = |step: &str| {
            step.strip_prefix(&name).is_some_and(|rest| rest.is_empty() || rest.starts_with('['))
        };
        let inside = all.range(name.clone()..).take_while(|(step, _)| step.starts_with(&name));
        inside.filter(|(step, _)| is_inside(step)).map(|(_, origin)| origin.step.clone()).collect()
    }

    /// Returns the request of a step by its full id.
    pub(crate) fn of_step(&self, step: &str) -> Option<Arc<Sent>> {
        self.all().get(step).map(|origin| Arc::clone(&origin.request))
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Origin>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Path {
    /// Returns the path of a variable.
    pub(crate) fn of(variable: &str) -> Self {
        Self(vec![Segment::Member(variable.to_owned())])
    }

    /// Returns the path of a member.
    pub(crate) fn member(&self, name: &str) -> Self {
        let mut path = self.clone();
        path.0.push(Segment::Member(name.to_owned()));
        path
    }

    /// Returns the path of an item.
    pub(crate) fn item(&self, index: usize) -> Self {
        let mut path = self.clone();
        path.0.push(Segment::Index(index));
        path
    }
}

impl Display for Path {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&dotted(&self.0))
    }
}

/// Returns the segments of a JSON Pointer. Numbers are indexes.
pub(crate) fn segments(pointer: &str) -> Vec<Segment> {
    let part = |part: &str| match part.parse() {
        Ok(index) => Segment::Index(index),
        Err(_) => Segment::Member(part.replace("~1", "/").replace("~0", "~")),
    };
    pointer.split('/').skip(1).map(part).collect()
}

/// Returns segments as text: `spec.items[2].name`. Names with dots and slashes are in brackets.
pub(crate) fn dotted(segments: &[Segment]) -> String {
    let mut text = String::new();
    for segment in segments {
        match segment {
            Segment::Index(index) => _ = write!(text, "[{index}]"),
            Segment::Member(name) if name.contains(['.', '/']) => _ = write!(text, "[{name}]"),
            Segment::Member(name) => {
                if !text.is_empty() {
                    text.push('.');
                }
                text.push_str(name);
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::exchange::Outcome;
    use crate::testing::{exchange, received};

    fn path(text: &str) -> Path {
        let segments = text.split('.').flat_map(|part| {
            let (name, index) = part.split_once('[').unwrap_or((part, ""));
            let index = index.trim_end_matches(']').parse().ok().map(Segment::Index);
            [Some(Segment::Member(name.to_owned())), index]
        });
        Path(segments.flatten().collect())
    }

    fn requests() -> Requests {
        let requests = Requests::default();
        let ok = exchange("/a", Outcome::Response(received(200)));
        requests.add("created", &ok);
        for prefix in ["writers[0].", "writers[1].", "settled[2]."] {
            requests.within(prefix).add("put", &ok);
        }
        requests.last_round("settled", 2);
        requests.captured("uid", "created", "/metadata/uid");
        requests
    }

    #[rstest]
    #[case::a_step("", "created.body.kind", "created", "body.kind")]
    #[case::an_iteration("", "writers[1].put.status", "writers[1].put", "status")]
    #[case::its_own_iteration("writers[0].", "put.status", "writers[0].put", "status")]
    #[case::an_outer_step("writers[0].", "created", "created", "")]
    #[case::the_last_round("", "settled.put.status", "settled[2].put", "status")]
    #[case::a_capture("writers[0].", "uid", "created", "")]
    fn a_place_belongs_to_a_step(
        #[case] scope: &str,
        #[case] place: &str,
        #[case] step: &str,
        #[case] rest: &str,
    ) {
        let place = path(place);
        let requests = requests().within(scope);
        let (origin, found) = requests.find(&place).expect("it belongs to a step");
        assert_eq!((origin.step.as_str(), dotted(found).as_str()), (step, rest));
        assert_eq!(origin.member.is_some(), place == path("uid"));
    }

    #[test]
    fn a_loop_has_the_steps_of_its_iterations() {
        assert_eq!(requests().steps_of("writers"), ["writers[0].put", "writers[1].put"]);
        assert_eq!(requests().steps_of("created"), ["created"]);
        assert!(requests().find(&path("name")).is_none());
    }

    #[test]
    fn names_with_dots_are_in_brackets() {
        let place = Path::of("a").member("annotations").member("example.com/x").item(2);
        assert_eq!(place.to_string(), "a.annotations[example.com/x][2]");
    }
}
