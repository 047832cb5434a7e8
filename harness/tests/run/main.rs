//! Plans and runs over small scripted servers and over the reference server.

mod cleaning;
mod executing;
mod planning;
mod support;
