//! What can be read off the steps of a case without running it.

use kubeproof_cases::case::{Body, Request, Step, Times};
use kubeproof_cases::stream::{Outbound, Payload, Sending};
use kubeproof_cases::template::{JsonTemplate, Part, Template};

use crate::fence::is_safe;

/// Every request of the steps, those inside loops included, in order.
pub(crate) fn requests(steps: &[Step]) -> Vec<&Request> {
    let mut found = Vec::new();
    walk(steps, &mut |step| match step {
        Step::Given(request) | Step::Request(request) => found.push(request),
        Step::Watch(watch) => found.push(&watch.request),
        Step::Stream(stream) => found.push(&stream.request),
        _ => {}
    });
    found
}

/// Whether a step sends anything but a read.
pub(crate) fn writes(steps: &[Step]) -> bool {
    requests(steps).iter().any(|request| !is_safe(&request.method))
}

/// Whether the steps wait for the server's clock, which moves in seconds: until it ends a watch, or until a time is past.
pub(crate) fn awaits_the_clock(steps: &[Step]) -> bool {
    let mut found = false;
    walk(steps, &mut |step| {
        found |= match step {
            Step::End(_) => true,
            Step::Stream(stream) => stream.request.query.iter().any(|(key, _)| key == "timeoutSeconds"),
            Step::Until(until) => until.condition.text.contains("parseTime"),
            _ => false,
        };
    });
    found
}

/// Whether a request or an expression reads the variable.
pub(crate) fn reads_variable(steps: &[Step], name: &str) -> bool {
    let in_requests = requests(steps).iter().any(|request| {
        let templates = [Some(&request.path), request.content_type.as_ref(), request.accept.as_ref()];
        let pairs = request.query.iter().chain(&request.headers).map(|(_, value)| value);
        templates.into_iter().flatten().chain(pairs).any(|template| reads(template, name))
            || match &request.body {
                Some(Body::Object(json) | Body::Json(json) | Body::Edit { merge: json, .. }) => {
                    reads_json(json, name)
                }
                Some(Body::Text(text)) => reads(text, name),
                None => false,
            }
    });
    let mut in_loops = false;
    walk(steps, &mut |step| {
        if let Step::Concurrently(the_loop) | Step::Repeat(the_loop) = step
            && let Times::Over { list, .. } = &the_loop.times
        {
            in_loops |= list.variables.iter().any(|variable| variable == name);
        }
    });
    walk(steps, &mut |step| {
        if let Step::Send(Sending { what, .. }) = step
            && let Outbound::Data { payload: Payload::Text(text), .. } = what
        {
            in_loops |= reads(text, name);
        }
    });
    in_requests || in_loops
}

fn reads(template: &Template, name: &str) -> bool {
    template.parts.iter().any(|part| matches!(part, Part::Variable(variable) if variable == name))
}

fn reads_json(json: &JsonTemplate, name: &str) -> bool {
    match json {
        JsonTemplate::Null | JsonTemplate::Bool(_) | JsonTemplate::Number(_) => false,
        JsonTemplate::String(text) => reads(text, name),
        JsonTemplate::Array(items) => items.iter().any(|item| reads_json(item, name)),
        JsonTemplate::Object(members) => {
            members.iter().any(|(key, value)| reads(key, name) || reads_json(value, name))
        }
    }
}

fn walk<'a>(steps: &'a [Step], see: &mut impl FnMut(&'a Step)) {
    for step in steps {
        see(step);
        match step {
            Step::Concurrently(inner) | Step::Repeat(inner) => walk(&inner.steps, see),
            Step::Until(until) => walk(&until.steps, see),
            Step::Together(together) => together.branches.iter().for_each(|branch| walk(branch, see)),
            Step::Given(_)
            | Step::Request(_)
            | Step::Watch(_)
            | Step::Await(_)
            | Step::End(_)
            | Step::Close(_)
            | Step::Stream(_)
            | Step::Create(_)
            | Step::Send(_)
            | Step::Receive(_)
            | Step::Finish(_)
            | Step::Schema(_)
            | Step::Expect(_) => {}
        }
    }
}
