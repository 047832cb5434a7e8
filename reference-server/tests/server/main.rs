//! The server as its clients see it, over real sockets.

mod lists;
mod objects;
mod support;
