//! A browser of its own for one run, and its end: nothing of it stays behind, however the run or the agent ends.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, ChildStdin, Command};

use super::driver::Session;
use super::settings::Programs;

const PROFILE: &str = "glb-";
const START: Duration = Duration::from_secs(20);
/// Starts the driver, and ends its whole process group when standard input closes: when the agent drops it, or is killed.
const LEASH: &str = r#""$0" --port=0 & read -r _; kill -9 0"#;

/// The driver, the browser, and the folder of its profile. Dropping it ends them.
#[derive(Debug)]
pub(super) struct Browser {
    pub session: Session,
    _processes: Processes,
}

#[derive(Debug)]
struct Processes {
    _shell: Child,
    _leash: ChildStdin,
    group: Option<Pid>,
    profile: PathBuf,
}

impl Drop for Processes {
    fn drop(&mut self) {
        if let Some(group) = self.group {
            let _ = killpg(group, Signal::SIGKILL);
        }
        // What the dying browser still writes is removed by the next start.
        let _ = std::fs::remove_dir_all(&self.profile);
    }
}

impl Browser {
    /// `proxy` is the only way out that it gets.
    pub(super) async fn start(programs: &Programs, proxy: u16) -> Result<Self, String> {
        let profile = profile().map_err(|error| format!("create a folder for the browser's profile: {error}"))?;
        let mut command = Command::new("sh");
        command.args(["-c", LEASH]).arg(&programs.chromedriver).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).env("HOME", &profile).env("TMPDIR", &profile);
        let started = command.spawn();
        let mut shell = started.map_err(|error| format!("start {}: {error}", programs.chromedriver.display()))?;
        let group = shell.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
        let (Some(leash), Some(output)) = (shell.stdin.take(), shell.stdout.take()) else { return Err("no pipes".to_owned()) };
        let processes = Processes { _shell: shell, _leash: leash, group, profile };
        let mut lines = BufReader::new(output).lines();
        let port = async {
            while let Ok(Some(line)) = lines.next_line().await {
                if let Some((_, port)) = line.split_once("started successfully on port ") {
                    return port.trim_end_matches('.').parse::<u16>().ok();
                }
            }
            None
        };
        let port = tokio::time::timeout(START, port).await.ok().flatten().ok_or("the browser's driver does not start")?;
        // Read on, or the driver stops at a full pipe.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        let options = json!({
            "binary": programs.chromium,
            "args": arguments(&processes.profile, proxy),
            "prefs": {"download_restrictions": 3, "credentials_enable_service": false},
        });
        let session = tokio::time::timeout(START, Session::begin(port, options)).await;
        let session = session.map_err(|_| "the browser does not start".to_owned())?.map_err(|error| error.to_string())?;
        // Peer connections would reach addresses without the proxy.
        let script = json!({"source": "delete window.RTCPeerConnection; delete window.webkitRTCPeerConnection;"});
        session.chromium("Page.addScriptToEvaluateOnNewDocument", script).await.map_err(|error| error.to_string())?;
        Ok(Self { session, _processes: processes })
    }
}

fn arguments(profile: &Path, proxy: u16) -> Vec<String> {
    let mut arguments: Vec<String> = [
        "--headless=new",
        // The browser ends when its driver does.
        "--remote-debugging-pipe",
        // Loopback goes through the proxy like everything else.
        "--proxy-bypass-list=<-loopback>",
        "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
        "--disable-quic",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-default-apps",
        "--disable-extensions",
        "--disable-sync",
        "--disable-dev-shm-usage",
        "--disable-crash-reporter",
        "--disable-breakpad",
        "--no-first-run",
        "--no-default-browser-check",
        "--mute-audio",
        "--window-size=1280,800",
        // Elements say their accessible names, by which recordings find them.
        "--enable-blink-features=ComputedAccessibilityInfo",
    ]
    .map(str::to_owned)
    .to_vec();
    arguments.push(format!("--proxy-server=http://127.0.0.1:{proxy}"));
    arguments.push(format!("--user-data-dir={}", profile.join("profile").display()));
    if nix::unistd::geteuid().is_root() {
        // It refuses to start as root otherwise. The manual asks for an agent that is not root.
        arguments.push("--no-sandbox".to_owned());
    }
    arguments
}

/// A folder that others cannot enter. Its name is short: the browser makes a socket below it, whose path has at most 107 bytes.
fn profile() -> std::io::Result<PathBuf> {
    use std::os::unix::fs::DirBuilderExt as _;
    let random = uuid::Uuid::new_v4().simple().to_string();
    let path = std::env::temp_dir().join(format!("{PROFILE}{}-{}", std::process::id(), &random[..8]));
    std::fs::DirBuilder::new().mode(0o700).create(&path)?;
    Ok(path)
}

/// Removes profiles that killed agents left. Each is named for its agent.
pub(super) fn sweep() {
    for entry in std::fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let owner = name.strip_prefix(PROFILE).and_then(|rest| rest.split_once('-')).and_then(|(owner, _)| owner.parse::<i32>().ok());
        let ended = owner.is_some_and(|owner| kill(Pid::from_raw(owner), None) == Err(nix::errno::Errno::ESRCH));
        if ended {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}
