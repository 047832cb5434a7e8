//! WebSocket frames, messages and channels of streams, whatever they carry.

use bytes::{BufMut as _, Bytes, BytesMut};
use kubeproof_streaming::websocket::channel::Coding;
use kubeproof_streaming::websocket::frame::{Frame, Opcode};

use crate::behaviours::Fault;
use crate::middleware::Middleware;
use crate::streams::websocket::{channels_to_client, to_client, to_server};
use crate::streams::{Flow, Framing, Session};

/// The code of a close frame for a normal end, and for a server that goes away.
const NORMAL: u16 = 1000;
const GOING_AWAY: u16 = 1001;

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    of_frames(fault).or_else(|| of_channels(fault)).or_else(|| of_messages(fault))
}

fn of_frames(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::WebsocketUnmaskedAccepted => to_server(|_| {
            Some(Box::new(|mut frame: Frame, out| {
                frame.mask.get_or_insert([1, 2, 3, 4]);
                out.push(frame);
                Flow::Continue
            }))
        }),
        Fault::WebsocketPongMissing => to_server(|_| {
            Some(Box::new(|frame: Frame, out| {
                if frame.opcode == Opcode::Ping {
                    return Flow::Discard;
                }
                out.push(frame);
                Flow::Continue
            }))
        }),
        Fault::WebsocketClosesGoingAway => written(|frame, out| {
            let normal = frame.close_code() == Some(NORMAL);
            out.push(if normal { Frame::close(GOING_AWAY, "") } else { frame });
        }),
        Fault::WebsocketEndsWithoutClose => written(|frame, out| {
            if frame.opcode != Opcode::Close {
                out.push(frame);
            }
        }),
        Fault::WebsocketDataAfterClose => written(|frame, out| {
            let closes = frame.opcode == Opcode::Close;
            out.push(frame);
            if closes {
                out.push(Frame::binary(&b"\x01x"[..]));
            }
        }),
        _ => return None,
    })
}

fn of_channels(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::ChannelByteMissing => payloads(is_channels, |frame| {
            frame.payload = frame.payload.slice(1.min(frame.payload.len())..);
        }),
        Fault::ChannelsCountFromOne => payloads(is_channels, |frame| {
            let mut payload = BytesMut::from(frame.payload.as_ref());
            if let Some(channel) = payload.first_mut() {
                *channel = channel.wrapping_add(1);
            }
            frame.payload = payload.freeze();
        }),
        Fault::FrameBorderLosesByte => channels_to_client(|_| {
            Some(|channel, mut content: Bytes, out: &mut Vec<_>| {
                if content.len() > 1 {
                    content.truncate(content.len() - 1);
                }
                out.push((channel, content));
                Flow::Continue
            })
        }),
        _ => return None,
    })
}

fn of_messages(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::Base64UrlAlphabet => payloads(is_base64, |frame| {
            let url = |byte: &u8| match byte {
                b'+' => b'-',
                b'/' => b'_',
                other => *other,
            };
            frame.payload = frame.payload.iter().map(url).collect();
        }),
        Fault::Base64WithoutPadding => payloads(is_base64, |frame| {
            frame.payload = frame.payload.iter().copied().filter(|byte| *byte != b'=').collect();
        }),
        Fault::Base64InBinaryFrames => payloads(is_base64, |frame| frame.opcode = Opcode::Binary),
        Fault::LogCarriesChannels => payloads(
            |session| session.framing == Framing::Log(Coding::Binary),
            |frame| {
                let mut payload = BytesMut::with_capacity(1 + frame.payload.len());
                payload.put_u8(1);
                payload.put_slice(&frame.payload);
                frame.payload = payload.freeze();
            },
        ),
        Fault::WatchInBinaryFrames => payloads(
            |session| session.framing == Framing::Watch,
            |frame| frame.opcode = Opcode::Binary,
        ),
        _ => return None,
    })
}

fn is_channels(session: &Session) -> bool {
    matches!(session.framing, Framing::Channels(_))
}

fn is_base64(session: &Session) -> bool {
    matches!(session.framing, Framing::Channels(Coding::Base64) | Framing::Log(Coding::Base64))
}

/// Edits the frames that servers write.
fn written(edit: fn(Frame, &mut Vec<Frame>)) -> Box<dyn Middleware> {
    to_client(move |_| {
        Some(Box::new(move |frame, out| {
            edit(frame, out);
            Flow::Continue
        }))
    })
}

/// Edits the messages that servers write in some sessions.
fn payloads(applies: fn(&Session) -> bool, edit: fn(&mut Frame)) -> Box<dyn Middleware> {
    to_client(move |session| {
        if !applies(session) {
            return None;
        }
        Some(Box::new(move |mut frame: Frame, out| {
            if !frame.opcode.is_control() {
                edit(&mut frame);
            }
            out.push(frame);
            Flow::Continue
        }))
    })
}
