//! Programs that report their environment or wait.

use std::time::Duration;

use super::{Outcome, usage};
use crate::runtime::machine::Program;
use kubeproof_apimachinery::object::timestamp;

/// `env [NAME=VALUE..] [COMMAND..]`
pub(super) async fn env(mut program: Program) -> Outcome {
    let mut rest = program.args.split_off(1.min(program.args.len())).into_iter().peekable();
    while let Some(arg) = rest.peek() {
        let Some((name, value)) = arg.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            break;
        };
        program.environment.insert(name.to_owned(), value.to_owned());
        rest.next();
    }
    let command: Vec<String> = rest.collect();
    if let Some(name) = command.first().cloned() {
        let inner = Program { args: command, ..program.clone() };
        let Some(code) = Box::pin(inner.run()).await else {
            program.complain(&format!("can't execute '{name}': No such file or directory")).await?;
            return Ok(127);
        };
        return Ok(code);
    }
    let mut text = String::new();
    for (name, value) in &program.environment {
        text.extend([name, "=", value, "\n"]);
    }
    program.io.stdout.write(text.as_bytes()).await?;
    Ok(0)
}

/// `printenv [NAME..]`
pub(super) async fn printenv(program: Program) -> Outcome {
    if program.arguments().is_empty() {
        return env(program).await;
    }
    let mut code = 0;
    for name in program.arguments() {
        match program.environment.get(name) {
            Some(value) => program.io.stdout.write(format!("{value}\n").as_bytes()).await?,
            None => code = 1,
        }
    }
    Ok(code)
}

pub(super) async fn hostname(program: Program) -> Outcome {
    program.io.stdout.write(format!("{}\n", program.machine.hostname).as_bytes()).await?;
    Ok(0)
}

pub(super) async fn pwd(program: Program) -> Outcome {
    program.io.stdout.write(format!("{}\n", program.directory).as_bytes()).await?;
    Ok(0)
}

/// `date` in UTC as RFC 3339.
pub(super) async fn date(program: Program) -> Outcome {
    if let Some(arg) = program.arguments().first() {
        return usage(&program, arg).await;
    }
    program.io.stdout.write(format!("{}\n", timestamp(0)).as_bytes()).await?;
    Ok(0)
}

/// `sleep SECONDS`, also with fractions and `infinity`.
pub(super) async fn sleep(program: Program) -> Outcome {
    let [text] = program.arguments() else {
        return usage(&program, "one duration is required").await;
    };
    if matches!(text.as_str(), "infinity" | "inf") {
        return std::future::pending().await;
    }
    let (number, unit) = match text.strip_suffix(['s', 'm', 'h', 'd']) {
        Some(number) => (number, text.chars().last()),
        None => (text.as_str(), None),
    };
    let factor = match unit {
        Some('m') => 60.0,
        Some('h') => 3600.0,
        Some('d') => 86400.0,
        _ => 1.0,
    };
    let duration = number
        .parse()
        .ok()
        .and_then(|seconds: f64| Duration::try_from_secs_f64(seconds * factor).ok());
    let Some(duration) = duration else { return usage(&program, text).await };
    tokio::time::sleep(duration).await;
    Ok(0)
}

/// `stty size` prints rows and columns of the terminal. Other arguments have no effect.
pub(super) async fn stty(program: Program) -> Outcome {
    match (program.arguments(), &program.terminal) {
        ([size], Some(terminal)) if size == "size" => {
            let size = *terminal.borrow();
            program.io.stdout.write(format!("{} {}\n", size.height, size.width).as_bytes()).await?;
            Ok(0)
        }
        ([size], None) if size == "size" => {
            program.complain("standard input: Inappropriate ioctl for device").await?;
            Ok(1)
        }
        (args, _) => usage(&program, &args.join(" ")).await,
    }
}

pub(super) async fn tty(program: Program) -> Outcome {
    let (text, code) =
        if program.terminal.is_some() { ("/dev/pts/0\n", 0) } else { ("not a tty\n", 1) };
    program.io.stdout.write(text.as_bytes()).await?;
    Ok(code)
}
