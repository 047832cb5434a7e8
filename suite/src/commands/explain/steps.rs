//! The steps of a case in words: what is done, and what must come of it.

use std::io::Write;

use kubeproof_cases::case::{
    Await, Awaited, Check, EventPattern, Identity, Loop, Request, Schema, Step, Times, Together, Until,
};

use kubeproof_cases::rule::SchemaSet;

use super::{streams, words};
use crate::error::Error;

/// Writes each step on a line, its checks and inner steps below it.
pub(super) fn write(steps: &[Step], depth: usize, out: &mut dyn Write) -> Result<(), Error> {
    steps.iter().try_for_each(|step| one(step, depth, out))
}

fn one(step: &Step, depth: usize, out: &mut dyn Write) -> Result<(), Error> {
    match step {
        Step::Given(given) => line(out, depth, &format!("given {}: {}", given.id, request(given))),
        Step::Request(sent) => {
            line(out, depth, &format!("{}: {}", sent.id, request(sent)))?;
            checks(&sent.expect, depth + 1, out)
        }
        Step::Watch(watch) => {
            let request = &watch.request;
            line(
                out,
                depth,
                &format!("{}: watch {}{}", request.id, words::text(&request.path), asker(request)),
            )?;
            checks(&request.expect, depth + 1, out)
        }
        Step::Await(awaited) => await_events(awaited, depth, out),
        Step::End(end) => {
            line(out, depth, &format!("{}: the server ends the watch {}", end.id, end.watch))?;
            checks(&end.expect, depth + 1, out)
        }
        Step::Close(close) => {
            let what = if close.stream { "stream" } else { "watch" };
            line(out, depth, &format!("hang up the {what} {}", close.of))
        }
        Step::Stream(_) | Step::Create(_) | Step::Send(_) | Step::Receive(_) | Step::Finish(_) => {
            streams::write(step, depth, out)
        }
        Step::Concurrently(inner) => iterations(inner, "at once", depth, out),
        Step::Repeat(inner) => iterations(inner, "one after another", depth, out),
        Step::Together(together) => branches(together, depth, out),
        Step::Until(until) => rounds(until, depth, out),
        Step::Schema(schema) => rules(schema, depth, out),
        Step::Expect(expected) => checks(expected, depth, out),
    }
}

fn request(request: &Request) -> String {
    let exact = if request.exact { ", byte for byte" } else { "" };
    format!("{} {}{}{exact}", request.method, words::text(&request.path), asker(request))
}

pub(super) fn asker(request: &Request) -> &'static str {
    match request.identity {
        Identity::Admin => "",
        Identity::Second => ", as the user without rights",
        Identity::Anonymous => ", without a credential",
        Identity::Invalid => ", with an invalid token",
    }
}

fn await_events(awaited: &Await, depth: usize, out: &mut dyn Write) -> Result<(), Error> {
    match &awaited.what {
        Awaited::Next(patterns) => {
            line(out, depth, &format!("{}: the next events of {} are", awaited.id, awaited.watch))?;
            patterns.iter().try_for_each(|pattern| line(out, depth + 1, &event(pattern)))
        }
        Awaited::Until(pattern) => {
            line(out, depth, &format!("{}: {} comes to an event", awaited.id, awaited.watch))?;
            line(out, depth + 1, &event(pattern))
        }
    }
}

fn event(pattern: &EventPattern) -> String {
    let types = if pattern.types.is_empty() { "any".to_owned() } else { pattern.types.join(" or ") };
    let object = pattern.object.as_ref().map(|object| format!(" of {}", words::pattern(object)));
    format!("- {}: {types}{}", pattern.id, object.unwrap_or_default())
}

fn iterations(inner: &Loop, how: &str, depth: usize, out: &mut dyn Write) -> Result<(), Error> {
    let times = match &inner.times {
        Times::Count(count) => format!("{count} times"),
        Times::Over { list, variable } => format!("for each {variable} of {}", one_line(&list.text)),
    };
    line(out, depth, &format!("{}: {times}, {how}", inner.id))?;
    write(&inner.steps, depth + 1, out)
}

fn branches(together: &Together, depth: usize, out: &mut dyn Write) -> Result<(), Error> {
    line(out, depth, &format!("{}: all of these at once", together.id))?;
    for (n, branch) in together.branches.iter().enumerate() {
        line(out, depth + 1, &format!("branch {n}:"))?;
        write(branch, depth + 2, out)?;
    }
    Ok(())
}

fn rounds(until: &Until, depth: usize, out: &mut dyn Write) -> Result<(), Error> {
    let condition = one_line(&until.condition.text);
    line(out, depth, &format!("{}: at most {} times, until {condition}", until.id, until.attempts))?;
    write(&until.steps, depth + 1, out)
}

fn rules(schema: &Schema, depth: usize, out: &mut dyn Write) -> Result<(), Error> {
    let of = match schema.of {
        SchemaSet::Published => "all schemas that the server publishes",
        SchemaSet::Crds => "the schemas of custom resource definitions",
    };
    line(out, depth, &format!("hold {of} against design rules"))?;
    for check in &schema.expect {
        line(out, depth + 1, &format!("- {} ({}): {}", check.id, check.level, check.rule))?;
        if let Some(means) = &check.means {
            line(out, depth + 2, &format!("else {}", one_line(means)))?;
        }
    }
    Ok(())
}

pub(super) fn checks(checks: &[Check], depth: usize, out: &mut dyn Write) -> Result<(), Error> {
    for check in checks {
        line(out, depth, &format!("- {} ({}): {}", check.id, check.level, words::claims(&check.claims)))?;
        if let Some(deviation) = &check.deviation {
            let claims = words::claims(&deviation.claims);
            line(out, depth + 1, &format!("or, as a deviation: {claims}; {}", one_line(&deviation.because)))?;
        }
        if let Some(means) = &check.means {
            line(out, depth + 1, &format!("else {}", one_line(means)))?;
        }
    }
    Ok(())
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

pub(super) fn line(out: &mut dyn Write, depth: usize, text: &str) -> Result<(), Error> {
    Ok(writeln!(out, "{:1$}{text}", "", depth * 2)?)
}
