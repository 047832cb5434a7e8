//! The program as its users meet it: outputs and exit codes of the built binary, over real sockets.

mod broken_targets;
mod catalogue;
mod cleaning;
mod harm;
mod help;
mod hostile;
mod interrupts;
mod kubeproof;
mod lint_api;
mod recorder;
mod reports;
mod runs;
mod secrets;
mod serve;
mod served;
