//! `gleaner agent watch` in a real pseudo-terminal, which `script` makes.

use std::io::{Read as _, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};

use super::Team;
use crate::support::{GLEANER, eventually};

/// A terminal with a shell in it.
struct Terminal {
    script: Child,
    keys: ChildStdin,
    seen: Arc<Mutex<Vec<u8>>>,
    tty: String,
}

impl Terminal {
    /// Watches, and then tells how it ended and how it left the terminal.
    fn watching(team: &Team) -> Self {
        let line = format!("trap : INT; stty rows 24 cols 80; echo \"at $(tty).\"; '{GLEANER}' agent watch; echo \"ended $?.\"; stty -a");
        let mut command = Command::new("script");
        command.args(["-qec", &line, "/dev/null"]).env("GLEANER_HOME", team.gleaner.home()).env("TERM", "xterm").env("SHELL", "/bin/sh");
        let mut script = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("script, of the package bsdutils");
        let (keys, mut out) = (script.stdin.take().expect("piped"), script.stdout.take().expect("piped"));
        let seen = Arc::new(Mutex::new(Vec::new()));
        std::thread::spawn({
            let seen = seen.clone();
            move || {
                let mut bytes = [0; 4096];
                while let Ok(n @ 1..) = out.read(&mut bytes) {
                    seen.lock().expect("not poisoned").extend_from_slice(&bytes[..n]);
                }
            }
        });
        let mut terminal = Self { script, keys, seen, tty: String::new() };
        terminal.until("at /dev/");
        terminal.until(".\r\n");
        let text = terminal.text();
        terminal.tty = text.split_once("at ").and_then(|(_, rest)| rest.split_once('.')).expect("a name").0.to_owned();
        terminal
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().expect("not poisoned")).into_owned()
    }

    fn until(&self, text: &str) {
        eventually(&format!("the terminal to show {text:?} in {:?}", self.text()), || self.text().contains(text));
    }

    fn forget(&self) {
        self.seen.lock().expect("not poisoned").clear();
    }

    fn press(&mut self, keys: &[u8]) {
        self.keys.write_all(keys).and_then(|()| self.keys.flush()).expect("it reads");
    }

    fn resize(&self, rows: u16, columns: u16) {
        let size = ["-F", &self.tty, "rows", &rows.to_string(), "cols", &columns.to_string()].map(str::to_owned);
        assert!(Command::new("stty").args(size).status().expect("stty").success());
    }

    /// The lines of the newest whole drawing, colours taken out.
    fn drawn(&self) -> Vec<String> {
        let text = self.text();
        let Some((before, _)) = text.rsplit_once("\x1b[J") else { return Vec::new() };
        let drawing = before.rsplit_once("\x1b[H").map_or(before, |(_, drawing)| drawing);
        let mut plain = String::new();
        let mut in_command = false;
        for letter in drawing.chars() {
            match letter {
                '\x1b' => in_command = true,
                _ if in_command => in_command = !letter.is_ascii_alphabetic(),
                _ => plain.push(letter),
            }
        }
        // The terminal makes two returns of one.
        plain.lines().map(|line| line.trim_end_matches('\r').to_owned()).collect()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.script.kill();
        let _ = self.script.wait();
    }
}

#[test]
fn watching_in_a_terminal_fits_it_obeys_keys_and_leaves_it_as_it_was() {
    let team = Team::new();
    let ada = team.person("ada");
    let _agent = team.agent("ada", &ada, &[]);
    let mut terminal = Terminal::watching(&team);
    terminal.until("\x1b[?1049h");
    terminal.until("change how many at once");
    eventually("the queue to be shown", || terminal.drawn().iter().any(|line| line.starts_with("activities")));

    // An arrow begins with the byte that Escape is, and is no Escape.
    terminal.press(b"\x1b[A\x1bOB");
    terminal.press(b"p");
    eventually("it to be paused", || terminal.drawn().first().is_some_and(|line| line.contains("paused")));
    terminal.press(b"p");
    eventually("it to go on", || terminal.drawn().first().is_some_and(|line| line.contains("idle")));
    terminal.press(b"+");
    eventually("one more at once", || terminal.drawn().iter().any(|line| line.contains("at once") && line.ends_with('5')));

    // Whatever the size, lines fit, what is cut says so, and the keys stay in sight.
    for (rows, columns) in [(24, 120), (8, 40), (24, 80)] {
        terminal.forget();
        terminal.resize(rows, columns);
        // A drawing that was under way may still have the former size.
        let mut drawn = Vec::new();
        let end = if columns == 40 { "…" } else { "at once" };
        eventually("the keys to be drawn anew", || {
            drawn = terminal.drawn();
            drawn.last().is_some_and(|keys| keys.starts_with("q quits") && keys.ends_with(end))
        });
        assert!(drawn.len() <= rows.into() && drawn.iter().all(|line| line.chars().count() <= columns.into()), "{columns}: {drawn:#?}");
    }

    // Ctrl-Z would leave the shell on our screen; Ctrl-C ends it.
    terminal.press(b"\x1a");
    terminal.press(b"\x03");
    terminal.until("ended 0.");
    terminal.until("-echoprt");
    let text = terminal.text();
    let left = text.split("\x1b[?1049l").nth(1).unwrap_or_else(|| panic!("it stayed on its screen: {text:?}"));
    assert!(text.contains("\x1b[?25h") && text.contains("\x1b[?7h"), "no cursor, or no long lines: {text:?}");
    let is = |flag: &str| left.split([' ', ';', '\r', '\n']).any(|word| word == flag);
    assert!(is("icanon") && is("echo") && is("isig"), "{left}");
    assert!(left.contains("susp = ^Z"), "{left}");
}
