#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_targets::execbox_from_runner(bytes));
