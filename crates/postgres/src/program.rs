//! The server's executable on disk, and whether it was replaced while the server runs.
//!
//! A package upgrade replaces the executable and its libraries. The running server is still the old one, and new sessions of it load
//! the new libraries, which may fail. A restart brings the two together.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::Installation;

/// An executable as it was when the server was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Program {
    path: PathBuf,
    file: File,
}

/// What changes when a file is replaced or rewritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct File {
    device: u64,
    inode: u64,
    size: u64,
    modified_s: i64,
    modified_ns: i64,
}

impl Program {
    /// `None` when there is no such file.
    pub(crate) fn at(path: &Path) -> Option<Self> {
        let found = std::fs::metadata(path).ok()?;
        let file = File {
            device: found.dev(),
            inode: found.ino(),
            size: found.size(),
            modified_s: found.mtime(),
            modified_ns: found.mtime_nsec(),
        };
        Some(Self { path: path.to_owned(), file })
    }

    /// What is there instead by now. `None` while it is the same, and while an upgrade has removed it.
    pub(crate) fn replaced_by(&self) -> Option<Self> {
        Self::at(&self.path).filter(|found| found != self)
    }

    /// Whether it runs, and can open data of this major version.
    pub(crate) fn opens(&self, major: u32) -> bool {
        self.path.parent().and_then(|bin| Installation::at(bin).ok()).is_some_and(|found| found.version().major == major)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::Program;

    #[test]
    fn a_replaced_executable_is_noticed_and_a_missing_one_is_not_taken_for_an_upgrade() {
        let folder = std::env::temp_dir().join(format!("gleaner-program-{}", std::process::id()));
        fs::create_dir(&folder).expect("a folder");
        let (path, new) = (folder.join("postgres"), folder.join("new"));
        fs::write(&path, "1").expect("a file");
        let program = Program::at(&path).expect("it is there");
        assert_eq!(program.replaced_by(), None);
        // As a package manager does it: written beside it, then renamed.
        fs::write(&new, "2").expect("a file");
        fs::rename(&new, &path).expect("renamed");
        let replaced = program.replaced_by().expect("another file");
        assert_eq!(replaced.replaced_by(), None);
        assert!(!replaced.opens(15), "it is no PostgreSQL");
        fs::remove_file(&path).expect("removed");
        assert_eq!(program.replaced_by(), None, "an upgrade is under way");
        fs::remove_dir_all(&folder).expect("removed");
    }
}
