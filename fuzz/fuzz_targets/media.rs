#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| spandrel_fuzz::media::run(input));
