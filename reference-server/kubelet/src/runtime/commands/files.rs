//! Programs for files.

use super::{Outcome, usage};
use crate::runtime::files::{FileError, Node, resolve};
use crate::runtime::machine::Program;

/// Splits arguments into option letters and the rest. Returns none for a letter that is not
/// `known`.
pub(super) fn options<'a>(args: &'a [String], known: &str) -> Option<(String, Vec<&'a str>)> {
    let mut letters = String::new();
    let mut rest = Vec::new();
    for arg in args {
        match arg.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            Some("-") => {}
            Some(more) => letters.push_str(more),
            None => rest.push(arg.as_str()),
        }
    }
    letters.chars().all(|letter| known.contains(letter)).then_some((letters, rest))
}

/// `ls [-1a] [PATH..]` with one name per line.
pub(super) async fn ls(program: Program) -> Outcome {
    let Some((_, mut paths)) = options(program.arguments(), "1aA") else {
        return usage(&program, &program.arguments().join(" ")).await;
    };
    if paths.is_empty() {
        paths.push(".");
    }
    let files = &program.machine.files;
    let mut code = 0;
    for path in paths {
        let absolute = resolve(&program.directory, path);
        let mut text = String::new();
        match files.get(&absolute) {
            None => {
                program.complain(&format!("{path}: No such file or directory")).await?;
                code = 1;
            }
            Some(node) if !node.is_directory() => text = format!("{path}\n"),
            Some(_) => {
                let prefix = if absolute == "/" { 1 } else { absolute.len() + 1 };
                let below = files.below(&absolute);
                for name in
                    below.iter().map(|path| &path[prefix..]).filter(|name| !name.contains('/'))
                {
                    text.push_str(name);
                    text.push('\n');
                }
            }
        }
        program.io.stdout.write(text.as_bytes()).await?;
    }
    Ok(code)
}

/// `mkdir [-p] PATH..`
pub(super) async fn mkdir(program: Program) -> Outcome {
    let Some((letters, paths)) =
        options(program.arguments(), "p").filter(|(_, paths)| !paths.is_empty())
    else {
        return usage(&program, &program.arguments().join(" ")).await;
    };
    let files = &program.machine.files;
    let mut code = 0;
    for path in paths {
        let absolute = resolve(&program.directory, path);
        let made = if letters.is_empty() && files.get(&absolute).is_some() {
            Err(FileError::Exists)
        } else if letters.is_empty() {
            files.put(&absolute, Node::directory())
        } else {
            files.make_directories(&absolute)
        };
        if let Err(error) = made {
            program.complain(&format!("can't create directory '{path}': {error}")).await?;
            code = 1;
        }
    }
    Ok(code)
}

/// `rm [-rf] PATH..`
pub(super) async fn rm(program: Program) -> Outcome {
    let Some((letters, paths)) = options(program.arguments(), "rRf") else {
        return usage(&program, &program.arguments().join(" ")).await;
    };
    let recursive = letters.contains(['r', 'R']);
    let mut code = 0;
    for path in paths {
        let absolute = resolve(&program.directory, path);
        let files = &program.machine.files;
        let removed = if !recursive && files.is_directory(&absolute) {
            Err(FileError::IsDirectory)
        } else {
            files.remove(&absolute, recursive)
        };
        if let Err(error) = removed
            && !letters.contains('f')
        {
            program.complain(&format!("can't remove '{path}': {error}")).await?;
            code = 1;
        }
    }
    Ok(code)
}

/// `touch PATH..`
pub(super) async fn touch(program: Program) -> Outcome {
    let mut code = 0;
    for path in program.arguments() {
        let absolute = resolve(&program.directory, path);
        let files = &program.machine.files;
        let touched =
            if files.get(&absolute).is_some() { Ok(()) } else { files.truncate(&absolute) };
        if let Err(error) = touched {
            program.complain(&format!("{path}: {error}")).await?;
            code = 1;
        }
    }
    Ok(code)
}

/// `test EXPRESSION` or `[ EXPRESSION ]` with one test and an optional `!`.
pub(super) async fn test(program: Program) -> Outcome {
    let mut args: Vec<&str> = program.arguments().iter().map(String::as_str).collect();
    if program.name() == "[" && args.pop() != Some("]") {
        return usage(&program, "missing ]").await;
    }
    let negated = args.first() == Some(&"!") && args.len() > 1;
    let holds = match &args[usize::from(negated)..] {
        [] => Some(false),
        [text] => Some(!text.is_empty()),
        [operator, operand] => unary(&program, operator, operand),
        [left, operator, right] => binary(left, operator, right),
        _ => None,
    };
    match holds {
        Some(holds) => Ok(i32::from(holds == negated)),
        None => usage(&program, &args.join(" ")).await,
    }
}

fn unary(program: &Program, operator: &str, operand: &str) -> Option<bool> {
    let node = || program.machine.files.get(&resolve(&program.directory, operand));
    Some(match operator {
        "-n" => !operand.is_empty(),
        "-z" => operand.is_empty(),
        "-e" => node().is_some(),
        "-d" => node().is_some_and(|node| node.is_directory()),
        "-f" => node().is_some_and(|node| !node.is_directory()),
        "-s" => node().is_some_and(|node| node.len() > 0),
        "-t" => program.terminal.is_some() && matches!(operand, "0" | "1" | "2"),
        _ => return None,
    })
}

fn binary(left: &str, operator: &str, right: &str) -> Option<bool> {
    let numbers = || Some((left.trim().parse::<i64>().ok()?, right.trim().parse::<i64>().ok()?));
    Some(match operator {
        "=" | "==" => left == right,
        "!=" => left != right,
        "-eq" => numbers().map(|(left, right)| left == right)?,
        "-ne" => numbers().map(|(left, right)| left != right)?,
        "-lt" => numbers().map(|(left, right)| left < right)?,
        "-le" => numbers().map(|(left, right)| left <= right)?,
        "-gt" => numbers().map(|(left, right)| left > right)?,
        "-ge" => numbers().map(|(left, right)| left >= right)?,
        _ => return None,
    })
}
