//! Where the server of a home listens: a note for other processes.

use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

/// A server of ours that runs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Serving {
    pub pid: u32,
    address: SocketAddr,
    /// What senders are given as its address, where it was told one.
    #[serde(default)]
    pub public_base: Option<String>,
}

impl Serving {
    pub fn url(&self) -> String {
        format!("http://{}", self.reachable())
    }

    /// Notes that this process serves there.
    pub fn write(home: &Path, address: SocketAddr, public_base: Option<&str>) -> Result<Self> {
        let serving = Self { pid: std::process::id(), address, public_base: public_base.map(ToOwned::to_owned) };
        let (path, new) = (note(home), note(home).with_extension("json.new"));
        let text = serde_json::to_vec_pretty(&serving)?;
        // In one step, so that a reader never sees half of it.
        std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, &path)).with_context(|| format!("write {}", path.display()))?;
        Ok(serving)
    }

    /// The server of this home. A note alone is no proof: somebody has to answer there.
    pub fn find(home: &Path) -> Option<Self> {
        let serving: Self = serde_json::from_slice(&std::fs::read(note(home)).ok()?).ok()?;
        let pid = nix::unistd::Pid::from_raw(i32::try_from(serving.pid).ok()?);
        let alive = !matches!(nix::sys::signal::kill(pid, None), Err(nix::errno::Errno::ESRCH));
        (alive && TcpStream::connect_timeout(&serving.reachable(), Duration::from_secs(1)).is_ok()).then_some(serving)
    }

    /// An address that means "every interface" is reached on this machine.
    fn reachable(&self) -> SocketAddr {
        let mut address = self.address;
        if address.ip().is_unspecified() {
            address.set_ip(if address.is_ipv4() { [127, 0, 0, 1].into() } else { std::net::Ipv6Addr::LOCALHOST.into() });
        }
        address
    }

    /// Takes the note away, unless another has written its own meanwhile.
    pub fn remove(&self, home: &Path) {
        let path = note(home);
        let ours =
            std::fs::read(&path).ok().and_then(|text| serde_json::from_slice::<Self>(&text).ok()).is_some_and(|it| it.pid == self.pid);
        if ours {
            let _ = std::fs::remove_file(path);
        }
    }
}

fn note(home: &Path) -> PathBuf {
    home.join("serve.json")
}
