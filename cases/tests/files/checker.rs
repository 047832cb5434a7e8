//! Diagnostics for cases with one mistake each.

use kubeproof_cases::Loader;

const LEDGER: &str =
    "- {id: a.one, section: A, level: must, testability: wire, editions: [head], statement: One}\n";

/// The messages for each of these cases. Valid cases have none.
fn messages(cases: &[String]) -> Vec<Vec<String>> {
    let name = |index: usize| format!("a/case{index}.yaml");
    let mut loader = Loader::without_cases().file("requirements.yaml", "requirements.yaml", LEDGER);
    for (index, text) in cases.iter().enumerate() {
        let text = format!("summary: A\nrequirements: [a.one]\n{text}");
        loader = loader.file(&name(index), &name(index), &text);
    }
    let errors: Vec<(String, String)> = loader
        .load()
        .err()
        .into_iter()
        .flatten()
        .map(|error| (error.file.to_string(), error.message))
        .collect();
    let about = |index: usize| {
        let file = name(index);
        errors
            .iter()
            .filter(|(in_file, _)| *in_file == file)
            .map(|(_, message)| message.clone())
            .collect()
    };
    (0..cases.len()).map(about).collect()
}

#[test]
fn a_request_needs_its_verb_of_the_subject() {
    let requests = [
        ("create", "request: {id: it, method: POST, path: '${collection}', object: {}"),
        ("list", "request: {id: it, method: GET, path: '${collection}'"),
        ("list", "request: {id: it, method: GET, path: '${collection}?limit=1'"),
        ("list", "request: {id: it, method: GET, path: '${collection.all}'"),
        ("watch", "watch: {id: it, path: '${collection}'"),
        ("deletecollection", "request: {id: it, method: DELETE, path: '${collection}'"),
        ("get", "request: {id: it, method: GET, path: '${collection}/${name}'"),
        ("update", "request: {id: it, method: PUT, path: '${collection}/${name}', object: {}"),
        ("delete", "request: {id: it, method: DELETE, path: '${collection}/${name}'"),
        (
            "patch",
            "request: {id: it, method: PATCH, path: '${collection}/${name}', \
             contentType: application/merge-patch+json, json: '{}'",
        ),
    ];
    let of = |step: &str, subject: &str| {
        format!("subject: {subject}\nsteps:\n  - {step}, expect: [{{id: found, status: 200}}]}}\n")
    };
    let cases: Vec<String> = requests
        .iter()
        .flat_map(|(verb, step)| {
            ["{}", "{of: any}", &format!("{{verbs: [{verb}]}}"), "{of: configmaps.v1}"]
                .map(|it| of(step, it))
        })
        .collect();
    for ((verb, step), found) in requests.iter().zip(messages(&cases).chunks(4)) {
        let lacks = vec![format!("a subject may lack the verb `{verb}`")];
        // A case that names its resources knows them.
        assert_eq!(found, [lacks.clone(), lacks, vec![], vec![]], "{step}");
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table of steps and their reports")]
fn nearly_valid_steps_are_reported() {
    let expect = "expect: [{id: found, status: 200}]";
    let get =
        |rest: &str| format!("request: {{id: got, method: GET, path: /api, {rest}, {expect}}}");
    let method = |method: &str, rest: &str| {
        format!("request: {{id: got, method: {method}, path: /api, {rest} {expect}}}")
    };
    let path = |path: &str| format!("request: {{id: got, method: GET, path: {path}, {expect}}}");
    let link = "request: {id: first, method: GET, path: /api, capture: {link: /a}}\n  - ";
    let status = |codes: &str| {
        format!(
            "request: {{id: got, method: GET, path: /api, \
             expect: [{{id: found, status: {codes}}}]}}"
        )
    };
    let rejected = |codes: &str| {
        format!(
            "request: {{id: got, method: GET, path: /api, \
             expect: [{{id: found, rejected: {{code: {codes}, reason: NotFound}}}}]}}"
        )
    };
    let id = |id: &str| {
        format!(
            "request: {{id: got, method: GET, path: /api, expect: [{{id: {id}, status: 200}}]}}"
        )
    };
    let spdy = "stream: {id: opened, kind: ports, path: /x, over: spdy, \
                protocols: [portforward.k8s.io], ports: []}\n  - ";
    let create = |name: &str| {
        format!(
            "{spdy}open-stream: {{stream: opened, channel: {name}, headers: {{streamtype: data}}}}"
        )
    };
    let websocket =
        "stream: {id: opened, path: /x, over: websocket, protocols: [v5.channel.k8s.io]}\n  - ";
    let noise =
        |bytes: u32| format!("{websocket}send: {{stream: opened, channel: stdin, noise: {bytes}}}");
    let opcode =
        |opcode: &str| format!("{websocket}frame: {{stream: opened, opcode: '{opcode}', text: x}}");
    let repeat =
        |times: &str| format!("repeat: {{id: all, {times}, steps: [{{{}}}]}}", path("/api"));
    let until = |attempts: u32| {
        format!(
            "until: {{id: comes, attempts: {attempts}, steps: [{{{}}}], cel: got.status == 1}}",
            path("/api")
        )
    };
    let merge = "contentType: application/merge-patch+json,";
    let nearly = [
        (
            "watch: {id: seen, path: /api}
  - await: {watch: seen, id: Comes, until: {id: comes, type: ADDED}}"
                .to_owned(),
            "`Comes` is not a valid id",
        ),
        (id("names-the-object2"), ""),
        (id("Names"), "`Names` is not a valid id of a check"),
        (id("names--object"), "`names--object` is not a valid id of a check"),
        (id("names_object"), "`names_object` is not a valid id of a check"),
        (get("json: '{}'"), "GET sends no body"),
        (get("json: '{}', exact: true"), ""),
        (method("HEAD", "text: x,"), "HEAD sends no body"),
        (method("DELETE", "json: '{}',"), ""),
        (method("Post", ""), "methods are case-sensitive: `Post` is not `POST`"),
        (method("Post", "exact: true,"), ""),
        (method("'PO ST'", ""), "`PO ST` is not an HTTP method"),
        (method("''", ""), "`` is not an HTTP method"),
        (method("'PO ST'", "exact: true,"), ""),
        (method("M-SEARCH", ""), ""),
        (method("PATCH", ""), ""),
        (method("PATCH", "json: '{}',"), "PATCH must name the type of its patch"),
        (method("PATCH", &format!("json: '{{}}', {merge}")), ""),
        (method("PATCH", "json: '{}', headers: {Content-Type: a/b},"), ""),
        (
            method("POST", "json: '{}', text: x,"),
            "a request has one body: `object`, `body`, `json`, `edit`, `text` or `protobuf`",
        ),
        (path("api"), "a path starts with `/` or with `${collection}`"),
        (path("'${name}'"), "a path starts with `/` or with `${collection}`"),
        (format!("{link}{}", path("'${link}/x'")), ""),
        (status("99"), "99 is not an HTTP code"),
        (status("[100, 599]"), ""),
        (status("600"), "600 is not an HTTP code"),
        (rejected("399"), "399 is not the code of a rejection, 400 to 599"),
        (rejected("[400, 599]"), ""),
        (create("data2"), ""),
        (create("Data"), "`Data` cannot be the name of a channel"),
        (create("da-ta"), "`da-ta` cannot be the name of a channel"),
        (noise(64 << 20), ""),
        (noise((64 << 20) + 1), "more than 67108864 bytes"),
        (opcode("15"), ""),
        (opcode("16"), "`16` is not an opcode"),
        (repeat("times: 0"), "these steps cannot run"),
        (repeat("times: 1"), ""),
        (repeat("times: 10000"), ""),
        (repeat("times: 10001"), "more than 10000 rounds"),
        (until(10_000), ""),
        (until(10_001), "more than 10000 rounds"),
        (
            format!("together: {{id: all, branches: [[{{{}}}]]}}", path("/api")),
            "`together` takes at least two branches",
        ),
        (
            format!(
                "together: {{id: all, branches: [\
                 [{{{}}}], [request: {{id: other, method: GET, path: /api}}]]}}",
                path("/api")
            ),
            "",
        ),
    ];
    let cases: Vec<String> =
        nearly.iter().map(|(steps, _)| format!("steps:\n  - {steps}\n")).collect();
    for ((steps, expected), found) in nearly.iter().zip(messages(&cases)) {
        assert_eq!(found.join("; "), *expected, "{steps}");
    }
}

/// The checker finds undefined names anywhere in an expression. Names that a macro binds are
/// defined only inside it.
#[test]
fn undefined_names_in_expressions_are_reported() {
    let expressions = [
        ("got.status == wrong", true),
        ("[got.status, wrong].size() == 2", true),
        ("{'a': wrong} == got.body", true),
        ("{wrong: 1} == got.body", true),
        ("got.events.all(event, event.type == wrong)", true),
        ("wrong.all(event, event.type == got.status)", true),
        ("wrong.body == got.body", true),
        ("got.body[wrong] == 1", true),
        ("size(wrong) == got.status", true),
        ("wrong.size() == got.status", true),
        ("got.status == 1 || !(wrong)", true),
        ("got.events.all(wrong, wrong.type == 'ADDED') && wrong == 1", true),
        ("got.events.all(wrong, wrong.type == 'ADDED')", false),
        ("got.events.all(got, got.anything == 1)", false),
        ("got.events.exists(a, got.events.exists(b, a == b)) && type(got.status) == int", false),
    ];
    let request = "request: {id: got, method: GET, path: /api, expect: [{id: found, status: 200}]}";
    let case = |(expression, _): &(&str, bool)| {
        format!("steps:\n  - {request}\n  - expect: [{{id: holds, cel: \"{expression}\"}}]\n")
    };
    let cases: Vec<String> = expressions.iter().map(case).collect();
    for ((expression, is_reported), found) in expressions.iter().zip(messages(&cases)) {
        let expected =
            is_reported.then(|| "no earlier step or capture has the name `wrong`".to_owned());
        assert_eq!(found, Vec::from_iter(expected), "{expression}");
    }
}

#[test]
fn subject_protocol_and_pod_are_names_in_expressions() {
    let heads = ["", "subject: {}\n", "protocols: [command]\n", "needs: [running-pods]\n"];
    let names = ["load", "subject", "protocol", "pod"];
    let step = |name: &str| format!("steps:\n  - expect: [{{id: holds, cel: {name} == 1}}]\n");
    let cases: Vec<String> =
        heads.iter().flat_map(|head| names.map(|name| format!("{head}{}", step(name)))).collect();
    let found = messages(&cases);
    for (head, found) in found.chunks(names.len()).enumerate() {
        for (name, found) in found.iter().enumerate() {
            let unknown = format!("no earlier step or capture has the name `{}`", names[name]);
            let is_known = name == 0 || name == head;
            assert_eq!(
                !found.contains(&unknown),
                is_known,
                "{} with {:?}: {found:?}",
                names[name],
                heads[head]
            );
        }
    }
}
