#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| kubeproof_harness::fuzzing::streams(input));
