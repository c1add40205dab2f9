//! The state file of a running cluster, which other processes read.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::program::Program;
use crate::{Error, Home, Result};

/// Where a cluster runs. The file proves nothing: [`crate::status()`] checks it against the processes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct State {
    pub(crate) parent_pid: u32,
    pub(crate) pid: u32,
    pub(crate) url: String,
    pub(crate) tcp_url: Option<String>,
    pub(crate) socket_directory: PathBuf,
    /// The executable that was started.
    #[serde(default)]
    pub(crate) program: Option<Program>,
}

impl State {
    /// `None` when there is no file, or it cannot be parsed.
    pub(crate) fn read(home: &Home) -> Option<Self> {
        serde_json::from_slice(&fs::read(home.state()).ok()?).ok()
    }

    /// Replaces the file atomically, so that a reader never sees half of it. It may contain a password, so only our account may
    /// read it.
    pub(crate) fn write(&self, home: &Home) -> Result<()> {
        let (path, new) = (home.state(), home.state().with_extension("json.new"));
        let text = serde_json::to_vec_pretty(self).expect("paths we made ourselves are text");
        let _ = fs::remove_file(&new);
        fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&new)
            .and_then(|mut file| file.write_all(&text))
            .map_err(Error::io("write", &new))?;
        home.give_to_owner(&new)?;
        fs::rename(&new, &path).map_err(Error::io("write", &path))
    }

    pub(crate) fn remove(home: &Home) {
        let _ = fs::remove_file(home.state());
    }
}
