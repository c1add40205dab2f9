//! The process that reads one document: from standard input, to standard output, within limits.

use std::io::{Read as _, Write as _};
use std::process::ExitCode;

use nix::sys::resource::{Resource, setrlimit};

use super::{Kind, Unreadable, read};

/// Enough for every document that the server accepts, many times over.
const MEMORY: u64 = 1024 * 1024 * 1024;
const SECONDS: u64 = 20;
/// The parent process reads no more text than this.
const LONGEST: usize = 4 * 1024 * 1024;

/// `EX_DATAERR` of sysexits.h: the document, not the program, is at fault.
const AT_FAULT: u8 = 65;

/// Reads the document on standard input and writes its text. The exit status is 0, or 65 with the reason on standard error. A
/// document that needs more than the limits ends the process otherwise.
pub fn child(media_type: &str) -> ExitCode {
    if let Err(error) = limit() {
        eprintln!("the limits of the reader could not be set: {error}");
        return ExitCode::FAILURE;
    }
    let text_or_error = match Kind::of(media_type) {
        None => Err(Unreadable::Refused("its type is none that is read")),
        Some(kind) => {
            let mut bytes = Vec::new();
            match std::io::stdin().lock().read_to_end(&mut bytes) {
                Ok(_) => read(kind, &bytes),
                Err(error) => Err(Unreadable::Damaged(error.to_string())),
            }
        }
    };
    let text_or_error = text_or_error
        .and_then(|text| if text.len() > LONGEST { Err(Unreadable::Refused("it has more than 4 MiB of text")) } else { Ok(text) });
    match text_or_error {
        Ok(text) => match std::io::stdout().write_all(text.as_bytes()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
        Err(why) => {
            eprintln!("{why}");
            ExitCode::from(AT_FAULT)
        }
    }
}

/// Before the first byte is read. A reader writes no file, opens none, and leaves no core dump.
fn limit() -> nix::Result<()> {
    setrlimit(Resource::RLIMIT_AS, MEMORY, MEMORY)?;
    setrlimit(Resource::RLIMIT_CPU, SECONDS, SECONDS)?;
    setrlimit(Resource::RLIMIT_FSIZE, 0, 0)?;
    setrlimit(Resource::RLIMIT_CORE, 0, 0)
}
