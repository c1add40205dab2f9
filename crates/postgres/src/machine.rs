//! The memory and disk of this machine.

use std::fs;
use std::path::Path;

/// One mebibyte.
pub(crate) const MB: u64 = 1024 * 1024;

/// What the settings are sized by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Machine {
    pub(crate) memory: u64,
    pub(crate) free_disk: u64,
}

impl Machine {
    /// Memory, limited by the container, and the free space of the disk that `data` is on.
    pub(crate) fn measure(data: &Path) -> Self {
        let total = total_memory().unwrap_or(2048 * MB);
        let memory = container_limit().map_or(total, |limit| limit.min(total));
        // The count has 32 bits on some systems and 64 on others.
        #[allow(clippy::unnecessary_cast)]
        let free_disk =
            nix::sys::statvfs::statvfs(data).map_or(64 * 1024 * MB, |disk| disk.blocks_available() as u64 * disk.fragment_size());
        Self { memory, free_disk }
    }
}

#[cfg(target_os = "linux")]
fn total_memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kilobytes * 1024)
}

#[cfg(not(target_os = "linux"))]
fn total_memory() -> Option<u64> {
    let output = std::process::Command::new("sysctl").args(["-n", "hw.memsize"]).output().ok()?;
    String::from_utf8_lossy(&output.stdout).trim().parse().ok()
}

/// The limit of the control group we run in, for both cgroup versions.
fn container_limit() -> Option<u64> {
    ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]
        .iter()
        .find_map(|path| fs::read_to_string(path).ok()?.trim().parse().ok())
}
