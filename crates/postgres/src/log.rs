//! The server's log.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;

use crate::{Error, Home, Result};

/// A log longer than this is renamed at a start. One older log is kept.
const LONGEST: u64 = 32 * 1024 * 1024;

/// Opens the log for a server that starts. Returns its length too.
pub(crate) fn open(home: &Home) -> Result<(File, u64)> {
    let path = home.log();
    let length = fs::metadata(&path).map_or(0, |metadata| metadata.len());
    if length > LONGEST {
        fs::rename(&path, path.with_extension("log.1")).map_err(Error::io("rename", &path))?;
    }
    let mut log = OpenOptions::new().create(true).append(true).mode(0o640).open(&path).map_err(Error::io("open", &path))?;
    home.give_to_owner(&path)?;
    let length = log.seek(SeekFrom::End(0)).map_err(Error::io("read", &path))?;
    Ok((log, length))
}

/// The last lines that this start wrote.
pub(crate) fn tail(home: &Home, start: u64) -> String {
    let mut text = Vec::new();
    let read = File::open(home.log()).and_then(|mut log| {
        log.seek(SeekFrom::Start(start))?;
        log.read_to_end(&mut text)
    });
    if let Err(error) = read {
        return format!("(unreadable: {error})");
    }
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(15)..].join("\n")
}
