#![no_main]

use kubeproof_streaming::fuzzing;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| fuzzing::websocket(bytes));
