//! What can be read off the steps of a case without running it.

use std::collections::BTreeSet;

use kubeproof_cases::case::{Body, Capability, Case, Claim, Request, Step, Times};
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

/// What a case needs of the target: what its file says, and what its requests show.
pub(crate) fn needs(case: &Case) -> BTreeSet<Capability> {
    let mut needs = implied(&case.steps);
    needs.extend(&case.needs);
    needs
}

/// What the requests need of the target without the file saying so: media types and selectors that it may be without. A
/// request that would have the refusal for an answer needs nothing.
pub(crate) fn implied(steps: &[Step]) -> BTreeSet<Capability> {
    let mut needs = BTreeSet::new();
    for request in requests(steps) {
        let patch = request.content_type.as_ref().and_then(literal).and_then(|media_type| match media_type {
            "application/json-patch+json" => Some(Capability::JsonPatch),
            "application/merge-patch+json" => Some(Capability::MergePatch),
            "application/strategic-merge-patch+json" => Some(Capability::StrategicMergePatch),
            "application/apply-patch+yaml" => Some(Capability::ServerSideApply),
            _ => None,
        });
        needs.extend(patch.filter(|_| !takes(request, 415)));
        needs.extend(stream(&request.path));
        let in_path = |part: &Part| matches!(part, Part::Text(text) if text.contains("fieldSelector="));
        let selects = request.query.iter().any(|(key, _)| key == "fieldSelector");
        if (selects || request.path.parts.iter().any(in_path)) && !takes(request, 400) {
            needs.insert(Capability::FieldSelectors);
        }
    }
    needs
}

/// The subresource that a path leads into a pod by.
fn stream(path: &Template) -> Option<Capability> {
    let text: String = path
        .parts
        .iter()
        .map(|part| match part {
            Part::Text(text) => text.as_str(),
            Part::Variable(name) if name == "pod.path" => "/pods/x",
            Part::Variable(_) | Part::Fill(_) | Part::Name(_) => "*",
        })
        .collect();
    let rest = ["/pods/", "/services/"].iter().find_map(|of| text.split_once(of))?.1;
    let subresource = rest.split('/').nth(1)?;
    let end = subresource.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(subresource.len());
    match &subresource[..end] {
        "attach" => Some(Capability::Attach),
        "exec" => Some(Capability::Exec),
        "log" => Some(Capability::Log),
        "portforward" => Some(Capability::Portforward),
        "proxy" => Some(Capability::Proxy),
        _ => None,
    }
}

/// The text of a template without variables.
fn literal(template: &Template) -> Option<&str> {
    match template.parts.as_slice() {
        [Part::Text(text)] => Some(text),
        _ => None,
    }
}

/// Whether an answer with this code is one that the checks of a request take.
fn takes(request: &Request, code: u16) -> bool {
    fn any(claims: &[Claim], code: u16) -> bool {
        claims.iter().any(|claim| match claim {
            Claim::Status(codes) => codes.contains(&code),
            Claim::Refused(refusal) => refusal.code.contains(&code),
            Claim::AnyOf(sets) => sets.iter().any(|set| any(set, code)),
            Claim::Body(_) | Claim::Header { .. } | Claim::Text(_) | Claim::Cel(_) => false,
        })
    }
    request.expect.iter().any(|check| any(&check.claims, code))
}

/// Whether a step sends anything but a read.
pub(crate) fn writes(steps: &[Step]) -> bool {
    requests(steps).iter().any(|request| !is_safe(&request.method))
}

/// Whether the steps wait for the server's clock, which moves in seconds: until it ends a watch or a log, or until a time is past.
pub(crate) fn awaits_the_clock(steps: &[Step]) -> bool {
    let mut found = false;
    walk(steps, &mut |step| {
        found |= match step {
            Step::End(_) => true,
            Step::Request(request) => request.query.iter().any(|(key, _)| key == "follow"),
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

#[cfg(test)]
mod tests {
    use kubeproof_cases::Catalogue;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("exec/ping", Capability::Exec, true)]
    #[case("portforward/port-numbers", Capability::Portforward, true)]
    #[case("log/parts-of-a-log", Capability::Log, true)]
    #[case("patch/json-patch-lists", Capability::JsonPatch, true)]
    #[case("patch/json-patch-lists", Capability::MergePatch, false)]
    #[case("selectors/field-name", Capability::FieldSelectors, true)]
    #[case::refusal_is_the_answer("selectors/field-unsupported-refused", Capability::FieldSelectors, false)]
    fn requests_show_what_a_case_needs(
        #[case] id: &str,
        #[case] capability: Capability,
        #[case] needed: bool,
    ) {
        let catalogue = Catalogue::embedded().unwrap();
        let case = catalogue.cases.iter().find(|case| case.id == id).unwrap();
        assert_eq!(needs(case).contains(&capability), needed);
    }
}
