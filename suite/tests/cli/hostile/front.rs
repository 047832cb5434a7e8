//! A server that stands before the reference server: it passes requests on, and turns hostile on those it is told to.

use std::io::{self, Read, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// What is done to a connection, in order; at the end it is closed.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Sends bytes.
    Send(Vec<u8>),
    /// Sends bytes again and again, until the client has gone.
    Flood(Vec<u8>),
    /// The same, as fast as the client asks for it, where it can.
    FloodWithin(Vec<u8>),
    /// Waits until the client has gone.
    Hang,
    /// Gives the head of the true answer.
    Answer,
}

pub(crate) fn send(bytes: impl AsRef<[u8]>) -> Act {
    Act::Send(bytes.as_ref().to_vec())
}

/// Something that is done to a client, and what its reports say of it: one of these at least; nothing where what was
/// done can be borne.
#[derive(Clone, Debug)]
pub(crate) struct Hostility {
    pub(crate) name: &'static str,
    pub(crate) script: Vec<Act>,
    pub(crate) says: &'static [&'static str],
}

/// A listening front. It lives as long as the test.
pub(crate) struct Front {
    pub(crate) url: String,
    pub(super) met: Arc<Mutex<Vec<&'static str>>>,
}

impl Front {
    /// Meets the requests that `is_met` picks by their first line with hostilities, and passes the others on to a server. One
    /// whose line holds a [mark] meets that of the mark; of the others each meets the next.
    pub(crate) fn start(
        behind: &str,
        hostilities: Vec<Hostility>,
        is_met: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("its address"));
        let behind = behind.trim_start_matches("http://").to_owned();
        let met = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&met);
        let shared = Arc::new((behind, hostilities, is_met, AtomicUsize::new(0)));
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (shared, log) = (Arc::clone(&shared), Arc::clone(&log));
                thread::spawn(move || {
                    let (behind, hostilities, is_met, turn) = &*shared;
                    // A client that has gone is what most of this is about.
                    let _ = serve(client, behind, |line| {
                        if !is_met(line) {
                            return None;
                        }
                        let turn = marked(line).unwrap_or_else(|| turn.fetch_add(1, Ordering::SeqCst));
                        let hostility = &hostilities[turn % hostilities.len()];
                        log.lock().expect("nobody died").push(hostility.name);
                        Some(hostility)
                    });
                });
            }
        });
        Self { url, met }
    }

    /// The hostilities that requests have met since this was asked last.
    pub(crate) fn met(&self) -> Vec<&'static str> {
        std::mem::take(&mut *self.met.lock().expect("nobody died"))
    }
}

/// What a request holds that is to meet the hostility at this index.
pub(crate) fn mark(index: usize) -> String {
    format!("hostility-{index}-")
}

pub(super) fn marked(line: &str) -> Option<usize> {
    line.split_once("hostility-")?.1.split_once('-')?.0.parse().ok()
}

fn serve<'h>(
    mut client: TcpStream,
    behind: &str,
    meets: impl FnOnce(&str) -> Option<&'h Hostility>,
) -> io::Result<()> {
    let head = head(&mut client)?;
    let text = String::from_utf8_lossy(&head).into_owned();
    let (line, fields) = text.split_once("\r\n").unwrap_or((&text, ""));
    let hostility = meets(line);
    let mut server = None;
    if hostility.is_none_or(|hostility| hostility.script.iter().any(|act| matches!(act, Act::Answer))) {
        let mut behind = TcpStream::connect(behind)?;
        // One request a connection, so that each is seen here.
        let close =
            if text.to_ascii_lowercase().contains("\r\nconnection:") { "" } else { "Connection: close\r\n" };
        behind.write_all(format!("{line}\r\n{close}{fields}").as_bytes())?;
        server = Some(behind);
    }
    match (hostility, server) {
        (Some(hostility), mut server) => {
            for act in &hostility.script {
                follow(act, &mut client, server.as_mut())?;
            }
            client.shutdown(Shutdown::Write)?;
            // Closing with bytes unread would reset the connection under what was sent.
            io::copy(&mut client, &mut io::sink()).map(drop)
        }
        (None, Some(server)) => pass_on(client, server),
        (None, None) => Ok(()),
    }
}

fn follow(act: &Act, client: &mut TcpStream, server: Option<&mut TcpStream>) -> io::Result<()> {
    match (act, server) {
        (Act::Send(bytes), _) => client.write_all(bytes),
        (Act::Flood(bytes) | Act::FloodWithin(bytes), _) => loop {
            client.write_all(bytes)?;
        },
        (Act::Answer, Some(server)) => client.write_all(&head(server)?),
        (Act::Hang | Act::Answer, _) => io::copy(client, &mut io::sink()).map(drop),
    }
}

/// Everything up to the empty line.
fn head(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    Ok(head)
}

fn pass_on(client: TcpStream, server: TcpStream) -> io::Result<()> {
    let (mut up, mut down) = ((client.try_clone()?, server.try_clone()?), (server, client));
    let upwards = thread::spawn(move || {
        let _ = io::copy(&mut up.0, &mut up.1);
        let _ = up.1.shutdown(Shutdown::Write);
    });
    let copied = io::copy(&mut down.0, &mut down.1);
    let _ = down.1.shutdown(Shutdown::Write);
    let _ = upwards.join();
    copied.map(drop)
}
