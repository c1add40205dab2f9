#![no_main]

use gleaner_ingest::hostile;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| hostile::scheme("basic", data));
