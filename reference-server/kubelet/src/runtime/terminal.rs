//! The line discipline of a terminal: it echoes and edits input, and passes it on line by line.

use tokio::io::AsyncWriteExt as _;

use super::io::{Input, Output};
use super::process::Pipe;

const INTERRUPT: u8 = 0x03;
const END_OF_FILE: u8 = 0x04;
const BACKSPACE: u8 = 0x08;
const KILL_LINE: u8 = 0x15;
const DELETE: u8 = 0x7f;

/// The longest line. Terminals drop further input.
const MAX_LINE: usize = 4096;

pub(super) struct Line {
    pub(super) keys: Input,
    pub(super) lines: Pipe,
    pub(super) echo: Output,
}

impl Line {
    /// Edits input until the user interrupts the program.
    pub(super) async fn edit(mut self) {
        let mut line = Vec::new();
        loop {
            let keys = self.keys.chunk().await;
            if keys.is_empty() {
                break;
            }
            for key in keys {
                if !self.key(key, &mut line).await {
                    return;
                }
            }
        }
        // The last input counts as a line even without a newline.
        self.hand_over(&mut line).await;
        let _ = self.lines.shutdown().await;
        std::future::pending::<()>().await;
    }

    /// Handles a key. Returns false when the user interrupts the program.
    async fn key(&mut self, key: u8, line: &mut Vec<u8>) -> bool {
        // Errors mean that the program no longer reads or writes, so it ends without further
        // action.
        match key {
            INTERRUPT => {
                let _ = self.echo.write(b"^C").await;
                return false;
            }
            END_OF_FILE if line.is_empty() => {
                let _ = self.lines.shutdown().await;
            }
            END_OF_FILE => self.hand_over(line).await,
            BACKSPACE | DELETE if line.pop().is_some() => {
                let _ = self.echo.write(b"\x08 \x08").await;
            }
            BACKSPACE | DELETE => {}
            KILL_LINE => {
                let _ = self.echo.write(&b"\x08 \x08".repeat(line.len())).await;
                line.clear();
            }
            b'\r' | b'\n' => {
                line.push(b'\n');
                let _ = self.echo.write(b"\n").await;
                self.hand_over(line).await;
            }
            key if line.len() < MAX_LINE => {
                line.push(key);
                let _ = self.echo.write(&[key]).await;
            }
            _ => {}
        }
        true
    }

    async fn hand_over(&mut self, line: &mut Vec<u8>) {
        let _ = self.lines.write_all(line).await;
        line.clear();
    }
}
