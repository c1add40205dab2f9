//! One item: runs its command, writes its input, reads its output and evaluates the exit code.

use std::process::{ExitStatus, Stdio};
use std::time::Instant;

use gleaner::{Context, Failure, Item, Queue};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use super::group::{Group, Groups, PATIENCE};
use super::progress::{Errors, read_errors};
use super::report::Report;

/// What sysexits.h calls EX_DATAERR: the item itself is wrong, and a retry cannot help.
const NOT_RETRYABLE: i32 = 65;
/// EX_TEMPFAIL.
const RETRYABLE: i32 = 75;
/// More output than this is not a result.
const LONGEST_OUTPUT: u64 = 16 * 1024 * 1024;

/// Runs the command for item after item.
#[derive(Debug)]
pub(super) struct Runner {
    pub exec: String,
    pub queue: Queue,
    pub groups: Groups,
    pub report: Report,
}

type Judged = Result<Option<Value>, Failure>;

impl Runner {
    pub(super) async fn run(&self, item: Item, mut context: Context) -> Judged {
        let began = Instant::now();
        let judged = match self.spawn(&item) {
            Ok(child) => self.attend(&item, child, &mut context).await,
            Err(error) => Err(Failure::new(format!("run sh: {error}")).category("Spawn")),
        };
        self.report.item(&item, &judged, began.elapsed());
        judged
    }

    fn spawn(&self, item: &Item) -> std::io::Result<Child> {
        Command::new("sh")
            .arg("-c")
            .arg(&self.exec)
            .env("GLEANER_QUEUE", self.queue.name())
            .env("GLEANER_ID", &item.key)
            .env("GLEANER_LEASE", item.lease.to_string())
            .env("GLEANER_KIND", item.kind.as_deref().unwrap_or_default())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A process group of its own: Ctrl-C is for us, and ending the group also ends what the command started.
            .process_group(0)
            .spawn()
    }

    async fn attend(&self, item: &Item, mut child: Child, context: &mut Context) -> Judged {
        let mut group = self.groups.add(&item.key, item.lease, child.id().unwrap_or_default());
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let talk = async {
            let reading =
                async { tokio::join!(feed(stdin, self.input(item)), read(stdout), read_errors(stderr, &self.queue, item, &self.report)) };
            tokio::pin!(reading);
            tokio::select! {
                ((), output, errors) = &mut reading => (child.wait().await, Some((output, errors))),
                status = child.wait() => {
                    // A process it started may keep its outputs open forever. The command's own output is complete by now.
                    (status, timeout(PATIENCE, &mut reading).await.ok().map(|((), output, errors)| (output, errors)))
                }
            }
        };
        let (status, said) = tokio::select! {
            answer = talk => answer,
            () = context.ended() => {
                self.end(&mut child, &mut group).await;
                return Err(Failure::new("the item was cancelled or taken away").category("Cancelled"));
            }
        };
        if self.groups.is_abandoned() {
            // The item was given back before the command was ended, so its exit is not a failure.
            std::future::pending::<()>().await;
        }
        group.finish();
        let (output, errors) = said.unwrap_or_default();
        if errors.lost {
            return Err(Failure::new("the item was cancelled or taken away").category("Cancelled"));
        }
        match status {
            Ok(status) => judge(status, &output, &errors),
            Err(error) => Err(Failure::new(format!("wait for the command: {error}")).category("Spawn")),
        }
    }

    /// Sends SIGTERM, then SIGKILL.
    async fn end(&self, child: &mut Child, group: &mut Group) {
        group.signal(Signal::SIGTERM);
        let _ = timeout(PATIENCE, child.wait()).await;
        group.signal(Signal::SIGKILL);
        let _ = child.wait().await;
        group.finish();
    }

    fn input(&self, item: &Item) -> Vec<u8> {
        let mut text = json!({
            "queue": self.queue.name(), "id": item.key, "kind": item.kind, "owner": item.owner, "attempts": item.attempts,
            "lease": item.lease, "payload": item.payload, "partial": item.partial,
        })
        .to_string();
        text.push('\n');
        text.into_bytes()
    }
}

/// Writes the input. A command need not read it, so errors are ignored.
async fn feed(stdin: Option<ChildStdin>, input: Vec<u8>) {
    if let Some(mut stdin) = stdin {
        let _ = stdin.write_all(&input).await;
    }
}

async fn read(stdout: Option<ChildStdout>) -> Vec<u8> {
    let mut output = Vec::new();
    if let Some(stdout) = stdout {
        let mut limited = stdout.take(LONGEST_OUTPUT + 1);
        let _ = limited.read_to_end(&mut output).await;
        // Reads on and discards the rest, or the command would block on a full pipe.
        let _ = tokio::io::copy(&mut limited.into_inner(), &mut tokio::io::sink()).await;
    }
    output
}

fn judge(status: ExitStatus, output: &[u8], errors: &Errors) -> Judged {
    use std::os::unix::process::ExitStatusExt as _;
    let how = match (status.code(), status.signal()) {
        (Some(0), _) if output.len() as u64 > LONGEST_OUTPUT => "the command printed more than 16 MiB".to_owned(),
        (Some(0), _) => return Ok(result(output)),
        (Some(code), _) => format!("the command ended with exit status {code}"),
        (None, signal) => format!("the command was ended by signal {}", signal.unwrap_or_default()),
    };
    let failure = Failure::new(errors.message().unwrap_or(how));
    Err(match status.code() {
        Some(NOT_RETRYABLE) => failure.category("DataError").for_good(),
        Some(RETRYABLE) => failure.category("TemporaryFailure"),
        Some(0) => failure.category("TooLong").for_good(),
        Some(_) => failure.category("ExitStatus"),
        None => failure.category("Signal"),
    })
}

/// JSON as it is, other text as `{"text": …}`, no output as no result.
fn result(output: &[u8]) -> Option<Value> {
    let text = String::from_utf8_lossy(output);
    let text = text.trim();
    // PostgreSQL's jsonb cannot hold the null character.
    let fits = |value: &Value| !value.to_string().contains("\\u0000");
    (!text.is_empty())
        .then(|| serde_json::from_str(text).ok().filter(fits).unwrap_or_else(|| json!({"text": text.replace('\0', "\u{fffd}")})))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_becomes_the_result() {
        assert_eq!(result(b" {\"a\": 1}\n"), Some(json!({"a": 1})));
        assert_eq!(result(b"hello\nthere\n"), Some(json!({"text": "hello\nthere"})));
        assert_eq!(result(b"  \n"), None);
        assert_eq!(result(b"\"a\\u0000b\""), Some(json!({"text": "\"a\\u0000b\""})));
    }
}
