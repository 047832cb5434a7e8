#![no_main]

use kubeproof_apimachinery::fuzzing;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| fuzzing::yaml(bytes));
