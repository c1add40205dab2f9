//! A program of the user's: the message as JSON on standard input, what became of it as JSON on standard output.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

use super::{Message, NotSent, Sent, Sink, refused, refused_for_good, unknown};

/// EX_DATAERR in sysexits.h: certainly not sent, and never will be.
const NOT_RETRYABLE: i32 = 65;
/// EX_TEMPFAIL: certainly not sent, and worth another try.
const TRY_AGAIN: i32 = 75;

/// The command line comes from the operator, never from a row.
#[derive(Debug, Clone)]
pub struct Command {
    /// Run by `sh -c`.
    pub line: String,
    pub folder: PathBuf,
}

#[async_trait]
impl Sink for Command {
    async fn send(&self, key: &str, message: &Message, within: Duration) -> Result<Sent, NotSent> {
        let mut command = tokio::process::Command::new("sh");
        command.arg("-c").arg(&self.line).current_dir(&self.folder).env("GLEANER_IDEMPOTENCY_KEY", key);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true).process_group(0);
        let mut child = command.spawn().map_err(|error| refused(format!("run {}: {error}", self.line)))?;
        let input = json!({"key": key, "message": message}).to_string();
        if let Some(mut stdin) = child.stdin.take() {
            // A program may ignore its input.
            let _ = stdin.write_all(input.as_bytes()).await;
        }
        let ended = tokio::time::timeout(within, child.wait_with_output()).await;
        let output = match ended {
            Ok(output) => output.map_err(|error| unknown(format!("run {}: {error}", self.line)))?,
            Err(_) => return Err(unknown("the command did not end in time")),
        };
        let said: String = String::from_utf8_lossy(&output.stderr).trim().chars().take(500).collect();
        match output.status.code() {
            Some(0) => {
                let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
                Ok(Sent { message_id: answer["message_id"].as_str().map(str::to_owned), answer, ..Sent::default() })
            }
            Some(NOT_RETRYABLE) => Err(refused_for_good(format!("the command refuses: {said}"))),
            Some(TRY_AGAIN) => Err(refused(format!("the command refuses for now: {said}"))),
            Some(code) => Err(unknown(format!("the command ended with {code}: {said}"))),
            None => Err(unknown(format!("the command was killed: {said}"))),
        }
    }
}
