//! Programs that listen on a port of the pod.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;

use super::{Outcome, usage};
use crate::runtime::files::{Files, resolve};
use crate::runtime::io::{Input, Io, Output};
use crate::runtime::machine::Program;

/// `nc -l [-k] -p PORT [-e PROGRAM..]`. Without `-e`, the connection uses standard input and
/// output.
pub(super) async fn nc(program: Program) -> Outcome {
    let (mut port, mut listens, mut keeps, mut command) = (None, false, false, Vec::new());
    let mut args = program.arguments().iter();
    while let Some(arg) = args.next() {
        let Some(letters) = arg.strip_prefix('-') else {
            port = arg.parse::<u16>().ok();
            continue;
        };
        for letter in letters.chars() {
            match letter {
                'l' => listens = true,
                'k' => keeps = true,
                'p' => port = args.next().and_then(|port| port.parse().ok()),
                'e' => command = args.by_ref().cloned().collect(),
                _ => return usage(&program, arg).await,
            }
        }
    }
    let (Some(port), true) = (port, listens) else {
        return usage(&program, "-l and -p PORT are required").await;
    };
    let Some(mut accepted) = program.machine.network.listen(port) else {
        program.complain("bind: Address in use").await?;
        return Ok(1);
    };
    while let Some(connection) = accepted.recv().await {
        let (read, write) = tokio::io::split(connection);
        if command.is_empty() {
            return converse(&program, Input::pipe(read), Output::pipe(write)).await;
        }
        let output = Output::pipe(write);
        let io = Io { stdin: Input::pipe(read), stdout: output.clone(), stderr: output };
        let inner = Program { args: command.clone(), io, terminal: None, ..program.clone() };
        let run = async move {
            inner.run().await;
        };
        if !keeps {
            run.await;
            return Ok(0);
        }
        tokio::spawn(run);
    }
    Ok(0)
}

/// Copies in both directions until the peer closes its direction.
async fn converse(program: &Program, from: Input, to: Output) -> Outcome {
    let copy = |from: Input, to: Output| async move {
        loop {
            let chunk = from.chunk().await;
            if chunk.is_empty() {
                return Ok(0);
            }
            to.write(&chunk).await?;
        }
    };
    let sending = copy(program.io.stdin.clone(), to);
    let receiving = copy(from, program.io.stdout.clone());
    tokio::pin!(sending);
    tokio::select! {
        outcome = receiving => outcome,
        // The end of the own input does not end the connection.
        never = async { let _ = sending.await; std::future::pending().await } => never,
    }
}

/// `httpd -f [-p PORT] [-h DIRECTORY]` serves the files of a directory.
pub(super) async fn httpd(program: Program) -> Outcome {
    let (mut port, mut root) = (80, program.directory.clone());
    let mut args = program.arguments().iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "-f" => {}
            "-p" => match args.next().and_then(|port| port.parse().ok()) {
                Some(given) => port = given,
                None => return usage(&program, "-p").await,
            },
            "-h" => root = resolve(&program.directory, args.next().map_or(".", String::as_str)),
            _ => return usage(&program, arg).await,
        }
    }
    let Some(mut accepted) = program.machine.network.listen(port) else {
        program.complain("bind: Address already in use").await?;
        return Ok(1);
    };
    let root = Arc::new(root);
    while let Some(connection) = accepted.recv().await {
        let (files, root) = (program.machine.files.clone(), root.clone());
        let service = service_fn(move |request| {
            std::future::ready(Ok::<_, Infallible>(file(&files, &root, &request)))
        });
        let connection = hyper::server::conn::http1::Builder::new()
            .serve_connection(TokioIo::new(connection), service);
        tokio::spawn(async move {
            // The error of a broken connection concerns the peer only.
            let _ = connection.await;
        });
    }
    Ok(0)
}

fn file(files: &Files, root: &str, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    let mut path = resolve(root, &format!("./{}", resolve("/", request.uri().path())));
    if files.is_directory(&path) {
        path = resolve(&path, "index.html");
    }
    let (status, body) = match files.read(&path) {
        Ok(content) => (StatusCode::OK, content),
        Err(_) => (StatusCode::NOT_FOUND, Bytes::from_static(b"404 Not Found\n")),
    };
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    response
}
