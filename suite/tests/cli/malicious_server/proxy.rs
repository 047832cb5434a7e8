//! A proxy in front of the reference server that attacks selected requests and forwards the others.

use std::io::{self, Read, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// A step of an attack on a connection. The proxy closes the connection after the last step.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    /// Sends bytes.
    Send(Vec<u8>),
    /// Sends bytes repeatedly until the client closes the connection.
    Flood(Vec<u8>),
    /// Like `Flood`, but within the flow-control windows of the client.
    FloodWithin(Vec<u8>),
    /// Waits until the client closes the connection.
    Hang,
    /// Sends the head of the real response.
    RealHead,
}

pub(crate) fn send(bytes: impl AsRef<[u8]>) -> Action {
    Action::Send(bytes.as_ref().to_vec())
}

/// An attack on a client, and the messages in its reports. A report must contain one of them.
/// Without messages, the client may tolerate the attack.
#[derive(Clone, Debug)]
pub(crate) struct Attack {
    pub(crate) name: &'static str,
    pub(crate) script: Vec<Action>,
    pub(crate) messages: &'static [&'static str],
}

/// A running proxy. It lives as long as the test process.
pub(crate) struct Proxy {
    pub(crate) url: String,
    pub(super) used: Arc<Mutex<Vec<&'static str>>>,
}

impl Proxy {
    /// Attacks the requests whose first line `is_attacked` accepts, and forwards the others. A line
    /// with a [mark] selects the attack. Other lines get the next attack in turn.
    pub(crate) fn start(
        behind: &str,
        attacks: Vec<Attack>,
        is_attacked: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("its address"));
        let behind = behind.trim_start_matches("http://").to_owned();
        let used = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&used);
        let shared = Arc::new((behind, attacks, is_attacked, AtomicUsize::new(0)));
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (shared, log) = (Arc::clone(&shared), Arc::clone(&log));
                thread::spawn(move || {
                    let (behind, attacks, is_attacked, turn) = &*shared;
                    // Most attacks end when the client closes the connection.
                    let _ = serve(client, behind, |line| {
                        if !is_attacked(line) {
                            return None;
                        }
                        let turn =
                            marked(line).unwrap_or_else(|| turn.fetch_add(1, Ordering::SeqCst));
                        let attack = &attacks[turn % attacks.len()];
                        log.lock().expect("no panic").push(attack.name);
                        Some(attack)
                    });
                });
            }
        });
        Self { url, used }
    }

    /// Returns the attacks since the last call.
    pub(crate) fn used(&self) -> Vec<&'static str> {
        std::mem::take(&mut *self.used.lock().expect("no panic"))
    }
}

/// Returns the text in a request that selects the attack at this index.
pub(crate) fn mark(index: usize) -> String {
    format!("attack-{index}-")
}

pub(super) fn marked(line: &str) -> Option<usize> {
    line.split_once("attack-")?.1.split_once('-')?.0.parse().ok()
}

fn serve<'h>(
    mut client: TcpStream,
    behind: &str,
    select: impl FnOnce(&str) -> Option<&'h Attack>,
) -> io::Result<()> {
    let head = head(&mut client)?;
    let text = String::from_utf8_lossy(&head).into_owned();
    let (line, fields) = text.split_once("\r\n").unwrap_or((&text, ""));
    let attack = select(line);
    let mut server = None;
    if attack
        .is_none_or(|attack| attack.script.iter().any(|action| matches!(action, Action::RealHead)))
    {
        let mut behind = TcpStream::connect(behind)?;
        // The proxy reads one request per connection, so connections must not be reused.
        let close = if text.to_ascii_lowercase().contains("\r\nconnection:") {
            ""
        } else {
            "Connection: close\r\n"
        };
        behind.write_all(format!("{line}\r\n{close}{fields}").as_bytes())?;
        server = Some(behind);
    }
    match (attack, server) {
        (Some(attack), mut server) => {
            for action in &attack.script {
                execute(action, &mut client, server.as_mut())?;
            }
            client.shutdown(Shutdown::Write)?;
            // Closing a socket with unread bytes would reset the connection.
            io::copy(&mut client, &mut io::sink()).map(drop)
        }
        (None, Some(server)) => forward(client, server),
        (None, None) => Ok(()),
    }
}

fn execute(
    action: &Action,
    client: &mut TcpStream,
    server: Option<&mut TcpStream>,
) -> io::Result<()> {
    match (action, server) {
        (Action::Send(bytes), _) => client.write_all(bytes),
        (Action::Flood(bytes) | Action::FloodWithin(bytes), _) => loop {
            client.write_all(bytes)?;
        },
        (Action::RealHead, Some(server)) => client.write_all(&head(server)?),
        (Action::Hang | Action::RealHead, _) => io::copy(client, &mut io::sink()).map(drop),
    }
}

/// Reads up to the empty line.
fn head(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    Ok(head)
}

fn forward(client: TcpStream, server: TcpStream) -> io::Result<()> {
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
