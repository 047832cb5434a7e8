//! Derives facts from the steps of a case without running it.

use std::collections::BTreeSet;

use kubeproof_cases::case::{Action, Body, Capability, Case, Claim, Request, ResourceName};
use kubeproof_cases::case::{Outbound, Payload, Prerequisite, Sending, Step, Times};
use kubeproof_cases::expression::Expression;
use kubeproof_cases::template::{JsonTemplate, Part, Template};

use crate::transport::write_policy::is_safe;

/// Returns every request in order, including those in loops.
pub(crate) fn requests(steps: &[Step]) -> Vec<&Request> {
    let mut found = Vec::new();
    walk(steps, &mut |step| match &step.action {
        Action::Given(request) | Action::Request(request) => found.push(request),
        Action::Watch(watch) => found.push(&watch.request),
        Action::Stream(stream) => found.push(&stream.request),
        _ => {}
    });
    found
}

/// Returns the capabilities that a case needs, by its file and by its requests.
pub(crate) fn needs(case: &Case) -> BTreeSet<Capability> {
    let mut needs = implied(&case.steps);
    needs.extend(&case.needs);
    needs
}

/// Returns capabilities that the requests imply: patch types, selectors and subresources. A request
/// that accepts the rejection implies none.
pub(crate) fn implied(steps: &[Step]) -> BTreeSet<Capability> {
    let mut needs = BTreeSet::new();
    for request in requests(steps) {
        let patch =
            request.content_type.as_ref().and_then(literal).and_then(
                |media_type| match media_type {
                    "application/json-patch+json" => Some(Capability::JsonPatch),
                    "application/merge-patch+json" => Some(Capability::MergePatch),
                    "application/strategic-merge-patch+json" => {
                        Some(Capability::StrategicMergePatch)
                    }
                    "application/apply-patch+yaml" => Some(Capability::ServerSideApply),
                    _ => None,
                },
            );
        needs.extend(patch.filter(|_| !takes(request, 415)));
        needs.extend(stream(&request.path));
        let in_path =
            |part: &Part| matches!(part, Part::Text(text) if text.contains("fieldSelector="));
        let selects = request.query.iter().any(|(key, _)| key == "fieldSelector");
        if (selects || request.path.parts.iter().any(in_path)) && !takes(request, 400) {
            needs.insert(Capability::FieldSelectors);
        }
    }
    needs
}

/// Returns the resources that paths name. A request that accepts 404 needs none.
pub(crate) fn named_resources(steps: &[Step]) -> BTreeSet<ResourceName> {
    let needing = requests(steps).into_iter().filter(|request| !takes(request, 404));
    needing.filter_map(|request| named_resource(&request.path)).collect()
}

/// Returns the resource that a path names. `None` if a variable may name it.
fn named_resource(path: &Template) -> Option<ResourceName> {
    let text = with_wildcards(path);
    let path = text.split('?').next()?.trim_start_matches('/');
    let segments: Vec<&str> = path.split('/').collect();
    let (group, version, rest) = match segments.as_slice() {
        ["api", version, rest @ ..] => ("", version, rest),
        ["apis", group, version, rest @ ..] => (*group, version, rest),
        _ => return None,
    };
    let resource = match rest {
        // Namespaces have a capability of their own.
        [] | ["namespaces"] | ["namespaces", _] | ["namespaces", _, "finalize" | "status", ..] => {
            return None;
        }
        ["namespaces", _, resource, ..] | [resource, ..] => *resource,
    };
    let is_known = |name: &str| !name.contains('*');
    let legacy_watch = resource == "watch";
    ([group, version, resource].into_iter().all(is_known) && !legacy_watch).then(|| ResourceName {
        resource: resource.to_owned(),
        version: (*version).to_owned(),
        group: group.to_owned(),
    })
}

/// Returns the streaming subresource of a path.
fn stream(path: &Template) -> Option<Capability> {
    let text = with_wildcards(path);
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

/// Returns a path with `*` for variables.
fn with_wildcards(path: &Template) -> String {
    let texts = path.parts.iter().map(|part| match part {
        Part::Text(text) => text.as_str(),
        Part::Variable(name) if name == "pod.path" => "/pods/x",
        Part::Variable(_) | Part::Fill(_) | Part::Name(_) => "*",
    });
    texts.collect()
}

/// Returns the text of a template without variables.
fn literal(template: &Template) -> Option<&str> {
    match template.parts.as_slice() {
        [Part::Text(text)] => Some(text),
        _ => None,
    }
}

/// Reports whether the checks of a request accept this status code.
fn takes(request: &Request, code: u16) -> bool {
    fn any(claims: &[Claim], code: u16) -> bool {
        claims.iter().any(|claim| match claim {
            Claim::Status(codes) => codes.contains(&code),
            Claim::Rejected(rejection) => rejection.code.contains(&code),
            Claim::AnyOf(sets) => sets.iter().any(|set| any(set, code)),
            Claim::Body(_) | Claim::Header { .. } | Claim::Text(_) | Claim::Cel(_) => false,
        })
    }
    request.expect.iter().any(|check| any(&check.claims, code))
}

/// Returns the discovery documents that a case reads.
pub(crate) fn documents(case: &Case) -> BTreeSet<Prerequisite> {
    let read = requests(&case.steps).into_iter().filter(|request| request.method == "GET");
    read.filter_map(|request| match request.path.parts.as_slice() {
        [Part::Variable(name)] if name == "subject.root" => Some(Prerequisite::Discovery),
        [Part::Text(path)] if path == "/apis" => Some(Prerequisite::Groups),
        _ => None,
    })
    .collect()
}

pub(crate) fn writes(steps: &[Step]) -> bool {
    explores(steps) || requests(steps).iter().any(|request| !is_safe(&request.method))
}

/// Reports whether a step generates objects.
pub(crate) fn explores(steps: &[Step]) -> bool {
    let mut found = false;
    walk(steps, &mut |step| found |= matches!(step.action, Action::Explore(_)));
    found
}

/// Reports whether the steps wait for the server's clock: for the end of a watch or log, or for a
/// time.
pub(crate) fn awaits_the_clock(steps: &[Step]) -> bool {
    let mut found = false;
    walk(steps, &mut |step| {
        found |= match &step.action {
            Action::End(_) => true,
            Action::Request(request) => {
                let has = |name: &str| request.query.iter().any(|(key, _)| key == name);
                has("follow") || has("watch") && has("timeoutSeconds")
            }
            Action::Stream(stream) => {
                stream.request.query.iter().any(|(key, _)| key == "timeoutSeconds")
            }
            Action::Until(until) => until.condition.text.contains("parseTime"),
            _ => false,
        };
    });
    found
}

/// Reports whether a request or an expression reads the variable.
pub(crate) fn reads_variable(steps: &[Step], name: &str) -> bool {
    let in_requests = requests(steps).iter().any(|request| {
        let templates =
            [Some(&request.path), request.content_type.as_ref(), request.accept.as_ref()];
        let pairs = request.query.iter().chain(&request.headers).map(|(_, value)| value);
        templates.into_iter().flatten().chain(pairs).any(|template| reads(template, name))
            || match &request.body {
                Some(
                    Body::Object(json)
                    | Body::Json(json)
                    | Body::Exact(json)
                    | Body::Edit { merge: json, .. },
                ) => reads_json(json, name),
                Some(Body::Protobuf { api_version, kind, message }) => {
                    reads(api_version, name) || reads(kind, name) || reads_json(message, name)
                }
                Some(Body::Text(text)) => reads(text, name),
                None => false,
            }
    });
    let mut in_loops = name == "ns" && explores(steps);
    walk(steps, &mut |step| {
        let named = step.lets.iter().map(|(_, expression)| expression);
        let reads =
            |expression: &Expression| expression.variables.iter().any(|known| known == name);
        in_loops |= step.when.iter().chain(named).any(reads);
        if let Action::Concurrently(the_loop) | Action::Repeat(the_loop) = &step.action
            && let Times::Over { list, .. } = &the_loop.times
        {
            in_loops |= list.variables.iter().any(|variable| variable == name);
        }
    });
    walk(steps, &mut |step| {
        if let Action::Send(Sending { what, .. }) = &step.action
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
        match &step.action {
            Action::Concurrently(inner) | Action::Repeat(inner) => walk(&inner.steps, see),
            Action::Until(until) => walk(&until.steps, see),
            Action::Together(together) => {
                together.branches.iter().for_each(|branch| walk(branch, see));
            }
            Action::Given(_)
            | Action::Request(_)
            | Action::Watch(_)
            | Action::Await(_)
            | Action::End(_)
            | Action::Close(_)
            | Action::Stream(_)
            | Action::OpenStream(_)
            | Action::Send(_)
            | Action::Receive(_)
            | Action::Finish(_)
            | Action::Schema(_)
            | Action::Explore(_)
            | Action::Expect(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use kubeproof_cases::Catalogue;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("discovery/group-list", &[Prerequisite::Groups])]
    #[case("discovery/names-well-formed", &[Prerequisite::Discovery])]
    #[case("discovery/aggregated-agrees", &[Prerequisite::Discovery, Prerequisite::Groups])]
    #[case("discovery/core-versions", &[])]
    #[case("get/returns-the-object", &[])]
    fn requests_show_the_documents_that_a_case_reads(
        #[case] id: &str,
        #[case] expected: &[Prerequisite],
    ) {
        let catalogue = Catalogue::embedded().unwrap();
        let case = catalogue.cases.iter().find(|case| case.id == id).unwrap();
        assert_eq!(documents(case).into_iter().collect::<Vec<_>>(), expected);
    }

    #[rstest]
    #[case("watch/timeout-ends-the-stream", true)]
    #[case("users/verbs-are-separate", true)]
    #[case("log/followed-to-the-end", true)]
    #[case("watch/over-websocket", true)]
    #[case::without_a_watch("errors/malformed-timeout", false)]
    #[case("watch/replays-every-step", false)]
    fn some_cases_wait_for_the_clock(#[case] id: &str, #[case] expected: bool) {
        let catalogue = Catalogue::embedded().unwrap();
        let case = catalogue.cases.iter().find(|case| case.id == id).unwrap();
        assert_eq!(awaits_the_clock(&case.steps), expected);
    }

    #[rstest]
    #[case("exec/ping", Capability::Exec, true)]
    #[case("portforward/port-numbers", Capability::Portforward, true)]
    #[case("log/parts-of-a-log", Capability::Log, true)]
    #[case("patch/json-patch-lists", Capability::JsonPatch, true)]
    #[case("patch/json-patch-lists", Capability::MergePatch, false)]
    #[case("selectors/field-name", Capability::FieldSelectors, true)]
    #[case::rejection_is_the_response(
        "selectors/field-unsupported-rejected",
        Capability::FieldSelectors,
        false
    )]
    fn requests_show_what_a_case_needs(
        #[case] id: &str,
        #[case] capability: Capability,
        #[case] needed: bool,
    ) {
        let catalogue = Catalogue::embedded().unwrap();
        let case = catalogue.cases.iter().find(|case| case.id == id).unwrap();
        assert_eq!(needs(case).contains(&capability), needed);
    }

    #[rstest]
    #[case("create/same-name-for-two-resources", &["secrets.v1"])]
    #[case("namespaces/created-active", &["configmaps.v1"])]
    #[case("exec/container-selection", &["pods.v1"])]
    #[case::variables("get/returns-the-object", &[])]
    #[case::namespaces("namespaces/default-exists", &[])]
    #[case::accepts_404("discovery/unknown-resource-not-found", &[])]
    fn paths_name_resources(#[case] id: &str, #[case] expected: &[&str]) {
        let catalogue = Catalogue::embedded().unwrap();
        let case = catalogue.cases.iter().find(|case| case.id == id).unwrap();
        let named: Vec<String> =
            named_resources(&case.steps).iter().map(ToString::to_string).collect();
        assert_eq!(named, expected);
    }
}
