//! What a program writes to standard error: progress for the database, everything else for people. Stages and `gleaner work`
//! read it the same way.

use std::collections::VecDeque;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::ChildStderr;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// How many of the last lines become the message of a failure, and how long it may be.
const LINES: usize = 10;
const LONGEST: usize = 4000;

/// The lines that were not progress.
#[derive(Debug, Default)]
pub struct Said {
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

/// A progress report.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Progress {
    pub stage: Option<String>,
    pub percent: Option<f64>,
    pub partial: Option<Value>,
}

/// Reads to the end, or until `write` fails: its error is then returned. `heard` gets each line that is not progress. `write`
/// gets everything since its last call, merged into one: a program with much progress must neither wait for the database nor
/// flood it.
pub async fn listen<Writing, Failure>(
    stderr: Option<ChildStderr>,
    heard: impl Fn(&str),
    write: impl Fn(Progress) -> Writing,
) -> Result<Said, Failure>
where
    Writing: Future<Output = Result<(), Failure>>,
{
    let Some(stderr) = stderr else { return Ok(Said::default()) };
    let (send, receive) = unbounded_channel();
    let reading = async {
        let mut lines = BufReader::new(stderr).split(b'\n');
        let mut last = VecDeque::new();
        while let Ok(Some(line)) = lines.next_segment().await {
            let line = String::from_utf8_lossy(&line).trim_end().to_owned();
            if let Some(progress) = Progress::parse(&line) {
                // The receiver is gone only if the writer has failed.
                let _ = send.send(progress);
                continue;
            }
            heard(&line);
            last.push_back(line);
            if last.len() > LINES {
                last.pop_front();
            }
        }
        drop(send);
        Ok(Said { last })
    };
    tokio::try_join!(reading, pass_on(receive, write)).map(|(said, ())| said)
}

async fn pass_on<Writing, Failure>(mut receive: UnboundedReceiver<Progress>, write: impl Fn(Progress) -> Writing) -> Result<(), Failure>
where
    Writing: Future<Output = Result<(), Failure>>,
{
    let mut batch = Vec::new();
    while receive.recv_many(&mut batch, 1000).await > 0 {
        write(batch.drain(..).fold(Progress::default(), Progress::and_then)).await?;
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

    /// Merges two reports: the later stage and percentage win, and partial results are merged as in the database.
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn progress(stage: Option<&str>, percent: Option<f64>, partial: Option<Value>) -> Progress {
        Progress { stage: stage.map(str::to_owned), percent, partial }
    }

    #[test]
    fn progress_is_distinguished_from_other_words() {
        assert_eq!(Progress::parse("progress: 40 half done"), Some(progress(Some("half done"), Some(40.0), None)));
        assert_eq!(Progress::parse("progress: 40%"), Some(progress(None, Some(40.0), None)));
        assert_eq!(Progress::parse("progress: warming up"), Some(progress(Some("warming up"), None, None)));
        assert_eq!(Progress::parse(r#"{"stage": "b", "partial": {"n": 1}}"#), Some(progress(Some("b"), None, Some(json!({"n": 1})))));
        assert_eq!(Progress::parse(r#"{"level": "error", "stage": "b"}"#), None);
        assert_eq!(Progress::parse("no progress: 3"), None);
    }

    #[test]
    fn a_burst_of_progress_becomes_one() {
        let all = [progress(Some("a"), Some(1.0), Some(json!({"x": 1}))), progress(None, Some(2.0), Some(json!({"y": 2})))];
        let one = all.into_iter().fold(Progress::default(), Progress::and_then);
        assert_eq!(one, progress(Some("a"), Some(2.0), Some(json!({"x": 1, "y": 2}))));
    }
}
