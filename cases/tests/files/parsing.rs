//! Parsed cases: editions, levels, patterns and defaults.

use kubeproof_cases::Loader;
use kubeproof_cases::case::Outbound;
use kubeproof_cases::case::{Action, Case, Check, Claim, Edition, Level, Step};
use kubeproof_cases::pattern::{Pattern, TextPattern};

const LEDGER: &str = "\
- id: a.one
  section: A
  level: must
  testability: wire
  editions: [v1.0, v1.3]
  statement: One
  texts: {v1.3: One and more, head: Another}
- id: a.two
  section: A
  level: should
  testability: wire
  editions: ['2024', head]
  statement: Two
";

/// A case with these steps and both requirements.
fn case(steps: &str) -> Case {
    with(&[], steps)
}

/// A case with these steps, beside other files.
fn with(others: &[(&str, &str)], steps: &str) -> Case {
    let text = format!("summary: A\nrequirements: [a.one, a.two]\nsteps:\n{steps}");
    let files = [("requirements.yaml", LEDGER), ("a/case.yaml", &text)];
    let all = files.iter().chain(others);
    let loader =
        all.fold(Loader::without_cases(), |loader, (name, text)| loader.file(name, name, text));
    let catalogue = loader.load().unwrap_or_else(|errors| panic!("{errors}"));
    catalogue.cases[0].clone()
}

fn checks(checks: &str) -> Vec<Check> {
    let steps = format!("  - request: {{id: got, method: GET, path: /api, expect: [{checks}]}}\n");
    match case(&steps).steps.as_slice() {
        [Step { action: Action::Request(request), .. }] => request.expect.clone(),
        steps => panic!("{steps:?}"),
    }
}

#[test]
fn editions_judge_checks_of_their_requirements_and_deviations_quote_them() {
    let deviation = "deviation: {because: they do, status: 202}";
    let found = checks(&format!(
        "{{id: both, status: 200, {deviation}}},
         {{id: old, requirements: [a.one], status: 200, {deviation}}},
         {{id: other, requirements: [a.one], editions: [v1.0, head], level: may, status: 200,
           {deviation}}}"
    ));
    let seen = |index: usize| {
        let check: &Check = &found[index];
        let letter = &check.deviation.as_ref().expect("it has one").letter;
        let quoted: Vec<(Edition, &str)> =
            letter.iter().map(|(edition, text)| (*edition, text.as_str())).collect();
        (check.level, check.editions.clone(), quoted)
    };
    let old = vec![(Edition::V1_0, "One"), (Edition::V1_3, "One and more")];
    let new = vec![(Edition::Y2024, "Two"), (Edition::Head, "Another")];
    let all = vec![Edition::V1_0, Edition::V1_3, Edition::Y2024, Edition::Head];
    assert_eq!(seen(0), (Level::Must, all, [old.clone(), new].concat()));
    assert_eq!(seen(1), (Level::Must, vec![Edition::V1_0, Edition::V1_3], old));
    // A check with editions may also rest on the texts of these editions.
    let named = vec![(Edition::V1_0, "One"), (Edition::Head, "Another")];
    assert_eq!(seen(2), (Level::May, vec![Edition::V1_0, Edition::Head], named));
}

#[test]
fn editions_judge_cases_with_a_check_of_theirs() {
    let request = |requirement: &str| {
        format!(
            "  - request: {{id: got, method: GET, path: /api, \
             expect: [{{id: ok, status: 200, requirements: [{requirement}]}}]}}\n"
        )
    };
    assert_eq!(case(&request("a.one")).editions, [Edition::V1_0, Edition::V1_3]);
    assert_eq!(case(&request("a.two")).editions, [Edition::Y2024, Edition::Head]);
    // An awaited event is a check, too.
    let awaits = "
  - watch: {id: seen, path: /api}
  - await: {watch: seen, id: comes, until: {type: ADDED}}
";
    assert_eq!(
        case(awaits).editions,
        [Edition::V1_0, Edition::V1_3, Edition::Y2024, Edition::Head]
    );
}

fn shape(pattern: &Pattern) -> String {
    let all = |patterns: &[Pattern]| patterns.iter().map(shape).collect::<Vec<_>>().join(" ");
    match pattern {
        Pattern::Value(_) => "value".to_owned(),
        Pattern::Exactly(_) => "exactly".to_owned(),
        Pattern::Object(members) => {
            let members: Vec<String> = members.iter().map(|(_, pattern)| shape(pattern)).collect();
            format!("{{{}}}", members.join(" "))
        }
        Pattern::Array(items) => format!("[{}]", all(items)),
        Pattern::Absent => "absent".to_owned(),
        Pattern::Present => "present".to_owned(),
        Pattern::Match(TextPattern::Regex(_)) => "regex".to_owned(),
        Pattern::Match(TextPattern::Equal(_)) => "text".to_owned(),
        Pattern::Type(kind) => format!("{kind:?}"),
        Pattern::OneOf(patterns) => format!("one of {}", all(patterns)),
        Pattern::Some(patterns) => format!("some {}", all(patterns)),
        Pattern::Not(inner) => format!("not {}", shape(inner)),
        Pattern::Each(inner) => format!("each {}", shape(inner)),
        Pattern::Size(size) => format!("size {size}"),
    }
}

#[test]
fn patterns_are_parsed_at_any_depth() {
    let patterns = [
        (r#"{"a": 1, "b": null, "c": "x"}"#, "{value value value}"),
        (r#"[1, {"a": {"$absent": true}}, {"$present": true}]"#, "[value {absent} present]"),
        (r#"{"$each": {"$type": "string"}}"#, "each String"),
        (r#"{"$some": [{"a": 1}, {"$type": "uuid"}]}"#, "some {value} Uuid"),
        (r#"{"$oneOf": [{"$not": {"$size": 2}}, {"$exactly": {}}]}"#, "one of not size 2 exactly"),
        (r#"{"a": {"$match": "^x"}}"#, "{regex}"),
        // Data may have names with `$`, as a strategic merge patch has.
        (r#"{"$patch": "delete", "name": "a"}"#, "{value value}"),
        (r#"{"${name}": {"$type": "object"}}"#, "{Object}"),
    ];
    let claims = patterns.map(|(text, _)| format!("{{id: c{}, body: {text}}}", text.len()));
    for ((text, expected), check) in patterns.iter().zip(checks(&claims.join(", "))) {
        let [Claim::Body(pattern)] = check.claims.as_slice() else { panic!("{:?}", check.claims) };
        assert_eq!(shape(pattern), *expected, "{text}");
    }
}

#[test]
fn a_schema_check_has_the_exemptions_of_its_rule() {
    let steps = "
  - schema:
      of: published
      expect: [{id: phase, rule: no-phase}, {id: floats, rule: no-float-in-spec}]
";
    let history = "- {rule: no-phase, at: [a.Thing], because: it is older}\n\
                   - {rule: no-nullable, at: [b.Thing], because: it is newer}\n";
    let case = with(&[("schema-history.yaml", history)], steps);
    let [Step { action: Action::Schema(schema), .. }] = case.steps.as_slice() else {
        panic!("{:?}", case.steps)
    };
    let known: Vec<Vec<&str>> = schema
        .expect
        .iter()
        .map(|check| check.history.iter().map(|known| known.because.as_str()).collect())
        .collect();
    assert_eq!(known, [vec!["it is older"], vec![]]);
}

#[test]
fn a_watch_keeps_only_the_named_members() {
    let case = case(
        "  - watch: {id: seen, path: /api, keep: [/metadata/name, /a~1b], \
         expect: [{id: ok, status: 200}]}\n",
    );
    let [Step { action: Action::Watch(watch), .. }] = case.steps.as_slice() else {
        panic!("{:?}", case.steps)
    };
    assert_eq!(watch.keep, ["/metadata/name", "/a~1b"]);
}

#[test]
fn a_token_is_in_a_header_by_default() {
    let among_protocols = |token: &str| {
        let step = format!(
            "  - stream: {{id: opened, path: /x, over: websocket, \
             protocols: [v5.channel.k8s.io]{token}}}\n"
        );
        let case = case(&step);
        let [Step { action: Action::Stream(stream), .. }] = case.steps.as_slice() else {
            panic!("{:?}", case.steps)
        };
        stream.token_in_protocols
    };
    assert_eq!(
        ["", ", token: header", ", token: protocols"].map(among_protocols),
        [false, false, true]
    );
}

#[test]
fn an_end_without_data_sends_no_message() {
    let pieces = |sends: &str| {
        let steps = format!(
            "
  - stream: {{id: opened, path: /x, over: websocket, protocols: [v5.channel.k8s.io]}}
  - send: {{stream: opened, channel: stdin, {sends}}}
"
        );
        let case = case(&steps);
        let [_, Step { action: Action::Send(sending), .. }] = case.steps.as_slice() else {
            panic!("{:?}", case.steps)
        };
        let Outbound::Data { pieces, .. } = sending.what else { panic!("{sending:?}") };
        pieces
    };
    assert_eq!(pieces("end: true"), usize::MAX);
    assert_eq!(["text: x, end: true", "text: x", "hex: ''"].map(pieces), [32 << 10; 3]);
    assert_eq!(pieces("text: x, pieces: 5"), 5);
}
