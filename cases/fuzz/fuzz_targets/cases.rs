#![no_main]

use kubeproof_cases::Loader;

// A text becomes a case, or what is said of it can be shown.
libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Err(diagnostics) = Loader::without_cases().file("fuzz/case.yaml", "fuzz/case.yaml", text).load() {
        assert!(!diagnostics.to_string().is_empty());
    }
});
