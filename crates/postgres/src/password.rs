//! The password that connections over TCP need.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt;

use crate::{Error, Home, Result};

/// Created once, and stored in a file that only our account can read.
pub(crate) fn password(home: &Home) -> Result<String> {
    let path = home.password();
    if let Ok(text) = fs::read_to_string(&path) {
        let text = text.trim();
        if text.len() >= 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(text.to_owned());
        }
    }
    let mut bytes = [0; 24];
    File::open("/dev/urandom").and_then(|mut random| random.read_exact(&mut bytes)).map_err(Error::io("read", "/dev/urandom"))?;
    let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let _ = fs::remove_file(&path);
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)
        .and_then(|mut file| writeln!(file, "{text}"))
        .map_err(Error::io("write", &path))?;
    home.give_to_owner(&path)?;
    Ok(text)
}
