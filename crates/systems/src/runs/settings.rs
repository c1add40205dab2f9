//! What a machine offers for runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ipnet::IpNet;

/// The section `runs` of the configuration.
#[derive(Clone, Default)]
pub struct Settings {
    /// The browser. None: the first of [`BROWSERS`] on the `PATH`.
    pub chromium: Option<PathBuf>,
    /// Its driver. None: `chromedriver` on the `PATH`.
    pub chromedriver: Option<PathBuf>,
    /// Runs at once on this machine; each has a browser of its own. Zero takes none.
    pub slots: usize,
    /// The labels of this machine. It takes runs without a label, and those with one of these.
    pub labels: Vec<String>,
    /// Runs at once on one site, by all agents together, where the table `run_sites` does not say otherwise.
    pub per_site: usize,
    /// Private networks that pages may reach.
    pub allow: Vec<IpNet>,
    /// Values that a recording may use as `{{secret.NAME}}`.
    pub secrets: BTreeMap<String, String>,
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&String> = self.secrets.keys().collect();
        f.debug_struct("Settings")
            .field("slots", &self.slots)
            .field("labels", &self.labels)
            .field("secrets", &names)
            .finish_non_exhaustive()
    }
}

/// Names of the browser, as systems install it.
const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// A browser and its driver.
#[derive(Debug, Clone)]
pub(super) struct Programs {
    pub chromium: PathBuf,
    pub chromedriver: PathBuf,
}

impl Programs {
    /// What is missing, for people.
    pub(super) fn find(settings: &Settings) -> Result<Self, &'static str> {
        let given = |path: &Option<PathBuf>| path.clone().filter(|path| path.is_file());
        let chromium = match &settings.chromium {
            Some(_) => given(&settings.chromium),
            None => BROWSERS.iter().find_map(|name| on_path(name)),
        };
        let chromedriver = match &settings.chromedriver {
            Some(_) => given(&settings.chromedriver),
            None => on_path("chromedriver"),
        };
        Ok(Self { chromium: chromium.ok_or("chromium")?, chromedriver: chromedriver.ok_or("chromedriver (Debian: chromium-driver)")? })
    }
}

fn on_path(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}
