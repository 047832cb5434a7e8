//! Tests of the built binary over real sockets: outputs, exit codes, reports and safety.

mod broken_targets;
mod catalogue;
mod clean;
mod console;
mod durability;
mod envtest;
mod etcd;
mod explore;
mod gates;
mod help;
mod interruption;
mod keep;
mod known_failures;
mod lint_api;
mod malicious_server;
mod oracle;
mod program;
mod recorder;
mod reports;
mod runs;
mod safety;
mod secrets;
mod self_test;
mod serve;
mod server;
mod stress;
