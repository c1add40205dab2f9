//! Finds PostgreSQL on this machine.

use std::collections::HashSet;
use std::env;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::advice::advice;
use crate::{Error, Result};

/// The oldest major version the rendered SQL runs on.
pub const OLDEST: u32 = 15;

/// A version as PostgreSQL prints it, ordered by age.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// 15 of 15.4; also the number in a data directory's `PG_VERSION`.
    pub major: u32,
    /// 4 of 15.4; 0 for a beta.
    pub minor: u32,
}

impl Version {
    /// Reads `postgres (PostgreSQL) 15.4 (Debian 15.4-1)`, or the number alone.
    pub fn parse(text: &str) -> Option<Self> {
        let number = text.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
        let mut parts = number.split(|c: char| !c.is_ascii_digit());
        let major = parts.next()?.parse().ok()?;
        let minor = if number.contains('.') { parts.next().and_then(|minor| minor.parse().ok()) } else { None };
        Some(Self { major, minor: minor.unwrap_or(0) })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.major, self.minor)
    }
}

/// A directory with the programs of one PostgreSQL server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installation {
    bin: PathBuf,
    version: Version,
}

impl Installation {
    /// The newest PostgreSQL on this machine that is 15 or newer. When `GLEANER_PG_BIN` is set, only that one is considered.
    pub fn find() -> Result<Self> {
        Search::from_env().newest()
    }

    /// The programs in this directory, whatever their version.
    pub fn at(bin: impl Into<PathBuf>) -> Result<Self> {
        let bin = bin.into();
        let fault = |reason: String| Error::NotPostgres { bin: bin.clone(), reason };
        for program in ["postgres", "initdb"] {
            if !bin.join(program).is_file() {
                return Err(fault(format!("there is no `{program}` in it")));
            }
        }
        let output = Command::new(bin.join("postgres"))
            .arg("--version")
            .output()
            .map_err(|error| fault(format!("`postgres --version` does not run: {error}")))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let version = Version::parse(&text).ok_or_else(|| {
            fault(format!("`postgres --version` says {:?}{}", text.trim(), String::from_utf8_lossy(&output.stderr).trim()))
        })?;
        Ok(Self { bin, version })
    }

    /// The directory.
    pub fn bin(&self) -> &Path {
        &self.bin
    }

    /// The version `postgres --version` gave.
    pub fn version(&self) -> &Version {
        &self.version
    }

    /// One of its programs, such as `psql` (which may be absent: only the server is required).
    pub fn program(&self, name: &str) -> PathBuf {
        self.bin.join(name)
    }
}

/// Where to look. The fields are public so that a test, or a package with its own layout, can look elsewhere.
#[derive(Debug, Clone)]
pub struct Search {
    /// Look here and nowhere else (`GLEANER_PG_BIN`).
    pub only: Option<PathBuf>,
    /// Directories of programs, as in `PATH`.
    pub path: OsString,
    /// The directory that the well-known places and `etc/os-release` are relative to: `/`.
    pub root: PathBuf,
}

impl Search {
    /// From the environment.
    pub fn from_env() -> Self {
        Self {
            only: env::var_os("GLEANER_PG_BIN").filter(|value| !value.is_empty()).map(PathBuf::from),
            path: env::var_os("PATH").unwrap_or_default(),
            root: PathBuf::from("/"),
        }
    }

    /// Every PostgreSQL found, the newest first, including those that are too old.
    pub fn all(&self) -> Result<Vec<Installation>> {
        if let Some(only) = &self.only {
            return Ok(vec![Installation::at(only)?]);
        }
        let known = WELL_KNOWN.iter().flat_map(|pattern| expand(&self.root, pattern));
        let mut found = Found::default();
        found.look_in(known.chain(self.path()));
        if found.installations.iter().all(|one| one.version.major < OLDEST) {
            // A development package may know a server that is in none of these places. Running it takes a moment.
            found.look_in(self.path().filter_map(|place| bindir(&place.join("pg_config"))));
        }
        found.installations.sort_by(|one, other| other.version.cmp(&one.version));
        Ok(found.installations)
    }

    /// The newest that is 15 or newer.
    pub fn newest(&self) -> Result<Installation> {
        let found = self.all()?;
        match found.first() {
            Some(newest) if newest.version.major >= OLDEST => Ok(newest.clone()),
            Some(newest) if self.only.is_some() => {
                Err(Error::NotPostgres { bin: newest.bin.clone(), reason: format!("its version is {}", newest.version) })
            }
            Some(_) => Err(Error::TooOld { found, command: advice(&self.root) }),
            None => Err(Error::Missing { command: advice(&self.root) }),
        }
    }

    /// The one that can read an existing data directory, else the newest.
    pub fn for_data(&self, data: &Path) -> Result<Installation> {
        let Some(wanted) = data_version(data)? else {
            return self.newest();
        };
        let found = self.all()?;
        if found.is_empty() {
            return self.newest();
        }
        found.iter().find(|one| one.version.major == wanted).cloned().ok_or_else(|| Error::OtherVersion {
            data: data.to_owned(),
            wanted,
            found,
        })
    }

    fn path(&self) -> impl Iterator<Item = PathBuf> {
        env::split_paths(&self.path).filter(|place| place.is_absolute())
    }
}

fn bindir(config: &Path) -> Option<PathBuf> {
    let output = Command::new(config).arg("--bindir").output().ok()?;
    Some(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
}

#[derive(Default)]
struct Found {
    installations: Vec<Installation>,
    /// The resolved server programs: distributions link one into several places.
    seen: HashSet<PathBuf>,
}

impl Found {
    fn look_in(&mut self, places: impl Iterator<Item = PathBuf>) {
        for bin in places {
            let Ok(server) = fs::canonicalize(bin.join("postgres")) else {
                continue;
            };
            if self.seen.insert(server) {
                // A broken installation must not hide a working one.
                self.installations.extend(Installation::at(bin));
            }
        }
    }
}

/// One star matches any part of one name.
const WELL_KNOWN: &[&str] = &[
    "usr/lib/postgresql/*/bin",                          // Debian, Ubuntu
    "usr/pgsql-*/bin",                                   // RPMs of postgresql.org
    "usr/libexec/postgresql*",                           // Alpine
    "usr/lib/postgresql*/bin",                           // SUSE
    "usr/bin",                                           // Fedora, Arch
    "usr/local/pgsql/bin",                               // built from source
    "usr/local/bin",                                     // BSDs
    "opt/homebrew/opt/postgresql*/bin",                  // Homebrew on Apple silicon
    "usr/local/opt/postgresql*/bin",                     // Homebrew on Intel
    "home/linuxbrew/.linuxbrew/opt/postgresql*/bin",     // Homebrew on Linux
    "Applications/Postgres.app/Contents/Versions/*/bin", // Postgres.app
];

fn expand(root: &Path, pattern: &str) -> Vec<PathBuf> {
    let mut places = vec![root.to_owned()];
    for part in pattern.split('/') {
        places = match part.split_once('*') {
            None => places.into_iter().map(|place| place.join(part)).collect(),
            Some((start, end)) => places
                .iter()
                .filter_map(|place| fs::read_dir(place).ok())
                .flatten()
                .flatten()
                .filter(|entry| {
                    let name = entry.file_name();
                    let name = name.to_string_lossy();
                    name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
                })
                .map(|entry| entry.path())
                .collect(),
        };
    }
    places
}

/// The major version that wrote a data directory; `None` when there is no data yet.
pub(crate) fn data_version(data: &Path) -> Result<Option<u32>> {
    let path = data.join("PG_VERSION");
    match fs::read_to_string(&path) {
        Ok(text) => match text.trim().parse() {
            Ok(major) => Ok(Some(major)),
            Err(_) => Err(Error::NotADataDirectory { data: data.to_owned() }),
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("read", &path)(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::Version;

    #[test]
    fn versions_are_read_as_distributions_print_them() {
        let read = |text| Version::parse(text).map(|version| (version.major, version.minor));
        assert_eq!(read("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)"), Some((15, 18)));
        assert_eq!(read("postgres (PostgreSQL) 18beta1"), Some((18, 0)));
        assert_eq!(read("postgres (PostgreSQL) 17.2 - Percona Distribution"), Some((17, 2)));
        assert_eq!(read("postgres: command not found"), None);
    }
}
