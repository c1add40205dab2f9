//! The output of a worker: a line per item, the output of its commands, and the totals at the end.

use std::time::Duration;

use gleaner::worker::Tally;
use gleaner::{Failure, Item};
use serde_json::{Value, json};

use crate::output::{BAD, DIM, GOOD, Output, WARN, paint};
use crate::words::{brief, count, harmless, span};

#[derive(Debug)]
pub(super) struct Report {
    out: Output,
    queue: String,
}

impl Report {
    pub(super) fn new(out: Output, queue: &str) -> Self {
        Self { out, queue: queue.to_owned() }
    }

    pub(super) fn begin(&self, exec: &str, concurrency: u16) {
        let how_many = if concurrency == 1 { String::new() } else { format!(", {concurrency} at once") };
        self.out.note(paint(DIM, format!("Working {} with `{exec}`{how_many}. Ctrl-C ends it.", self.queue)));
    }

    /// A line of a command's output that is not progress.
    pub(super) fn heard(&self, item: &Item, line: &str) {
        self.out.note(format!("{} {}", paint(DIM, format!("[{}]", item.key)), harmless(line)));
    }

    pub(super) fn item(&self, item: &Item, judged: &Result<Option<Value>, Failure>, took: Duration) {
        let (word, style, text) = match judged {
            Ok(result) => ("done", GOOD, brief(result.as_ref().unwrap_or(&Value::Null))),
            Err(failure) if failure.category == "Cancelled" => ("ended", WARN, failure.message.clone()),
            Err(failure) => ("failed", BAD, failure.message.lines().last().unwrap_or_default().to_owned()),
        };
        let (message, category) = judged.as_ref().err().map(|f| (&f.message, &f.category)).unzip();
        self.out.json_line(&json!({
            "event": word, "queue": self.queue, "id": item.key, "kind": item.kind, "seconds": took.as_secs_f64(),
            "result": judged.as_ref().ok(), "message": message, "category": category,
        }));
        let kind = item.kind.as_deref().unwrap_or_default();
        let short: String = brief(&text.into()).chars().take(100).collect();
        let line = [paint(style, format!("{word:6}")), item.key.clone(), harmless(kind), paint(DIM, span(took.as_secs_f64())), short];
        self.out.line(line.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("  "));
    }

    pub(super) fn end(&self, tally: &Tally, drained: bool) {
        let Tally { completed, failed, lost, released } = *tally;
        self.out.json_line(
            &json!({"event": "end", "queue": self.queue, "completed": completed, "failed": failed, "lost": lost, "released": released}),
        );
        if completed + failed + lost + released == 0 {
            return self.out.note(if drained { format!("Nothing is due in {}.", self.queue) } else { "Nothing was taken.".into() });
        }
        let mut parts = vec![format!("{completed} done")];
        for (n, word) in [(failed, "failed"), (lost, "lost to a cancel or another agent"), (released, "given back")] {
            if n > 0 {
                parts.push(format!("{n} {word}"));
            }
        }
        self.out.note(format!("{}.", parts.join(", ")));
    }
}

/// The messages that are printed while stopping.
#[derive(Debug)]
pub(super) struct Stopping {
    pub out: Output,
    pub grace: u64,
}

impl Stopping {
    pub(super) fn tell(&self, running: usize) {
        if running > 0 {
            self.out.note(format!(
                "Finishing {} (up to {} s); Ctrl-C again gives back what runs.",
                count(running as i64, "item"),
                self.grace
            ));
        }
    }

    pub(super) fn released(&self, n: usize) {
        self.out.note(format!("{} given back.", count(n as i64, "item")));
    }
}
