//! Describes the steps of a case and their checks.

use std::io::Write;

use kubeproof_cases::case::{
    Action, Await, Awaited, Check, EventPattern, Explore, Identity, Loop, Request, Schema, Step,
    Times, Together, Until,
};
use kubeproof_cases::plural;
use kubeproof_cases::rule::SchemaSet;

use super::{describe, streams};
use crate::error::Error;

/// Prints each step on a line, with its checks and inner steps below it.
pub(super) fn write(steps: &[Step], depth: usize, out: &mut dyn Write) -> Result<(), Error> {
    steps.iter().try_for_each(|step| {
        for condition in &step.when {
            line(out, depth, &format!("when {}:", condition.text))?;
        }
        one(&step.action, depth + usize::from(!step.when.is_empty()), out)
    })
}

fn one(action: &Action, depth: usize, out: &mut dyn Write) -> Result<(), Error> {
    match action {
        Action::Given(given) => {
            line(out, depth, &format!("given {}: {}", given.id, request(given)))
        }
        Action::Request(sent) => {
            line(out, depth, &format!("{}: {}", sent.id, request(sent)))?;
            checks(&sent.expect, depth + 1, out)
        }
        Action::Watch(watch) => {
            let request = &watch.request;
            line(
                out,
                depth,
                &format!(
                    "{}: watch {}{}",
                    request.id,
                    describe::text(&request.path),
                    asker(request)
                ),
            )?;
            checks(&request.expect, depth + 1, out)
        }
        Action::Await(awaited) => await_events(awaited, depth, out),
        Action::End(end) => {
            line(
                out,
                depth,
                &format!("{}: expect the server to end the watch {}", end.id, end.watch),
            )?;
            checks(&end.expect, depth + 1, out)
        }
        Action::Close(close) => {
            let what = if close.stream { "stream" } else { "watch" };
            line(out, depth, &format!("close the {what} {}", close.of))
        }
        Action::Stream(_)
        | Action::OpenStream(_)
        | Action::Send(_)
        | Action::Receive(_)
        | Action::Finish(_) => streams::write(action, depth, out),
        Action::Concurrently(inner) => iterations(inner, "concurrently", depth, out),
        Action::Repeat(inner) => iterations(inner, "in sequence", depth, out),
        Action::Together(together) => branches(together, depth, out),
        Action::Until(until) => rounds(until, depth, out),
        Action::Schema(schema) => rules(schema, depth, out),
        Action::Explore(Explore { id, property, checks }) => {
            let checks = plural(*checks, "check");
            let text = format!("{id}: {checks} of \"{property}\" with generated objects");
            line(out, depth, &text)
        }
        Action::Expect(expected) => checks(expected, depth, out),
    }
}

fn request(request: &Request) -> String {
    let exact = if request.exact { ", sent byte for byte" } else { "" };
    format!("{} {}{}{exact}", request.method, describe::text(&request.path), asker(request))
}

pub(super) fn asker(request: &Request) -> &'static str {
    match request.identity {
        Identity::Admin => "",
        Identity::Second => ", as the user without permissions",
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
            line(out, depth, &format!("{}: {} receives an event", awaited.id, awaited.watch))?;
            line(out, depth + 1, &event(pattern))
        }
    }
}

fn event(pattern: &EventPattern) -> String {
    let types =
        if pattern.types.is_empty() { "any".to_owned() } else { pattern.types.join(" or ") };
    let object = pattern.object.as_ref().map(|object| format!(" of {}", describe::pattern(object)));
    format!("- {}: {types}{}", pattern.id, object.unwrap_or_default())
}

fn iterations(inner: &Loop, how: &str, depth: usize, out: &mut dyn Write) -> Result<(), Error> {
    let times = match &inner.times {
        Times::Count(count) => plural(*count, "time"),
        Times::Over { list, variable } => {
            format!("for each {variable} of {}", one_line(&list.text))
        }
    };
    line(out, depth, &format!("{}: {times}, {how}", inner.id))?;
    write(&inner.steps, depth + 1, out)
}

fn branches(together: &Together, depth: usize, out: &mut dyn Write) -> Result<(), Error> {
    line(out, depth, &format!("{}: these branches concurrently", together.id))?;
    for (n, branch) in together.branches.iter().enumerate() {
        line(out, depth + 1, &format!("branch {n}:"))?;
        write(branch, depth + 2, out)?;
    }
    Ok(())
}

fn rounds(until: &Until, depth: usize, out: &mut dyn Write) -> Result<(), Error> {
    let condition = one_line(&until.condition.text);
    let times = plural(until.attempts, "time");
    line(out, depth, &format!("{}: at most {times}, until {condition}", until.id))?;
    write(&until.steps, depth + 1, out)
}

fn rules(schema: &Schema, depth: usize, out: &mut dyn Write) -> Result<(), Error> {
    let of = match schema.of {
        SchemaSet::Published => "all schemas that the server publishes",
        SchemaSet::Crds => "the schemas of custom resource definitions",
    };
    line(out, depth, &format!("check {of} against design rules"))?;
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
        line(
            out,
            depth,
            &format!("- {} ({}): {}", check.id, check.level, describe::claims(&check.claims)),
        )?;
        if let Some(deviation) = &check.deviation {
            let claims = describe::claims(&deviation.claims);
            line(
                out,
                depth + 1,
                &format!("or, as a deviation: {claims}; {}", one_line(&deviation.because)),
            )?;
        }
        if let Some(means) = &check.means {
            line(out, depth + 1, &format!("else {}", one_line(means)))?;
        }
        if let Some(message) = &check.message {
            line(out, depth + 1, &format!("shows {}", one_line(&message.text)))?;
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
