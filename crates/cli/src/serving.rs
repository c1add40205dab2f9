//! Where the server of a home listens: a record for other processes, and the port the home keeps.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};

/// A server of ours that runs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Serving {
    pub pid: u32,
    address: SocketAddr,
    /// What senders are given as its address, if it was set.
    #[serde(default)]
    pub public_base: Option<String>,
}

impl Serving {
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.reachable())
    }

    /// The address to give to others: the public one, else the one on this machine.
    pub(crate) fn base(&self) -> String {
        self.public_base.clone().unwrap_or_else(|| self.url())
    }

    /// The server that runs in this home. The lock on the record proves that its writer still runs.
    pub(crate) fn find(home: &Path) -> Option<Self> {
        let file = File::open(path(home)).ok()?;
        match Flock::lock(file, FlockArg::LockSharedNonblock) {
            Err((mut file, Errno::EWOULDBLOCK)) => {
                let mut text = Vec::new();
                file.read_to_end(&mut text).ok()?;
                serde_json::from_slice(&text).ok()
            }
            _ => None,
        }
    }

    /// An address that means "every interface" is reached on this machine.
    fn reachable(&self) -> SocketAddr {
        let mut address = self.address;
        if address.ip().is_unspecified() {
            address.set_ip(if address.is_ipv4() { [127, 0, 0, 1].into() } else { std::net::Ipv6Addr::LOCALHOST.into() });
        }
        address
    }
}

/// The record of this process, for as long as the value lives. It is locked, so a second server cannot replace it.
#[derive(Debug)]
pub(crate) struct Record {
    file: Flock<File>,
    pub serving: Serving,
}

impl Record {
    /// Records that this process serves there. None when another server of this home has its record already.
    pub(crate) fn write(home: &Path, address: SocketAddr, public_base: Option<&str>) -> Result<Option<Self>> {
        let path = path(home);
        let failed = || format!("write {}", path.display());
        let file = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(&path).with_context(failed)?;
        let mut file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(file) => file,
            Err((_, Errno::EWOULDBLOCK)) => return Ok(None),
            Err((_, errno)) => return Err(std::io::Error::from(errno)).with_context(|| format!("lock {}", path.display())),
        };
        let serving = Serving { pid: std::process::id(), address, public_base: public_base.map(ToOwned::to_owned) };
        let text = serde_json::to_vec_pretty(&serving)?;
        file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(&text)).with_context(failed)?;
        Ok(Some(Self { file, serving }))
    }
}

impl Drop for Record {
    /// Empties the file and leaves it: a server that has opened it already must lock the same file as the next one.
    fn drop(&mut self) {
        let _ = self.file.set_len(0);
    }
}

fn path(home: &Path) -> PathBuf {
    home.join("serve.json")
}

/// The port that `gleaner up` took at its first start. Webhook URLs, sessions and links name it, so it does not change by itself.
pub(crate) fn kept_port(home: &Path) -> Option<u16> {
    std::fs::read_to_string(home.join("port")).ok()?.trim().parse().ok()
}

pub(crate) fn keep_port(home: &Path, port: u16) -> Result<()> {
    let path = home.join("port");
    if kept_port(home) == Some(port) {
        return Ok(());
    }
    std::fs::write(&path, format!("{port}\n")).with_context(|| format!("write {}", path.display()))
}
