//! `gleaner agent watch`: a live view in the terminal.

use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result};
use gleaner_agent::status::client::{Error, Remote};
use nix::sys::termios::{LocalFlags, SetArg, SpecialCharacterIndices, Termios, tcgetattr, tcsetattr};
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::{Named, show};
use crate::App;
use crate::output::{BAD, DIM, paint};
use crate::signals::Signals;
use crate::words::member;

const EVERY: Duration = Duration::from_secs(1);

/// Watch an agent at work; q quits.
///
/// In a terminal: p pauses and resumes, + and - change how many items are in work at once. Elsewhere, a line each second.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner agent watch
  gleaner agent watch laptop
  gleaner agent watch --json | jq -r .state     a line of JSON each second")]
pub(super) struct Args {
    #[command(flatten)]
    named: Named,
}

pub(super) async fn run(app: &App, args: Args) -> Result<ExitCode> {
    let mut signals = Signals::listen()?;
    let remote = args.named.find(app).await?;
    let terminal = io::stdout().is_terminal() && io::stdin().is_terminal() && !app.out.json;
    if !terminal {
        return lines(app, &remote, &mut signals).await;
    }
    let mut resizes = signal(SignalKind::window_change()).context("listen for the terminal's size")?;
    let screen = Screen::enter()?;
    let mut keys = Keys::read();
    let mut every = tokio::time::interval(EVERY);
    let mut last = Value::Null;
    loop {
        let answer = tokio::select! {
            () = signals.any() => break,
            _ = every.tick() => remote.status().await,
            _ = resizes.recv() => remote.status().await,
            key = keys.next() => match key {
                None | Some(b'q' | b'Q' | END_OF_INPUT | ESCAPE) => break,
                Some(b'p' | b' ') if last["paused"] == true => remote.resume().await,
                Some(b'p' | b' ') => remote.pause().await,
                Some(b'+') => remote.set_concurrency(concurrency(&last) + 1).await,
                Some(b'-') => remote.set_concurrency(concurrency(&last).saturating_sub(1).max(1)).await,
                Some(_) => continue,
            },
        };
        let (text, hint) = text(&remote, &answer);
        screen.draw(&text, &hint)?;
        last = answer.unwrap_or(last);
    }
    Ok(ExitCode::SUCCESS)
}

fn concurrency(view: &Value) -> usize {
    view["concurrency"].as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or(1)
}

/// The text of the view, and the available keys.
fn text(remote: &Remote, answer: &Result<Value, Error>) -> (String, String) {
    match answer {
        Ok(view) => {
            (show::lines(view, remote.url()), paint(DIM, "q quits · p pauses and resumes · + and - change how many at once").to_string())
        }
        Err(error) => (paint(BAD, error).to_string(), paint(DIM, "q quits").to_string()),
    }
}

async fn lines(app: &App, remote: &Remote, signals: &mut Signals) -> Result<ExitCode> {
    let mut every = tokio::time::interval(EVERY);
    loop {
        tokio::select! { () = signals.any() => return Ok(ExitCode::SUCCESS), _ = every.tick() => {} }
        // The watch ends with the agent.
        let view = remote.status().await?;
        app.out.json_line(&view);
        let pending: u64 = view["queues"].as_array().into_iter().flatten().filter_map(|queue| queue["pending"].as_u64()).sum();
        app.out.line(format!(
            "{}  {pending} pending  {} completed  {} failed",
            show::state(&view),
            member(&view, "completed"),
            member(&view, "failed")
        ));
    }
}

const END_OF_INPUT: u8 = 4;
const ESCAPE: u8 = 27;
/// Terminals send the rest of a key such as an arrow right after its first byte; people type more slowly.
const SAME_KEY: Duration = Duration::from_millis(50);

/// Keys as they are pressed.
struct Keys(mpsc::UnboundedReceiver<u8>);

impl Keys {
    /// In a thread, because a read from a terminal cannot be cancelled.
    fn read() -> Self {
        let (pressed, keys) = mpsc::unbounded_channel();
        std::thread::spawn(move || {
            for key in io::stdin().lock().bytes() {
                let Ok(key) = key else { return };
                if pressed.send(key).is_err() {
                    return;
                }
            }
        });
        Self(keys)
    }

    /// The next key that is a single byte. An arrow is several, of which the first alone would be Escape.
    async fn next(&mut self) -> Option<u8> {
        loop {
            let key = self.0.recv().await?;
            if key != ESCAPE || !self.skip_sequence().await {
                return Some(key);
            }
        }
    }

    /// Whether more bytes belonged to the key.
    async fn skip_sequence(&mut self) -> bool {
        let mut more = false;
        while let Ok(Some(byte)) = tokio::time::timeout(SAME_KEY, self.0.recv()).await {
            let introduces = !more && matches!(byte, b'[' | b'O');
            more = true;
            if !introduces && (0x40..=0x7e).contains(&byte) {
                break;
            }
        }
        more
    }
}

/// The alternate screen, with keys read without Enter. Everything is restored when this is dropped.
struct Screen {
    before: Termios,
}

impl Screen {
    fn enter() -> Result<Self> {
        let before = tcgetattr(io::stdin()).context("ask the terminal")?;
        let mut raw = before.clone();
        raw.local_flags.remove(LocalFlags::ICANON | LocalFlags::ECHO);
        // Ctrl-Z would leave the shell on our screen, without echo.
        raw.control_chars[SpecialCharacterIndices::VSUSP as usize] = nix::libc::_POSIX_VDISABLE;
        tcsetattr(io::stdin(), SetArg::TCSANOW, &raw).context("set the terminal")?;
        let screen = Self { before };
        // The alternate screen, no cursor, and no line wrap where a terminal disagrees about the width of a character.
        screen.command("\x1b[?1049h\x1b[?25l\x1b[?7l");
        Ok(screen)
    }

    /// Commands are not colours, so they are sent even when NO_COLOR is set.
    fn command(&self, text: &str) {
        let mut out = io::stdout().lock();
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }

    /// Text that does not fit is cut, but the line of keys is always shown.
    fn draw(&self, text: &str, hint: &str) -> Result<()> {
        let (width, height) = terminal_size::terminal_size().map_or((80, 24), |(width, height)| (width.0.into(), height.0.into()));
        self.command("\x1b[H");
        for (number, line) in text.lines().take(usize::saturating_sub(height, 2)).chain(["", hint]).enumerate() {
            if number > 0 {
                self.command("\r\n");
            }
            anstream::print!("{}", cut(line, width));
            io::stdout().flush().context("draw")?;
            self.command("\x1b[K");
        }
        self.command("\x1b[J");
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.command("\x1b[?7h\x1b[?25h\x1b[?1049l");
        let _ = tcsetattr(io::stdin(), SetArg::TCSANOW, &self.before);
    }
}

/// Cuts the line to the available width, and marks that. A terminal that cuts by itself gives no sign of it.
fn cut(line: &str, width: usize) -> String {
    let (mut out, mut used, mut in_colour) = (String::new(), 0, false);
    let room = if console_width(line) > width { width.saturating_sub(1) } else { width };
    for letter in line.chars() {
        match letter {
            '\x1b' => in_colour = true,
            _ if in_colour => in_colour = !letter.is_ascii_alphabetic(),
            _ => {
                used += letter.width().unwrap_or(0);
                if used > room {
                    out.push_str("…\x1b[0m");
                    return out;
                }
            }
        }
        out.push(letter);
    }
    out
}

/// Its width on the screen, without colour codes.
fn console_width(line: &str) -> usize {
    anstream::adapter::strip_str(line).to_string().width()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_does_not_fit_is_cut_and_says_so() {
        assert_eq!(cut("twelve chars", 12), "twelve chars");
        assert_eq!(cut("twelve chars", 11), "twelve cha…\x1b[0m");
        assert_eq!(cut("\x1b[31mtwelve chars\x1b[0m", 12), "\x1b[31mtwelve chars\x1b[0m");
        assert_eq!(cut("\x1b[31mtwelve chars\x1b[0m", 7), "\x1b[31mtwelve…\x1b[0m");
        // Wide characters take two columns.
        assert_eq!(cut("漢字漢字", 5), "漢字…\x1b[0m");
        assert_eq!(cut("", 5), "");
    }
}
