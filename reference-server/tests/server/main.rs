//! The server as its clients see it, over real sockets.

mod collector;
mod connect;
mod histories;
mod http;
mod lists;
mod objects;
mod pods;
mod roles;
mod siege;
mod streams;
mod support;
mod types;
mod variations;
mod wire;
