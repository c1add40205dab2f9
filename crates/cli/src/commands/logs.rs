//! `gleaner logs`.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::App;
use crate::output::{BOLD, paint};

/// Show what the private PostgreSQL has logged, and `gleaner up --detach` with it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner logs
  gleaner logs -f               and what comes
  gleaner logs -n 1000 | grep ERROR")]
pub(crate) struct Args {
    /// Follow the log until Ctrl-C
    #[arg(short, long)]
    follow: bool,
    /// How many lines of each log
    #[arg(short = 'n', long, default_value_t = 50)]
    lines: usize,
}

/// A log, and how far it has been shown.
struct Log {
    path: PathBuf,
    at: u64,
}

pub(crate) async fn run(app: &App, args: Args) -> Result<ExitCode> {
    if app.target.given().is_some() {
        bail!("DATABASE_URL is set, and the log of that server is not ours to read\n  Unset it to read the log of the private PostgreSQL");
    }
    let home = app.target.home()?;
    let all = [home.log(), home.path().join("log/gleaner.log")];
    let mut logs: Vec<Log> = all.into_iter().filter(|path| path.exists()).map(|path| Log { path, at: 0 }).collect();
    if logs.is_empty() {
        app.out.note(format!("Nothing has been logged in {} yet. `gleaner up` starts PostgreSQL there.", home.path().display()));
        return Ok(ExitCode::SUCCESS);
    }
    let several = logs.len() > 1;
    for log in &mut logs {
        let lines = log.last(args.lines)?;
        if several && !lines.is_empty() {
            app.out.line(paint(BOLD, format!("==> {}", log.path.display())));
        }
        lines.iter().for_each(|line| app.out.data(line));
    }
    if !args.follow {
        return Ok(ExitCode::SUCCESS);
    }
    loop {
        tokio::time::sleep(Duration::from_millis(250)).await;
        for log in &mut logs {
            let text = log.news()?;
            if !text.is_empty() {
                app.out.data(text.trim_end());
            }
        }
    }
}

impl Log {
    fn open(path: &Path) -> Result<File> {
        File::open(path).with_context(|| format!("open {}", path.display()))
    }

    fn last(&mut self, count: usize) -> Result<VecDeque<String>> {
        let mut last = VecDeque::new();
        let mut reader = BufReader::new(Self::open(&self.path)?);
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = reader.read_until(b'\n', &mut line).with_context(|| format!("read {}", self.path.display()))?;
            if read == 0 {
                return Ok(last);
            }
            self.at += read as u64;
            last.push_back(String::from_utf8_lossy(&line).trim_end().to_owned());
            if last.len() > count {
                last.pop_front();
            }
        }
    }

    fn news(&mut self) -> Result<String> {
        let mut file = Self::open(&self.path)?;
        // Shorter than before: the old one was put aside, and this is a new one.
        if file.metadata()?.len() < self.at {
            self.at = 0;
        }
        file.seek(SeekFrom::Start(self.at))?;
        let mut text = Vec::new();
        self.at += file.read_to_end(&mut text)? as u64;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}
