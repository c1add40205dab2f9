//! `gleaner agent watch`: a live view in the terminal.

use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result};
use gleaner_agent::status::client::{Error, Remote};
use nix::sys::termios::{LocalFlags, SetArg, Termios, tcgetattr, tcsetattr};
use serde_json::Value;
use tokio::sync::mpsc;

use super::{Named, show};
use crate::Desk;
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
pub struct Args {
    #[command(flatten)]
    named: Named,
}

pub async fn run(desk: &Desk, args: Args) -> Result<ExitCode> {
    let mut signals = Signals::listen()?;
    let remote = args.named.find(desk).await?;
    let terminal = io::stdout().is_terminal() && io::stdin().is_terminal() && !desk.out.json;
    if !terminal {
        return lines(desk, &remote, &mut signals).await;
    }
    let screen = Screen::enter()?;
    let mut keys = keys();
    let mut every = tokio::time::interval(EVERY);
    let mut last = Value::Null;
    loop {
        let answer = tokio::select! {
            () = signals.any() => break,
            _ = every.tick() => remote.status().await,
            key = keys.recv() => match key {
                None | Some(b'q' | b'Q' | 4 | 27) => break,
                Some(b'p' | b' ') if last["paused"] == true => remote.resume().await,
                Some(b'p' | b' ') => remote.pause().await,
                Some(b'+') => remote.set_concurrency(concurrency(&last) + 1).await,
                Some(b'-') => remote.set_concurrency(concurrency(&last).saturating_sub(1).max(1)).await,
                Some(_) => continue,
            },
        };
        screen.draw(&text(&remote, &answer))?;
        last = answer.unwrap_or(last);
    }
    Ok(ExitCode::SUCCESS)
}

fn concurrency(view: &Value) -> usize {
    view["concurrency"].as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or(1)
}

fn text(remote: &Remote, answer: &Result<Value, Error>) -> String {
    match answer {
        Ok(view) => format!(
            "{}\n\n{}",
            show::lines(view, remote.url()),
            paint(DIM, "q quits · p pauses and resumes · + and - change how many at once")
        ),
        Err(error) => format!("{}\n\n{}", paint(BAD, error), paint(DIM, "q quits")),
    }
}

async fn lines(desk: &Desk, remote: &Remote, signals: &mut Signals) -> Result<ExitCode> {
    let mut every = tokio::time::interval(EVERY);
    loop {
        tokio::select! { () = signals.any() => return Ok(ExitCode::SUCCESS), _ = every.tick() => {} }
        // It ends with the agent.
        let view = remote.status().await?;
        desk.out.json_line(&view);
        let pending: u64 = view["queues"].as_array().into_iter().flatten().filter_map(|queue| queue["pending"].as_u64()).sum();
        desk.out.line(format!(
            "{}  {pending} pending  {} completed  {} failed",
            show::state(&view),
            member(&view, "completed"),
            member(&view, "failed")
        ));
    }
}

/// Keys as they are pressed, from a thread: reading a terminal cannot be given up on.
fn keys() -> mpsc::UnboundedReceiver<u8> {
    let (pressed, keys) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for key in io::stdin().lock().bytes() {
            let Ok(key) = key else { return };
            if pressed.send(key).is_err() {
                return;
            }
        }
    });
    keys
}

/// A screen of our own, and keys without Enter. Everything is as it was when this is dropped.
struct Screen {
    before: Termios,
}

impl Screen {
    fn enter() -> Result<Self> {
        let before = tcgetattr(io::stdin()).context("ask the terminal")?;
        let mut raw = before.clone();
        raw.local_flags.remove(LocalFlags::ICANON | LocalFlags::ECHO);
        tcsetattr(io::stdin(), SetArg::TCSANOW, &raw).context("set the terminal")?;
        let screen = Self { before };
        // The other screen, no cursor, long lines cut.
        screen.command("\x1b[?1049h\x1b[?25l\x1b[?7l");
        Ok(screen)
    }

    /// Commands are not colours: they are meant also where NO_COLOR is set.
    fn command(&self, text: &str) {
        let mut out = io::stdout().lock();
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }

    fn draw(&self, text: &str) -> Result<()> {
        let height = terminal_size::terminal_size().map_or(24, |(_, height)| usize::from(height.0));
        self.command("\x1b[H");
        for (number, line) in text.lines().take(height).enumerate() {
            if number > 0 {
                self.command("\r\n");
            }
            anstream::print!("{line}");
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
