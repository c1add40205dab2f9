//! The output of commands: text for people, JSON for scripts, colours on terminals only (and not with NO_COLOR).

use std::fmt::Display;
use std::io::{self, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use anstyle::{AnsiColor, Color, Style};
use serde::Serialize;
use tracing_subscriber::EnvFilter;

pub(crate) const GOOD: Style = Style::new().fg_color(Some(Color::Ansi(AnsiColor::Green)));
pub(crate) const BAD: Style = Style::new().fg_color(Some(Color::Ansi(AnsiColor::Red))).bold();
pub(crate) const BUSY: Style = Style::new().fg_color(Some(Color::Ansi(AnsiColor::Cyan)));
pub(crate) const WARN: Style = Style::new().fg_color(Some(Color::Ansi(AnsiColor::Yellow)));
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const PLAIN: Style = Style::new();

/// The text in that style. Where the output shows no colours, the codes are removed again when printing.
pub(crate) fn paint(style: Style, text: impl Display) -> String {
    format!("{style}{text}{style:#}")
}

/// The style of a state, the same in every table.
pub(crate) fn of_state(state: &str) -> Style {
    match state {
        "done" => GOOD,
        "running" => BUSY,
        "failed" | "expired" | "backing off" => WARN,
        "dead" => BAD,
        "scheduled" | "cancelled" | "finished" => DIM,
        _ => PLAIN,
    }
}

/// Prints the output of commands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    pub json: bool,
    pub quiet: bool,
}

impl Output {
    pub(crate) fn new(json: bool, quiet: bool) -> Self {
        Self { json, quiet }
    }

    /// The requested result, always printed.
    pub(crate) fn data(self, text: impl Display) {
        print(&text.to_string());
    }

    /// The requested result for people: a listing or an explanation. Printed also with --quiet.
    pub(crate) fn listing(self, text: impl Display) {
        if !self.json {
            print(&text.to_string());
        }
    }

    /// A line for people that says what was done.
    pub(crate) fn line(self, text: impl Display) {
        if !self.json && !self.quiet {
            print(&text.to_string());
        }
    }

    /// The result for scripts, when JSON was requested.
    pub(crate) fn json(self, value: &impl Serialize) {
        if self.json {
            self.data(serde_json::to_string_pretty(value).expect("our own values are JSON"));
        }
    }

    /// One event of many, for scripts that read line by line.
    pub(crate) fn json_line(self, value: &impl Serialize) {
        if self.json {
            self.data(serde_json::to_string(value).expect("our own values are JSON"));
        }
    }

    /// Progress messages, separate from the result.
    pub(crate) fn note(self, text: impl Display) {
        if !self.quiet {
            // A closed standard error is no reason to stop.
            let _ = writeln!(anstream::stderr().lock(), "{text}");
        }
    }
}

/// Whether a SIGTERM handler is installed that has to clean up first.
static ORDERLY: AtomicBool = AtomicBool::new(false);

/// From now on a closed pipe ends this process by SIGTERM to itself, so that it can clean up.
pub(crate) fn end_orderly() {
    ORDERLY.store(true, Ordering::SeqCst);
}

/// A reader that closes the pipe early (`| head`) ends this process quietly, as is usual for command-line tools.
fn print(text: &str) {
    let mut out = anstream::stdout().lock();
    if let Err(error) = writeln!(out, "{text}").and_then(|()| out.flush())
        && error.kind() == io::ErrorKind::BrokenPipe
    {
        static SIGNALLED: AtomicBool = AtomicBool::new(false);
        match (ORDERLY.load(Ordering::SeqCst), SIGNALLED.swap(true, Ordering::SeqCst)) {
            (false, _) => std::process::exit(0),
            (true, false) => drop(nix::sys::signal::raise(nix::sys::signal::Signal::SIGTERM)),
            (true, true) => {}
        }
    }
}

/// Our own log goes to standard error: warnings, more with `-v`, or what RUST_LOG says if it is set.
pub(crate) fn start_tracing(verbose: u8) {
    let level =
        ["warn", "gleaner=info,gleaner_postgres=info,warn", "gleaner=debug,gleaner_postgres=debug,info"][usize::from(verbose.min(2))];
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    let colours = anstream::AutoStream::choice(&io::stderr()) != anstream::ColorChoice::Never;
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).with_ansi(colours).with_target(false).init();
}
