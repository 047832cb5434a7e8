#![no_main]

use kubeproof_apimachinery::fuzzing;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| fuzzing::rules(text));
