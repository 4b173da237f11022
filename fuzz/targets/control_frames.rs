#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| wb_net::fuzzing::control_frames(input));
