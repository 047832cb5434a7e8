//! The reference server over real sockets.

mod builder;
mod certificate_requests;
mod certificates;
mod garbage_collector;
mod http;
mod linearizability;
mod lists;
mod logs_and_proxies;
mod no_controllers;
mod objects;
mod pod_parts;
mod pods;
mod protobuf;
mod random_bodies;
mod raw_streams;
mod roles;
mod streams;
mod stress;
mod support;
mod tokens;
mod types;
mod variations;
mod versions;
