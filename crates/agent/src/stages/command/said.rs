//! What a command says on standard error: progress for the database, everything else for people.

use std::collections::VecDeque;

use gleaner::Failure;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::ChildStderr;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::super::Share;
use super::super::failure::cancelled;

/// How many last lines make the message of a failure, and how long it may be.
const LINES: usize = 10;
const LONGEST: usize = 4000;

/// What was said.
#[derive(Debug, Default)]
pub(super) struct Said {
    last: VecDeque<String>,
}

impl Said {
    /// The last lines, if there are any.
    pub fn message(&self) -> Option<String> {
        let text = self.last.iter().map(String::as_str).collect::<Vec<_>>().join("\n");
        let start = text.len().saturating_sub(LONGEST);
        let start = (start..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        let text = text[start..].trim().replace('\0', "\u{fffd}");
        (!text.is_empty()).then_some(text)
    }
}

/// A sign of progress.
#[derive(Debug, Clone, Default, PartialEq)]
struct Progress {
    stage: Option<String>,
    percent: Option<f64>,
    partial: Option<Value>,
}

/// Listens to the end, or until progress is refused: then the item is somebody else's, or cancelled, and the command need not finish.
pub(super) async fn listen(stderr: Option<ChildStderr>, share: &Share<'_>) -> Result<Said, Failure> {
    let Some(stderr) = stderr else { return Ok(Said::default()) };
    let (send, receive) = unbounded_channel();
    let reading = async {
        let mut lines = BufReader::new(stderr).split(b'\n');
        let mut last = VecDeque::new();
        while let Ok(Some(line)) = lines.next_segment().await {
            let line = String::from_utf8_lossy(&line).trim_end().to_owned();
            if let Some(progress) = Progress::parse(&line) {
                // The writer ends before us only when the item is lost.
                let _ = send.send(progress);
                continue;
            }
            tracing::debug!(stage = share.stage, line, "a command says");
            last.push_back(line);
            if last.len() > LINES {
                last.pop_front();
            }
        }
        drop(send);
        Ok(Said { last })
    };
    tokio::try_join!(reading, write(receive, share)).map(|(said, ())| said)
}

/// Writes what came since the last write, in one call: a chatty command must not wait for the database, nor flood it.
async fn write(mut receive: UnboundedReceiver<Progress>, share: &Share<'_>) -> Result<(), Failure> {
    let mut batch = Vec::new();
    while receive.recv_many(&mut batch, 1000).await > 0 {
        let news = batch.drain(..).fold(Progress::default(), Progress::and_then);
        let partial = news.partial.filter(|partial| partial.as_object().is_some_and(|partial| !partial.contains_key("gleaner")));
        if !share.progress(news.stage.as_deref(), news.percent, partial.as_ref()).await {
            return Err(cancelled());
        }
    }
    Ok(())
}

impl Progress {
    /// `progress: 40 resizing`, `progress: resizing`, or `{"stage": …, "percent": …, "partial": …}`.
    fn parse(line: &str) -> Option<Self> {
        if let Some(rest) = line.strip_prefix("progress:") {
            let rest = rest.trim();
            let (first, stage) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            let percent = first.trim_end_matches('%').parse::<f64>().ok().filter(|p| p.is_finite());
            let stage = if percent.is_some() { stage.trim() } else { rest };
            return Some(Self { stage: Some(stage.to_owned()).filter(|s| !s.is_empty()), percent, partial: None });
        }
        let Value::Object(mut object) = line.starts_with('{').then(|| serde_json::from_str(line).ok()).flatten()? else { return None };
        let known = ["stage", "percent", "partial"];
        if object.is_empty() || object.keys().any(|key| !known.contains(&key.as_str())) {
            return None;
        }
        Some(Self {
            stage: object.get("stage").and_then(Value::as_str).map(str::to_owned),
            percent: object.get("percent").and_then(Value::as_f64),
            partial: object.remove("partial"),
        })
    }

    /// This, followed by that: later words win, partial results are put together as the database does.
    fn and_then(self, later: Self) -> Self {
        let partial = match (self.partial, later.partial) {
            (Some(Value::Object(mut a)), Some(Value::Object(b))) => {
                a.extend(b);
                Some(a.into())
            }
            (a, b) => b.or(a),
        };
        Self { stage: later.stage.or(self.stage), percent: later.percent.or(self.percent), partial }
    }
}
