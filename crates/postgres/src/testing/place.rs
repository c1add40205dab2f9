//! Where test servers keep their data, and how it is removed.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::account::Account;
use crate::{Error, Home, Result, pid, socket};

/// Followed by the process id of the test process, so that a later run knows whether that process still exists.
const PREFIX: &str = "gleaner-test-";

/// Waits for its input to end, which happens however our process dies, and then removes what we left. The server may still be
/// writing, so removal is retried.
const JANITOR: &str = r#"read -r _; for _ in 1 2 3 4 5 6 7 8 9 10; do rm -rf -- "$0" 2>/dev/null && exit; sleep 0.2; done"#;

/// A temporary home. Removed when dropped, or when the process ends.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) home: Home,
    janitor: Option<Child>,
}

impl Place {
    pub(super) fn create() -> Result<Self> {
        let account = Account::for_data(Path::new(""))?;
        let temporary = std::env::temp_dir();
        // As root, TMPDIR may be a directory that the server's account cannot enter.
        let parent = if account.barrier(&temporary).is_some() { PathBuf::from("/tmp") } else { temporary };
        sweep(&parent);
        let path = parent.join(format!("{PREFIX}{}-{}", std::process::id(), socket::unique()));
        fs::DirBuilder::new().mode(0o711).create(&path).map_err(Error::io("create directory", &path))?;
        let janitor = hire_janitor(&path);
        Ok(Self { home: Home::at(path)?, janitor })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(self.home.path());
        // Its input ends here. It finds nothing to do, and is waited for so that it does not remain as a zombie.
        if let Some(mut janitor) = self.janitor.take() {
            let _ = janitor.wait();
        }
    }
}

/// Without one (no shell) the next run removes the files.
fn hire_janitor(path: &Path) -> Option<Child> {
    Command::new("/bin/sh")
        .args(["-c", JANITOR])
        .arg(path)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .current_dir("/")
        // Ctrl-C ends the tests, and the janitor must outlive them.
        .process_group(0)
        .spawn()
        .ok()
}

/// Removes what test processes that no longer exist have left. Files of other users cannot be removed, and need not be.
fn sweep(parent: &Path) {
    let me = nix::unistd::geteuid().as_raw();
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next()?.parse::<u32>().ok());
        let Some(owner) = owner else { continue };
        let mine = entry.metadata().is_ok_and(|metadata| metadata.uid() == me);
        if mine && !pid::exists(owner) && !in_use(&entry.path()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn in_use(path: &Path) -> bool {
    let data = path.join("postgres");
    Account::for_data(&data).and_then(|account| pid::servers_in(&data, &account)).map_or(true, |servers| !servers.is_empty())
}
