//! The middleware of a fault, and constructors for its common forms.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt as _, StreamExt as _};
use http::{Method, header};
use serde_json::Value;

use crate::document;
use crate::exchange::{Body, Request, Response};
use crate::frames;
use crate::upstream::Upstream;

/// A part of the proxy that sees every request before the server and every response after it.
pub(crate) trait Middleware: Send + Sync {
    /// Handles a request: edits it, calls [`Next::send`] once, never or often, and edits the
    /// response.
    fn handle<'a>(&'a self, request: Request, next: Next<'a>) -> BoxFuture<'a, Response>;
}

/// The remaining middleware, and the server behind it.
#[derive(Clone, Copy)]
pub(crate) struct Next<'a> {
    pub(crate) rest: &'a [Box<dyn Middleware>],
    pub(crate) server: &'a Upstream,
}

impl<'a> Next<'a> {
    /// Passes a request on.
    pub(crate) fn send(self, request: Request) -> BoxFuture<'a, Response> {
        match self.rest.split_first() {
            Some((first, rest)) => first.handle(request, Next { rest, ..self }),
            None => self.server.send(request).boxed(),
        }
    }
}

impl<F> Middleware for F
where
    F: for<'a> Fn(Request, Next<'a>) -> BoxFuture<'a, Response> + Send + Sync,
{
    fn handle<'a>(&'a self, request: Request, next: Next<'a>) -> BoxFuture<'a, Response> {
        self(request, next)
    }
}

/// A middleware with full control: it decides what is sent and what is returned.
///
/// `around(|mut request, next| Box::pin(async move { .. next.send(request).await }))`
pub(crate) fn around<F>(handle: F) -> Box<dyn Middleware>
where
    F: for<'a> Fn(Request, Next<'a>) -> BoxFuture<'a, Response> + Send + Sync + 'static,
{
    Box::new(handle)
}

/// Edits every request.
pub(crate) fn requests(edit: impl Fn(&mut Request) + Send + Sync + 'static) -> Box<dyn Middleware> {
    Box::new(Requests(edit))
}

/// Edits every response. The edit sees the request as the client sent it.
pub(crate) fn responses(
    edit: impl Fn(&Request, &mut Response) + Send + Sync + 'static,
) -> Box<dyn Middleware> {
    Box::new(Responses(edit))
}

/// Edits every JSON or YAML document of a response, also the events of a watch (as `{type,
/// object}`).
pub(crate) fn documents(
    edit: impl Fn(&Request, &mut Value) + Send + Sync + 'static,
) -> Box<dyn Middleware> {
    Box::new(Documents(Arc::new(edit)))
}

/// Edits every API object that a client sees: alone, in lists, tables and watch events.
pub(crate) fn objects(
    edit: impl Fn(&Request, &mut Value) + Send + Sync + 'static,
) -> Box<dyn Middleware> {
    documents(move |request, document| {
        let document = match document.get_mut("object") {
            Some(object) if request.is_watch() => object,
            _ => document,
        };
        document::edit_objects(document, &mut |object| edit(request, object));
    })
}

/// Edits every `Status` that reports a failure, ERROR events of watches included.
pub(crate) fn failures(
    edit: impl Fn(&Request, &mut Value) + Send + Sync + 'static,
) -> Box<dyn Middleware> {
    documents(move |request, document| {
        let document = match document.get_mut("object") {
            Some(object) if request.is_watch() => object,
            _ => document,
        };
        if document::is_failure(document) {
            edit(request, document);
        }
    })
}

/// Edits the events of every watch: the edit returns the events to send instead of the given one.
/// `start` is called once for each watch and returns the edit with its state.
pub(crate) fn events<E>(
    start: impl Fn(&Request) -> E + Send + Sync + 'static,
) -> Box<dyn Middleware>
where
    E: FnMut(Value) -> Vec<Value> + Send + 'static,
{
    Box::new(Events(start))
}

/// Limits a middleware to some requests. The others pass unchanged.
pub(crate) fn only(
    applies: impl Fn(&Request) -> bool + Send + Sync + 'static,
    inner: Box<dyn Middleware>,
) -> Box<dyn Middleware> {
    Box::new(Only { applies, inner })
}

struct Only<F> {
    applies: F,
    inner: Box<dyn Middleware>,
}

impl<F: Fn(&Request) -> bool + Send + Sync> Middleware for Only<F> {
    fn handle<'a>(&'a self, request: Request, next: Next<'a>) -> BoxFuture<'a, Response> {
        if (self.applies)(&request) { self.inner.handle(request, next) } else { next.send(request) }
    }
}

/// Edits every request before the inner middleware handles it.
pub(crate) fn requests_before(
    edit: impl Fn(&mut Request) + Send + Sync + 'static,
    inner: Box<dyn Middleware>,
) -> Box<dyn Middleware> {
    Box::new(RequestsBefore { edit, inner })
}

struct RequestsBefore<F> {
    edit: F,
    inner: Box<dyn Middleware>,
}

impl<F: Fn(&mut Request) + Send + Sync> Middleware for RequestsBefore<F> {
    fn handle<'a>(&'a self, mut request: Request, next: Next<'a>) -> BoxFuture<'a, Response> {
        (self.edit)(&mut request);
        self.inner.handle(request, next)
    }
}

struct Requests<F>(F);

impl<F: Fn(&mut Request) + Send + Sync> Middleware for Requests<F> {
    fn handle<'a>(&'a self, mut request: Request, next: Next<'a>) -> BoxFuture<'a, Response> {
        (self.0)(&mut request);
        next.send(request)
    }
}

struct Responses<F>(F);

impl<F: Fn(&Request, &mut Response) + Send + Sync> Middleware for Responses<F> {
    fn handle<'a>(&'a self, request: Request, next: Next<'a>) -> BoxFuture<'a, Response> {
        async move {
            let mut response = next.send(request.clone()).await;
            (self.0)(&request, &mut response);
            response
        }
        .boxed()
    }
}

/// Edits one document.
type Edit = Arc<dyn Fn(&Request, &mut Value) + Send + Sync>;

struct Documents(Edit);

impl Middleware for Documents {
    fn handle<'a>(&'a self, mut request: Request, next: Next<'a>) -> BoxFuture<'a, Response> {
        async move {
            uncompressed(&mut request);
            let mut response = next.send(request.clone()).await;
            edit_documents(&request, &mut response, self.0.clone());
            response
        }
        .boxed()
    }
}

struct Events<F>(F);

impl<F, E> Middleware for Events<F>
where
    F: Fn(&Request) -> E + Send + Sync,
    E: FnMut(Value) -> Vec<Value> + Send + 'static,
{
    fn handle<'a>(&'a self, mut request: Request, next: Next<'a>) -> BoxFuture<'a, Response> {
        async move {
            if !request.is_watch() {
                return next.send(request).await;
            }
            uncompressed(&mut request);
            let edit = (self.0)(&request);
            let mut response = next.send(request).await;
            edit_events(&mut response, edit);
            response
        }
        .boxed()
    }
}

/// Edits the document of a response, or each event of a watch. [`uncompressed`] must have been
/// called for the request.
pub(crate) fn edit_documents(request: &Request, response: &mut Response, edit: Edit) {
    if request.method == Method::HEAD {
        return;
    }
    if request.is_watch() && !matches!(response.body, Body::Whole(_)) {
        let request = request.clone();
        edit_events(response, move |mut event| {
            edit(&request, &mut event);
            vec![event]
        });
    } else {
        response.edit_value(|value| edit(request, value));
    }
}

/// Edits the API objects of a response: alone, in lists, tables and watch events.
/// [`uncompressed`] must have been called for the request.
pub(crate) fn edit_objects(
    request: &Request,
    response: &mut Response,
    edit: impl Fn(&mut Value) + Send + Sync + 'static,
) {
    let edit = move |request: &Request, document: &mut Value| {
        let document = match document.get_mut("object") {
            Some(object) if request.is_watch() => object,
            _ => document,
        };
        document::edit_objects(document, &mut |object| edit(object));
    };
    edit_documents(request, response, Arc::new(edit));
}

/// Removes `Accept-Encoding`, so that the middleware can parse the response.
pub(crate) fn uncompressed(request: &mut Request) {
    request.headers.remove(header::ACCEPT_ENCODING);
}

/// Edits the events of a watch: a JSON document in each line, or in each message of a WebSocket.
/// Other bodies stay as they are.
pub(crate) fn edit_events(
    response: &mut Response,
    mut edit: impl FnMut(Value) -> Vec<Value> + Send + 'static,
) {
    let edit_text = move |text: Bytes| match serde_json::from_slice(&text) {
        Ok(event) => {
            edit(event).into_iter().map(|event| Bytes::from(format!("{event}\n"))).collect()
        }
        Err(_) => vec![text],
    };
    match response.body {
        Body::Stream(_) if document::is_protobuf(&response.headers) => {}
        Body::Upgraded(_) => frames::edit_messages(response, edit_text),
        _ => edit_lines(response, edit_text),
    }
}

/// Edits the lines of a body that is a stream, each with its newline.
pub(crate) fn edit_lines(
    response: &mut Response,
    edit: impl FnMut(Bytes) -> Vec<Bytes> + Send + 'static,
) {
    if let Body::Stream(stream) = &mut response.body {
        let chunks = std::mem::replace(stream, stream::empty().boxed());
        *stream = lines(chunks, edit);
    }
}

fn lines(
    chunks: BoxStream<'static, Bytes>,
    edit: impl FnMut(Bytes) -> Vec<Bytes> + Send + 'static,
) -> BoxStream<'static, Bytes> {
    let state = (chunks, BytesMut::new(), edit);
    stream::unfold(state, |(mut chunks, mut rest, mut edit)| async move {
        loop {
            if let Some(end) = rest.iter().rposition(|byte| *byte == b'\n') {
                let complete = rest.split_to(end + 1).freeze();
                let mut out = BytesMut::new();
                let mut start = 0;
                for end in
                    complete.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(i, _)| i + 1)
                {
                    for line in edit(complete.slice(start..end)) {
                        out.extend_from_slice(&line);
                    }
                    start = end;
                }
                if !out.is_empty() {
                    return Some((out.freeze(), (chunks, rest, edit)));
                }
            }
            match chunks.next().await {
                Some(chunk) => rest.extend_from_slice(&chunk),
                None if rest.is_empty() => return None,
                None => {
                    let last = edit(rest.split().freeze()).concat();
                    return Some((last.into(), (stream::empty().boxed(), rest, edit)));
                }
            }
        }
    })
    .boxed()
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue, StatusCode};
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn events_in_protobuf_and_unfinished_lines_are_kept() {
        let protobuf = HeaderValue::from_static("application/vnd.kubernetes.protobuf;stream=watch");
        let binary = HeaderMap::from_iter([(header::CONTENT_TYPE, protobuf)]);
        for headers in [binary, HeaderMap::new()] {
            let chunks = [&b"\0\n\0"[..], b"\n", b"rest"].map(Bytes::from_static);
            let body = Body::Stream(stream::iter(chunks).boxed());
            let mut response = Response { status: StatusCode::OK, headers, body };
            edit_events(&mut response, |event| vec![event]);
            let Body::Stream(stream) = response.body else { panic!("the body is no stream") };
            assert_eq!(stream.collect::<Vec<_>>().await.concat(), b"\0\n\0\nrest");
        }
    }

    #[tokio::test]
    async fn events_are_edited_across_the_borders_of_chunks() {
        let chunks =
            [r#"{"type":"ADD"#, "ED\"}\n{\"type\":\"DELETED\"}\n{\"ty", "pe\":\"BOOKMARK\"}\n"];
        let body = Body::Stream(stream::iter(chunks.map(Bytes::from)).boxed());
        let mut response = Response { status: StatusCode::OK, headers: HeaderMap::new(), body };
        edit_events(&mut response, |event| {
            if event["type"] == "DELETED" { vec![] } else { vec![event, json!({})] }
        });
        let Body::Stream(stream) = response.body else { panic!("the body is no stream any more") };
        let text = stream.collect::<Vec<_>>().await.concat();
        assert_eq!(text, b"{\"type\":\"ADDED\"}\n{}\n{\"type\":\"BOOKMARK\"}\n{}\n");
    }
}
