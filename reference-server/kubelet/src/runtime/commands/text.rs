//! Programs that write, copy and measure text.

use bytes::{Bytes, BytesMut};
use sha2::{Digest as _, Sha256};

use super::{Outcome, usage};
use crate::runtime::files::resolve;
use crate::runtime::io::Input;
use crate::runtime::machine::Program;

pub(super) async fn echo(program: Program) -> Outcome {
    let mut args = program.arguments();
    let (mut newline, mut escapes) = (true, false);
    while let Some(option) = args.first().and_then(|arg| arg.strip_prefix('-')) {
        if option.is_empty() || !option.chars().all(|c| matches!(c, 'n' | 'e' | 'E')) {
            break;
        }
        newline &= !option.contains('n');
        escapes = option.contains('e') || (escapes && !option.contains('E'));
        args = &args[1..];
    }
    let mut text = args.join(" ").into_bytes();
    if escapes {
        text = unescape(&text);
    }
    if newline {
        text.push(b'\n');
    }
    program.io.stdout.write(&text).await?;
    Ok(0)
}

/// `printf FORMAT [ARGUMENT..]` with `%s`, `%d`, `%c`, `%b` and `%%`.
pub(super) async fn printf(program: Program) -> Outcome {
    let Some((format, args)) = program.arguments().split_first() else {
        return usage(&program, "a format is required").await;
    };
    let format = unescape(format.as_bytes());
    let mut args = args.iter();
    let mut text = Vec::new();
    loop {
        let before = args.len();
        let mut bytes = format.iter().copied();
        while let Some(byte) = bytes.next() {
            if byte != b'%' {
                text.push(byte);
                continue;
            }
            match bytes.next() {
                Some(b'%') => text.push(b'%'),
                Some(b's') => text.extend(args.next().map_or("", String::as_str).bytes()),
                Some(b'b') => {
                    text.extend(unescape(args.next().map_or("", String::as_str).as_bytes()));
                }
                Some(b'c') => text.extend(args.next().and_then(|arg| arg.bytes().next())),
                Some(b'd') => {
                    let number: i64 =
                        args.next().map_or(Ok(0), |arg| arg.parse()).unwrap_or_default();
                    text.extend(number.to_string().bytes());
                }
                _ => return usage(&program, "only %s %d %c %b %% are known").await,
            }
        }
        // printf repeats the format while arguments remain.
        if args.len() == 0 || args.len() == before {
            break;
        }
    }
    program.io.stdout.write(&text).await?;
    Ok(0)
}

/// Replaces escapes such as `\n`, `\t`, `\xHH` and `\0NNN`.
fn unescape(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        let Some((escape, after)) = rest.split_first().filter(|_| *byte == b'\\') else {
            plain.push(*byte);
            continue;
        };
        let (value, used) = match escape {
            b'n' => (b'\n', 1),
            b't' => (b'\t', 1),
            b'r' => (b'\r', 1),
            b'a' => (7, 1),
            b'b' => (8, 1),
            b'e' => (27, 1),
            b'\\' => (b'\\', 1),
            b'x' => digits(after, 16, 2).map_or((b'x', 1), |(value, length)| (value, 1 + length)),
            b'0'..=b'7' => {
                let skip =
                    usize::from(*escape == b'0' && after.first().is_some_and(u8::is_ascii_digit));
                digits(&rest[skip..], 8, 3).map_or((0, 1), |(value, length)| (value, skip + length))
            }
            _ => {
                plain.push(b'\\');
                continue;
            }
        };
        plain.push(value);
        rest = &rest[used..];
    }
    plain
}

/// Returns the number at the start of the text, and its count of digits.
fn digits(text: &[u8], radix: u32, max: usize) -> Option<(u8, usize)> {
    let length =
        text.iter().take(max).take_while(|byte| char::from(**byte).is_digit(radix)).count();
    let text = std::str::from_utf8(&text[..length]).ok()?;
    let value = u32::from_str_radix(text, radix).ok()?;
    u8::try_from(value & 0xff).ok().map(|value| (value, length))
}

pub(super) async fn cat(program: Program) -> Outcome {
    if let Some(option) = program.arguments().iter().find(|arg| arg.starts_with('-') && *arg != "-")
    {
        return usage(&program, option).await;
    }
    let mut code = 0;
    for input in inputs(&program, program.arguments(), &mut code).await? {
        loop {
            let chunk = input.chunk().await;
            if chunk.is_empty() {
                break;
            }
            program.io.stdout.write(&chunk).await?;
        }
    }
    Ok(code)
}

/// Returns the named files, or standard input. Missing files are reported and skipped.
async fn inputs(
    program: &Program,
    paths: &[String],
    code: &mut i32,
) -> std::io::Result<Vec<Input>> {
    if paths.is_empty() {
        return Ok(vec![program.io.stdin.clone()]);
    }
    let mut inputs = Vec::new();
    for path in paths {
        match path.as_str() {
            "-" | "/dev/stdin" => inputs.push(program.io.stdin.clone()),
            "/dev/null" => inputs.push(Input::empty()),
            path => match program.machine.files.read(&resolve(&program.directory, path)) {
                Ok(content) => inputs.push(Input::bytes(content)),
                Err(error) => {
                    program.complain(&format!("{path}: {error}")).await?;
                    *code = 1;
                }
            },
        }
    }
    Ok(inputs)
}

/// `tee [-a] [FILE..]`, where `/dev/stderr` is the error output.
pub(super) async fn tee(program: Program) -> Outcome {
    let append = program.arguments().first().is_some_and(|arg| arg == "-a");
    let mut files = Vec::new();
    for path in &program.arguments()[usize::from(append)..] {
        if path == "/dev/stderr" {
            files.push(None);
            continue;
        }
        let path = resolve(&program.directory, path);
        if (!append || program.machine.files.get(&path).is_none())
            && let Err(error) = program.machine.files.truncate(&path)
        {
            program.complain(&format!("{path}: {error}")).await?;
            return Ok(1);
        }
        files.push(Some(path));
    }
    loop {
        let chunk = program.io.stdin.chunk().await;
        if chunk.is_empty() {
            return Ok(0);
        }
        program.io.stdout.write(&chunk).await?;
        for file in &files {
            match file {
                None => program.io.stderr.write(&chunk).await?,
                Some(path) => {
                    if let Err(error) = program.machine.files.append(path, &chunk) {
                        program.complain(&format!("{path}: {error}")).await?;
                        return Ok(1);
                    }
                }
            }
        }
    }
}

/// `wc [-c|-l|-w] [FILE]`
pub(super) async fn wc(program: Program) -> Outcome {
    let (options, paths): (Vec<_>, Vec<_>) =
        program.arguments().iter().cloned().partition(|arg| arg.starts_with('-') && arg.len() > 1);
    let options = options.concat().replace('-', "");
    if options.chars().any(|c| !"clw".contains(c)) {
        return usage(&program, &options).await;
    }
    let wanted = |name: char| options.is_empty() || options.contains(name);
    let mut code = 0;
    for (index, input) in inputs(&program, &paths, &mut code).await?.into_iter().enumerate() {
        let (mut bytes, mut lines, mut words, mut inside) = (0_u64, 0_u64, 0_u64, false);
        loop {
            let chunk = input.chunk().await;
            if chunk.is_empty() {
                break;
            }
            bytes += chunk.len() as u64;
            if wanted('l') {
                lines += chunk.split(|byte| *byte == b'\n').count() as u64 - 1;
            }
            // Counting words is slow, so it happens on request only.
            let each = if wanted('w') { chunk.as_ref() } else { &[] };
            for byte in each {
                let space = byte.is_ascii_whitespace();
                words += u64::from(!space && !inside);
                inside = !space;
            }
        }
        let all = [('l', lines), ('w', words), ('c', bytes)];
        let chosen = all.iter().filter(|(name, _)| wanted(*name));
        let mut fields: Vec<String> = chosen.map(|(_, count)| count.to_string()).collect();
        fields.extend(paths.get(index).cloned());
        program.io.stdout.write(format!("{}\n", fields.join(" ")).as_bytes()).await?;
    }
    Ok(code)
}

pub(super) async fn sha256sum(program: Program) -> Outcome {
    let (paths, mut code) = (program.arguments(), 0);
    for (index, input) in inputs(&program, paths, &mut code).await?.into_iter().enumerate() {
        let mut digest = Sha256::new();
        loop {
            let chunk = input.chunk().await;
            if chunk.is_empty() {
                break;
            }
            digest.update(&chunk);
        }
        let name = paths.get(index).map_or("-", String::as_str);
        program.io.stdout.write(format!("{:x}  {name}\n", digest.finalize()).as_bytes()).await?;
    }
    Ok(code)
}

/// The arguments of `head` and `tail`.
struct Part {
    bytes: bool,
    count: usize,
    /// `+N` of `tail` counts from the start.
    from_start: bool,
    paths: Vec<String>,
}

impl Part {
    /// Parses `-n N`, `-nN`, `-N`, `-c N` and `-cN`. Returns the unsupported argument as error.
    fn parse(args: &[String]) -> Result<Self, String> {
        let mut part = Self { bytes: false, count: 10, from_start: false, paths: Vec::new() };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let Some(option) = arg.strip_prefix('-').filter(|option| !option.is_empty()) else {
                part.paths.push(arg.clone());
                continue;
            };
            let number = match option.strip_prefix(['n', 'c']) {
                Some(number) => {
                    part.bytes = option.starts_with('c');
                    if number.is_empty() { args.next().map_or("", String::as_str) } else { number }
                }
                None => option,
            };
            part.from_start = number.starts_with('+');
            part.count = number.trim_start_matches('+').parse().map_err(|_| arg.clone())?;
        }
        Ok(part)
    }
}

pub(super) async fn head(program: Program) -> Outcome {
    let part = match Part::parse(program.arguments()) {
        Ok(part) => part,
        Err(arg) => return usage(&program, &arg).await,
    };
    let mut code = 0;
    for input in inputs(&program, &part.paths, &mut code).await? {
        let mut left = part.count;
        while left > 0 {
            let mut chunk = if part.bytes { input.chunk().await } else { input.line().await };
            if chunk.is_empty() {
                break;
            }
            if part.bytes && chunk.len() > left {
                input.unread(chunk.split_off(left)).await;
            }
            left -= if part.bytes { chunk.len() } else { 1 };
            program.io.stdout.write(&chunk).await?;
        }
    }
    Ok(code)
}

pub(super) async fn tail(program: Program) -> Outcome {
    let part = match Part::parse(program.arguments()) {
        Ok(part) => part,
        Err(arg) => return usage(&program, &arg).await,
    };
    let mut code = 0;
    for input in inputs(&program, &part.paths, &mut code).await? {
        let mut window = BytesMut::new();
        // With `+N`, output can start before the input ends.
        let mut skip = if part.from_start { part.count.saturating_sub(1) } else { 0 };
        loop {
            let mut chunk =
                if part.bytes || skip == 0 { input.chunk().await } else { input.line().await };
            if chunk.is_empty() {
                break;
            }
            if !part.from_start {
                window.extend_from_slice(&chunk);
                let start = last(&window, &part);
                window = window.split_off(start);
                continue;
            }
            let skipped = if part.bytes { skip.min(chunk.len()) } else { skip.min(1) };
            skip -= skipped;
            let cut = if part.bytes { skipped } else { chunk.len() * skipped };
            program.io.stdout.write(&chunk.split_off(cut)).await?;
        }
        program.io.stdout.write(&window).await?;
    }
    Ok(code)
}

/// Returns the start of the last bytes or lines.
fn last(text: &[u8], part: &Part) -> usize {
    if part.bytes {
        return text.len().saturating_sub(part.count);
    }
    let ends =
        text.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
    ends.filter(|end| *end < text.len()).nth(part.count.saturating_sub(1)).unwrap_or(0)
}

/// `seq LAST`, `seq FIRST LAST` or `seq FIRST STEP LAST` with integers.
pub(super) async fn seq(program: Program) -> Outcome {
    let numbers: Result<Vec<i64>, _> = program.arguments().iter().map(|arg| arg.parse()).collect();
    let (first, step, last) = match numbers.as_deref() {
        Ok([last]) => (1, 1, *last),
        Ok([first, last]) => (*first, 1, *last),
        Ok([first, step, last]) if *step != 0 => (*first, *step, *last),
        _ => return usage(&program, &program.arguments().join(" ")).await,
    };
    let mut block = String::new();
    let mut number = first;
    while if step > 0 { number <= last } else { number >= last } {
        block.push_str(&number.to_string());
        block.push('\n');
        if block.len() > BLOCK {
            program.io.stdout.write(block.as_bytes()).await?;
            block.clear();
        }
        let Some(next) = number.checked_add(step) else { break };
        number = next;
    }
    program.io.stdout.write(block.as_bytes()).await?;
    Ok(0)
}

/// The bytes that are collected before a write.
const BLOCK: usize = 16 * 1024;

pub(super) async fn yes(program: Program) -> Outcome {
    let word =
        if program.arguments().is_empty() { "y".to_owned() } else { program.arguments().join(" ") };
    let line = format!("{word}\n");
    let block = Bytes::from(line.repeat(BLOCK / line.len() + 1));
    loop {
        program.io.stdout.write(&block).await?;
    }
}

/// `tr -d SET` or `tr SET SET` with characters and ranges.
pub(super) async fn tr(program: Program) -> Outcome {
    let sets: Vec<Vec<u8>> =
        program.arguments().iter().map(|set| ranges(&unescape(set.as_bytes()))).collect();
    let (from, to) = match sets.as_slice() {
        [option, set] if option == b"-d" => (set, None),
        [from, to] if !to.is_empty() => (from, Some(to)),
        _ => return usage(&program, &program.arguments().join(" ")).await,
    };
    loop {
        let chunk = program.io.stdin.chunk().await;
        if chunk.is_empty() {
            return Ok(0);
        }
        let changed = chunk.iter().filter_map(|byte| {
            match (from.iter().position(|known| known == byte), to) {
                (None, _) => Some(*byte),
                (Some(_), None) => None,
                // The last character of a shorter set replaces the rest.
                (Some(at), Some(to)) => to.get(at).or(to.last()).copied(),
            }
        });
        program.io.stdout.write(&changed.collect::<Vec<u8>>()).await?;
    }
}

/// Expands `a-c` to `abc`.
fn ranges(set: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    let mut rest = set;
    while let Some((first, after)) = rest.split_first() {
        match after {
            [b'-', last, after @ ..] if first <= last => {
                all.extend(*first..=*last);
                rest = after;
            }
            _ => {
                all.push(*first);
                rest = after;
            }
        }
    }
    all
}
