//! A headless Chromium, driven over the Chrome debugging protocol.

use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tungstenite::{Message, WebSocket};

/// The timeout of each reply.
const DEADLINE: Duration = Duration::from_mins(1);

pub(crate) struct Browser {
    child: Child,
    socket: WebSocket<TcpStream>,
    session: Option<String>,
    sent: u64,
    /// The errors of scripts.
    pub(crate) exceptions: Vec<String>,
    _profile: TempDir,
}

impl Browser {
    /// Starts a browser with an empty page.
    pub(crate) fn start(chromium: &str) -> Self {
        let profile = TempDir::new().expect("a directory");
        let mut child = Command::new(chromium)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
            .args(["--no-first-run", "--disable-background-networking", "--disable-sync"])
            .args(["--remote-debugging-port=0", "about:blank"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stderr(Stdio::piped())
            .spawn()
            .expect("Chromium starts");
        let lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        let mut urls = lines
            .map_while(Result::ok)
            .filter_map(|line| line.strip_prefix("DevTools listening on ").map(str::to_owned));
        let url = urls.next().expect("Chromium prints the address of its debugger");
        let host = url.split('/').nth(2).expect("an address");
        let stream = TcpStream::connect(host).expect("Chromium listens");
        stream.set_read_timeout(Some(DEADLINE)).expect("a timeout");
        let (socket, _) = tungstenite::client(&url, stream).expect("a WebSocket");
        let (session, exceptions) = (None, Vec::new());
        let mut browser = Self { child, socket, session, sent: 0, exceptions, _profile: profile };
        let target = browser.call("Target.createTarget", &json!({"url": "about:blank"}));
        let target = json!({"targetId": target["targetId"], "flatten": true});
        let session = browser.call("Target.attachToTarget", &target);
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        browser.call("Page.enable", &json!({}));
        browser.call("Runtime.enable", &json!({}));
        browser
    }

    /// Opens a file with a fragment, and waits until it is loaded.
    pub(crate) fn open(&mut self, file: &Path, fragment: &str) {
        // A change of the fragment alone does not load the page.
        for url in ["about:blank".to_owned(), format!("file://{}#{fragment}", file.display())] {
            self.call("Page.navigate", &json!({"url": url}));
            while self.receive()["method"] != "Page.loadEventFired" {}
        }
    }

    /// Evaluates JavaScript, and returns its value.
    pub(crate) fn evaluate(&mut self, expression: &str) -> Value {
        let parameters =
            json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let reply = self.call("Runtime.evaluate", &parameters);
        assert!(reply.get("exceptionDetails").is_none(), "{expression}: {reply:#}");
        reply["result"]["value"].clone()
    }

    /// Types a text into the focused element.
    pub(crate) fn type_text(&mut self, text: &str) {
        self.call("Input.insertText", &json!({"text": text}));
    }

    /// Presses a key, with the text that it types.
    pub(crate) fn press(&mut self, key: &str, code: u32, text: &str) {
        for kind in ["keyDown", "keyUp"] {
            let text = if kind == "keyDown" { text } else { "" };
            let event = json!({
                "type": kind, "key": key, "windowsVirtualKeyCode": code, "text": text,
            });
            self.call("Input.dispatchKeyEvent", &event);
        }
    }

    /// Sets the width of the window, the medium (`screen` or `print`), and `light` or `dark`.
    pub(crate) fn emulate(&mut self, width: u32, media: &str, scheme: &str) {
        let metrics =
            json!({"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", &metrics);
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.call("Emulation.setEmulatedMedia", &json!({"media": media, "features": features}));
    }

    /// Calls a method, and returns its result.
    fn call(&mut self, method: &str, parameters: &Value) -> Value {
        self.sent += 1;
        let mut call = json!({"id": self.sent, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            call["sessionId"] = session.as_str().into();
        }
        self.socket.send(Message::text(call.to_string())).expect("Chromium reads");
        loop {
            let reply = self.receive();
            if reply["id"] == self.sent {
                assert!(reply.get("error").is_none(), "{method}: {reply}");
                return reply["result"].clone();
            }
        }
    }

    fn receive(&mut self) -> Value {
        let message = self.socket.read().expect("Chromium replies within the deadline");
        let message = message.into_text().expect("text");
        let message: Value = serde_json::from_str(&message).expect("JSON");
        if message["method"] == "Runtime.exceptionThrown" {
            self.exceptions.push(message["params"].to_string());
        }
        message
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It fails if the browser has crashed, which another assertion reports.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
