//! The one command that installs PostgreSQL on this system.

use std::fs;
use std::path::Path;

/// A sentence with the command, based on the `etc/os-release` under `root`.
pub(crate) fn advice(root: &Path) -> String {
    let system = System::read(root);
    let is_root = nix::unistd::geteuid().is_root();
    match system.command(root) {
        Some(command) if system.needs_root() && !is_root => format!("Install it with: {}", with_sudo(&command)),
        Some(command) => format!("Install it with: {command}"),
        None => "Install it with the package manager of this system (the package with the server, `postgresql-server` or \
                 `postgresql`)"
            .to_owned(),
    }
}

#[derive(Debug, Default)]
struct System {
    /// The distribution, then those it is based on.
    ids: Vec<String>,
    version: f32,
}

impl System {
    fn read(root: &Path) -> Self {
        let text = fs::read_to_string(root.join("etc/os-release"))
            .or_else(|_| fs::read_to_string(root.join("usr/lib/os-release")))
            .unwrap_or_default();
        let value = |key: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
            line.unwrap_or_default().trim_matches(['"', '\'']).to_owned()
        };
        let mut ids = vec![value("ID")];
        ids.extend(value("ID_LIKE").split_whitespace().map(str::to_owned));
        if text.is_empty() && cfg!(target_os = "macos") {
            ids = vec!["macos".to_owned()];
        }
        // Parses 22.04 and 9.4 alike. A rolling distribution has no version and counts as new.
        let version = value("VERSION_ID").parse().unwrap_or(f32::MAX);
        Self { ids, version }
    }

    fn needs_root(&self) -> bool {
        !self.ids.iter().any(|id| id == "macos" || id == "nixos")
    }

    fn command(&self, root: &Path) -> Option<String> {
        self.ids.iter().find_map(|id| self.command_for(id, root))
    }

    fn command_for(&self, id: &str, root: &Path) -> Option<String> {
        let is = |name: &str| self.ids.first().is_some_and(|first| first == name);
        let command = match id {
            // Distributions whose own package is older than 15 get the one of postgresql.org.
            "debian" | "ubuntu" if (is("debian") && self.version < 12.0) || (is("ubuntu") && self.version < 23.04) => {
                "apt-get install -y postgresql-common && /usr/share/postgresql-common/pgdg/apt.postgresql.org.sh -y && \
                 apt-get install -y postgresql-17"
            }
            "debian" | "ubuntu" if has_no_package_lists(root) => "apt-get update && apt-get install -y postgresql",
            "debian" | "ubuntu" => "apt-get install -y postgresql",
            "rhel" | "centos" if self.version < 10.0 => "dnf module install -y postgresql:15/server",
            "fedora" if !is("fedora") && self.version < 10.0 => "dnf module install -y postgresql:15/server",
            "fedora" | "rhel" | "centos" => "dnf install -y postgresql-server",
            "amzn" => "dnf install -y postgresql15-server",
            "alpine" => "apk add postgresql",
            "arch" => "pacman -S --noconfirm postgresql",
            "suse" | "opensuse" => "zypper install -y postgresql-server",
            "gentoo" => "emerge dev-db/postgresql",
            "void" => "xbps-install -y postgresql17",
            "freebsd" => "pkg install -y postgresql17-server",
            "nixos" => "nix profile install nixpkgs#postgresql",
            "macos" => "brew install postgresql@17",
            _ => return None,
        };
        Some(command.to_owned())
    }
}

/// A fresh container has no package lists, and apt-get finds no package without them.
fn has_no_package_lists(root: &Path) -> bool {
    let lists = root.join("var/lib/apt/lists");
    !fs::read_dir(lists).is_ok_and(|entries| entries.flatten().any(|entry| entry.path().is_file() && entry.file_name() != "lock"))
}

fn with_sudo(command: &str) -> String {
    command.split(" && ").map(|part| format!("sudo {part}")).collect::<Vec<_>>().join(" && ")
}

#[cfg(test)]
mod tests {
    use super::{System, with_sudo};
    use std::path::Path;

    fn command(ids: &[&str], version: f32) -> String {
        let system = System { ids: ids.iter().map(|id| (*id).to_owned()).collect(), version };
        system.command(Path::new("/")).expect("a command")
    }

    #[test]
    fn each_distribution_has_its_own_command() {
        assert_eq!(command(&["fedora"], 42.0), "dnf install -y postgresql-server");
        assert_eq!(command(&["rocky", "rhel", "centos", "fedora"], 9.4), "dnf module install -y postgresql:15/server");
        assert_eq!(command(&["alpine"], 3.2), "apk add postgresql");
        assert_eq!(command(&["manjaro", "arch"], f32::MAX), "pacman -S --noconfirm postgresql");
        assert!(command(&["linuxmint", "ubuntu", "debian"], 22.0).ends_with("apt-get install -y postgresql"));
        assert!(command(&["ubuntu", "debian"], 22.04).ends_with("apt-get install -y postgresql-17"));
    }

    #[test]
    fn every_part_of_a_command_gets_its_sudo() {
        assert_eq!(with_sudo("a x && b y"), "sudo a x && sudo b y");
    }
}
