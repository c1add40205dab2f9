//! A shell or psql that is given one command at a time.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

const END: &str = "-- end of command --";

pub(crate) struct Session {
    child: Child,
    lines: Receiver<String>,
    /// Prints the end mark, with the status of the command where there is one.
    mark: &'static str,
}

pub(crate) struct Answer {
    pub printed: Vec<String>,
    pub failed: bool,
}

impl Session {
    pub(crate) fn shell(folder: &Path, variables: &[(&str, &str)]) -> Self {
        let mut command = Command::new("bash");
        command.args(["--noprofile", "--norc"]).current_dir(folder).env_remove("DATABASE_URL").env_remove("RUST_LOG");
        command.envs(variables.iter().copied());
        let mut session = Self::start(command, "printf '\\n%s %s\\n' '-- end of command --' \"$?\"");
        session.run("exec 2>&1");
        session
    }

    /// Each block of statements is a session of its own.
    pub(crate) fn psql(url: &str, path: &str) -> Self {
        let mut command = Command::new("sh");
        // By lines, or errors would overtake results.
        command.args(["-c", "exec stdbuf -oL psql -X \"$0\" 2>&1", url]).env("PATH", path);
        let mut session = Self::start(command, "\\echo\n\\echo -- end of command -- 0");
        session.run("\\set SHOW_CONTEXT never");
        session
    }

    fn start(mut command: Command, mark: &'static str) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
        let (sender, lines) = channel();
        let out = BufReader::new(child.stdout.take().expect("piped"));
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Self { child, lines, mark }
    }

    pub(crate) fn run(&mut self, command: &str) -> Answer {
        let input = self.child.stdin.as_mut().expect("piped");
        input.write_all(format!("{command}\n{}\n", self.mark).as_bytes()).expect("it reads");
        let mut printed = Vec::new();
        loop {
            let Ok(line) = self.lines.recv_timeout(Duration::from_secs(60)) else {
                printed.push("(no answer within a minute)".to_owned());
                return Answer { printed, failed: true };
            };
            if let Some(status) = line.strip_prefix(END) {
                return Answer { printed, failed: status.trim() != "0" };
            }
            printed.push(line);
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
