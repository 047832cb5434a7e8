//! Runs cases against a server: capabilities, plan, transports, verdicts.
