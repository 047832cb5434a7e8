//! Protobuf bodies of built-in types.

#![no_main]

use kubeproof_api::Version;
use kubeproof_apimachinery::fuzzing;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    fuzzing::protobuf(Version::default().definitions(), bytes);
});
