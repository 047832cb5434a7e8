//! Port-forwards: ports in the query, channels of WebSocket, pairs of SPDY streams.

use std::collections::BTreeSet;

use bytes::Bytes;
use kubeproof_streaming::spdy::frame::{Frame, ResetStatus};
use kubeproof_streaming::spdy::header_block::{Decoder, Encoder, Headers};
use kubeproof_streaming::websocket::frame::{Frame as Message, Opcode};

use crate::behaviours::Fault;
use crate::middleware::{Middleware, requests};
use crate::streams::spdy::{self, FrameEdit, Streams};
use crate::streams::{Flow, Framing, Pump, sessions, websocket};

/// Edits a message of a channel. The flag is true for the first message, which holds the port.
type ChannelEdit = fn(u8, Bytes, bool) -> Option<(u8, Bytes)>;
/// Edits a frame of SPDY, whose stream has this type.
type StreamEdit = fn(Frame, &str) -> Option<Frame>;

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::PortsFirstOnly => ports(|ports| ports.truncate(1)),
        Fault::PortNumbersUnchecked => {
            ports(|ports| ports.retain(|port| port.parse::<u16>().is_ok()))
        }
        Fault::PortNotAnnounced => {
            over_channels(|channel, content, first| (!first).then_some((channel, content)))
        }
        Fault::PortBigEndian => over_channels(|channel, content, first| {
            let swapped = || content.iter().rev().copied().collect();
            Some((channel, if first { swapped() } else { content }))
        }),
        Fault::PortChannelsSwapped => over_channels(|channel, content, first| {
            Some((if first { channel } else { channel ^ 1 }, content))
        }),
        Fault::PortFailureUnreported => over_both(
            |channel, content, first| {
                (first || channel.is_multiple_of(2)).then_some((channel, content))
            },
            |frame, kind| match frame {
                Frame::Data { stream, fin, .. } if kind == "error" => {
                    fin.then(|| Frame::Data { stream, fin, bytes: Bytes::new() })
                }
                frame => Some(frame),
            },
        ),
        Fault::PortEndUnreported => end_untold(),
        Fault::PortEndIsReset => over_spdy(|frame, kind| match frame {
            Frame::Data { stream, fin: true, bytes } if kind == "data" && bytes.is_empty() => {
                Some(cancel(stream))
            }
            frame => Some(frame),
        }),
        Fault::PortHalfCloseIsClose => spdy::to_server(|session| {
            session.is_port_forward().then(|| {
                stream_by_stream(|frame, kind| match frame {
                    Frame::Data { stream, fin: true, .. } if kind == "data" => Some(cancel(stream)),
                    frame => Some(frame),
                })
            })
        }),
        Fault::PortFailureEndsSession => {
            spdy::to_client(|session| session.is_port_forward().then(failure_ends_session))
        }
        Fault::PortRequestIdIgnored => spdy::to_server(|session| {
            session.is_port_forward().then(|| opened(paired_by_arrival()))
        }),
        Fault::PortStreamsUnchecked => {
            spdy::to_server(|session| session.is_port_forward().then(|| opened(always_valid)))
        }
        _ => return None,
    })
}

fn cancel(stream: u32) -> Frame {
    Frame::RstStream { stream, status: ResetStatus::Cancel as u32 }
}

/// Edits the ports in the query.
fn ports(edit: fn(&mut Vec<String>)) -> Box<dyn Middleware> {
    requests(move |request| {
        let target = request.target();
        if target.is_core("pods") && target.subresource == "portforward" {
            request.edit_query(|query| {
                let mut ports: Vec<String> = query
                    .all("ports")
                    .flat_map(|ports| ports.split(','))
                    .map(str::to_owned)
                    .collect();
                edit(&mut ports);
                query.remove("ports");
                for port in ports {
                    query.add("ports", port);
                }
            });
        }
    })
}

/// Edits the messages that servers send on the channels of ports.
fn over_channels(edit: ChannelEdit) -> Box<dyn Middleware> {
    websocket::channels_to_client(move |session| {
        session.is_port_forward().then(|| by_channel(edit))
    })
}

fn by_channel(edit: ChannelEdit) -> impl FnMut(u8, Bytes, &mut Vec<(u8, Bytes)>) -> Flow + Send {
    let mut announced = BTreeSet::new();
    move |channel, content, out| {
        out.extend(edit(channel, content, announced.insert(channel)));
        Flow::Continue
    }
}

/// Edits the frames that servers send on the streams of ports.
fn over_spdy(edit: StreamEdit) -> Box<dyn Middleware> {
    spdy::to_client(move |session| session.is_port_forward().then(|| stream_by_stream(edit)))
}

fn stream_by_stream(edit: StreamEdit) -> FrameEdit {
    Box::new(move |frame, streams, out| {
        let kind = match &frame {
            Frame::Data { stream, .. } => streams.kind(*stream),
            _ => String::new(),
        };
        if let Some(frame) = edit(frame, &kind) {
            frame.encode(out);
        }
        Flow::Continue
    })
}

/// Edits what servers send, over channels and over SPDY.
fn over_both(channel: ChannelEdit, stream: StreamEdit) -> Box<dyn Middleware> {
    sessions(move |session, server| match session.framing {
        Framing::Channels(coding) if session.is_port_forward() => {
            let to_client = websocket::frames(websocket::channels(coding, by_channel(channel)));
            Pump { to_client, ..Pump::default() }.start(server)
        }
        Framing::Spdy | Framing::Tunnel if session.is_port_forward() => {
            spdy::pump(session, spdy::unchanged(), stream_by_stream(stream)).start(server)
        }
        _ => server,
    })
}

/// Keeps channels and streams open after the far side of the port has closed.
fn end_untold() -> Box<dyn Middleware> {
    sessions(|session, server| match session.framing {
        Framing::Channels(_) if session.is_port_forward() => {
            let held = websocket::frames(Box::new(|frame: Message, out| {
                if frame.opcode == Opcode::Close {
                    return Flow::Hold;
                }
                out.push(frame);
                Flow::Continue
            }));
            Pump { to_client: held, ..Pump::default() }.start(server)
        }
        Framing::Spdy | Framing::Tunnel if session.is_port_forward() => {
            let without_fin = stream_by_stream(|frame, _| match frame {
                Frame::Data { fin: true, bytes, .. } if bytes.is_empty() => None,
                frame => Some(frame),
            });
            spdy::pump(session, spdy::unchanged(), without_fin).start(server)
        }
        _ => server,
    })
}

/// Ends the connection after the first error of a port.
fn failure_ends_session() -> FrameEdit {
    Box::new(|frame, streams, out| {
        frame.encode(out);
        match &frame {
            Frame::Data { stream, bytes, .. }
                if !bytes.is_empty() && streams.kind(*stream) == "error" =>
            {
                Frame::GoAway { last: *stream, status: 0 }.encode(out);
                Flow::Stop
            }
            _ => Flow::Continue,
        }
    })
}

/// Edits the headers of the streams that clients open.
fn opened(mut edit: impl FnMut(u32, &mut Headers) + Send + 'static) -> FrameEdit {
    let (mut decoder, mut encoder) = (Decoder::default(), Encoder::default());
    Box::new(move |frame, _: &Streams, out| {
        let mut again =
            |block: &Bytes, edit: &mut dyn FnMut(&mut Headers)| match decoder.decode(block) {
                Ok(mut headers) => {
                    edit(&mut headers);
                    encoder.encode(&headers).freeze()
                }
                Err(_) => block.clone(),
            };
        let frame = match frame {
            Frame::SynStream { stream, fin, associated, block } => {
                let block = again(&block, &mut |headers| edit(stream, headers));
                Frame::SynStream { stream, fin, associated, block }
            }
            Frame::Headers { stream, fin, block } => {
                Frame::Headers { stream, fin, block: again(&block, &mut |_| {}) }
            }
            frame => frame,
        };
        frame.encode(out);
        Flow::Continue
    })
}

/// Gives each stream the request id of the stream that waits for its other half.
fn paired_by_arrival() -> impl FnMut(u32, &mut Headers) + Send {
    let mut waiting: Option<(String, u32)> = None;
    move |stream, headers| {
        let kind = headers.get("streamtype").unwrap_or_default().to_owned();
        let request = match &waiting {
            Some((other, request)) if *other != kind => {
                let request = *request;
                waiting = None;
                request
            }
            Some((_, request)) => *request,
            None => {
                waiting = Some((kind, stream));
                stream
            }
        };
        headers.set("requestid", &request.to_string());
    }
}

/// Makes invalid streams valid: error streams of a connection whose data stream never comes.
fn always_valid(stream: u32, headers: &mut Headers) {
    let kind = headers.get("streamtype").unwrap_or_default();
    let port: Option<u16> = headers.get("port").and_then(|port| port.parse().ok());
    if !matches!(kind, "error" | "data") || port.is_none_or(|port| port == 0) {
        headers.set("streamtype", "error");
        headers.set("port", "1");
        headers.set("requestid", &format!("unchecked-{stream}"));
    }
}
