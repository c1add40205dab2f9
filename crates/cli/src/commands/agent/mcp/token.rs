//! The token that callers must send.

use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::App;

/// The token, and its source for display: `GLEANER_MCP_TOKEN`, the file, or a new token in that file.
pub(super) fn find(app: &App, file: Option<&Path>) -> Result<(String, String)> {
    if let Some(token) = std::env::var("GLEANER_MCP_TOKEN").ok().filter(|token| !token.is_empty()) {
        return Ok((token, "in GLEANER_MCP_TOKEN".into()));
    }
    let path = match file {
        Some(file) => file.to_owned(),
        None => app.target.home()?.path().join("mcp.token"),
    };
    let place = format!("in {}", path.display());
    if let Ok(known) = std::fs::metadata(&path) {
        if known.mode() & 0o077 != 0 {
            bail!(
                "{} can be read by others: run `chmod 600 {}`, and delete it for a new token if it may have been read",
                path.display(),
                path.display()
            );
        }
        let token = std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?.trim().to_owned();
        if token.len() < 16 {
            bail!("the token in {} is too short to be safe: delete the file to get a new one", path.display());
        }
        return Ok((token, place));
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
    }
    // Two random UUIDs: 244 bits.
    let token = format!("{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple());
    let made = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    made.and_then(|mut file| writeln!(file, "{token}")).with_context(|| format!("write {}", path.display()))?;
    Ok((token, place))
}
