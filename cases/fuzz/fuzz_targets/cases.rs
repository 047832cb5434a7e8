#![no_main]

use kubeproof_cases::Loader;

// A text is a case, or the loader reports errors that can be printed.
libfuzzer_sys::fuzz_target!(|text: &str| {
    let loader = Loader::without_cases().file("fuzz/case.yaml", "fuzz/case.yaml", text);
    if let Err(diagnostics) = loader.load() {
        assert!(!diagnostics.to_string().is_empty());
    }
});
