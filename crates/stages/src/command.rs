//! A program in any language: JSON on standard input, JSON on standard output, progress on standard error, as with `gleaner
//! work`.

mod group;
mod said;

use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};

use gleaner::Failure;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin, ChildStdout};

use self::group::{Group, PATIENCE};
use super::{Output, Seen, Share, Stage};
use crate::said::Said;

/// EX_DATAERR in sysexits.h: the item itself is wrong, so a retry does not help.
const NOT_RETRYABLE: i32 = 65;
/// Longer output is not accepted as a result.
const LONGEST_OUTPUT: u64 = 16 * 1024 * 1024;

#[derive(Debug, Clone)]
pub struct Command {
    pub run: Run,
    /// The working directory: the directory of the pipeline file.
    pub folder: PathBuf,
    /// Whether it gets the recording, as a 16 kHz mono file.
    pub audio: bool,
    /// Whether the recording is decoded first. Otherwise it gets the original file.
    pub decode: bool,
}

#[derive(Debug, Clone)]
pub enum Run {
    /// Run by `sh -c`.
    Line(String),
    Words(Vec<String>),
}

impl Command {
    pub fn describe(&self) -> String {
        match &self.run {
            Run::Line(line) => line.clone(),
            Run::Words(words) => words.join(" "),
        }
    }

    pub fn configuration(&self) -> Value {
        json!([self.describe(), self.audio, self.decode])
    }

    /// A missing program uses up no attempts: items of its kind are not claimed.
    pub fn lacks(&self) -> Option<String> {
        let first = match &self.run {
            Run::Words(words) => words.first().map(String::as_str).unwrap_or_default(),
            Run::Line(line) => line.split_whitespace().next().unwrap_or_default(),
        };
        let plain = first.chars().all(|c| c.is_alphanumeric() || "-_./~+".contains(c));
        // If a shell line starts with anything else, the only way to find out is to run it.
        if matches!(self.run, Run::Line(_)) && !plain || self.finds(first) {
            return None;
        }
        let of = if first.contains('/') { format!("in {}", self.folder.display()) } else { "on the PATH".to_owned() };
        Some(format!("there is no command {first:?} {of}"))
    }

    fn finds(&self, program: &str) -> bool {
        let runs = |path: PathBuf| nix::unistd::access(&path, nix::unistd::AccessFlags::X_OK).is_ok() && path.is_file();
        if program.contains('/') {
            return runs(self.folder.join(program));
        }
        const BUILT_INTO_SH: &[&str] =
            &["cd", "exec", "echo", "test", "true", "false", "exit", "printf", "read", "set", "if", "for", "while"];
        matches!(self.run, Run::Line(_)) && BUILT_INTO_SH.contains(&program)
            || std::env::var_os("PATH").is_some_and(|path| std::env::split_paths(&path).any(|folder| runs(folder.join(program))))
    }

    pub async fn run(&self, stage: &Stage, seen: &Seen<'_>, share: &Share<'_>) -> Result<Output, Failure> {
        let audio = match (self.audio, self.decode) {
            (true, true) => {
                let wav = seen.recording.wav(share).await?;
                Some(json!({"path": wav.path, "seconds": wav.seconds, "sample_rate": super::audio::RATE}))
            }
            (true, false) => {
                let original = seen.recording.original(share).await?;
                Some(json!({"path": original.path, "content_type": original.content_type}))
            }
            (false, _) => None,
        };
        let child = self.spawn(stage, seen, audio.as_ref());
        let child = child.map_err(|error| Failure::new(format!("run {}: {error}", self.describe())).category(stage.default_category()))?;
        attend(stage, child, input(stage, seen, audio), share).await
    }

    fn spawn(&self, stage: &Stage, seen: &Seen<'_>, audio: Option<&Value>) -> std::io::Result<Child> {
        let mut command = match &self.run {
            Run::Line(line) => {
                let mut command = tokio::process::Command::new("sh");
                command.arg("-c").arg(line);
                command
            }
            Run::Words(words) => {
                let (first, rest) = words.split_first().ok_or_else(|| std::io::Error::other("it is empty"))?;
                // A path is relative to the pipeline's directory, but std resolves it against our own.
                let program = if first.contains('/') { self.folder.join(first) } else { first.into() };
                let mut command = tokio::process::Command::new(program);
                command.args(rest);
                command
            }
        };
        if let Some(path) = audio.and_then(|audio| audio["path"].as_str()) {
            command.env("GLEANER_AUDIO", path);
        }
        command
            .current_dir(&self.folder)
            .env("GLEANER_QUEUE", seen.queue)
            .env("GLEANER_ID", &seen.item.key)
            .env("GLEANER_LEASE", seen.item.lease.to_string())
            .env("GLEANER_KIND", seen.item.kind.as_deref().unwrap_or_default())
            .env("GLEANER_STAGE", &stage.name)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A process group of its own: ending the group also ends the command's child processes.
            .process_group(0)
            .spawn()
    }
}

/// The same input as for `gleaner work`, plus what a stage knows beyond that. A command that gets the recording gets no results,
/// because they do not decide what was said.
fn input(stage: &Stage, seen: &Seen<'_>, audio: Option<Value>) -> Vec<u8> {
    let item = seen.item;
    let mut input = json!({
        "queue": seen.queue, "id": item.key, "kind": item.kind, "owner": item.owner, "attempts": item.attempts,
        "lease": item.lease, "payload": item.payload, "partial": item.partial, "stage": stage.name,
    });
    match audio {
        Some(audio) => input["audio"] = audio,
        None => {
            input["text"] = json!(seen.text);
            input["results"] = json!(seen.results);
            input["written"] = json!(seen.written.to_rfc3339());
        }
    }
    let mut text = input.to_string();
    text.push('\n');
    text.into_bytes()
}

async fn attend(stage: &Stage, mut child: Child, input: Vec<u8>, share: &Share<'_>) -> Result<Output, Failure> {
    // If this future is dropped, because of the timeout or because the item was cancelled, the whole group is ended.
    let mut group = Group::of(child.id());
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let reading = async { tokio::try_join!(feed(stdin, input), read(stdout), said::listen(stderr, share)) };
    tokio::pin!(reading);
    let (status, heard) = tokio::select! {
        heard = &mut reading => {
            let ((), output, said) = heard?;
            (child.wait().await, Some((output, said)))
        }
        status = child.wait() => {
            // A child process may keep the outputs open for ever. The command itself has already written its output.
            let heard = tokio::time::timeout(PATIENCE, &mut reading).await.ok().transpose()?;
            (status, heard.map(|((), output, said)| (output, said)))
        }
    };
    let (output, said) = heard.unwrap_or_default();
    group.finish();
    match status {
        Ok(status) => judge(stage, status, &output, &said),
        Err(error) => Err(Failure::new(format!("wait for the command: {error}")).category(stage.default_category())),
    }
}

/// Ignores write errors, because a command need not read its input.
async fn feed(stdin: Option<ChildStdin>, input: Vec<u8>) -> Result<(), Failure> {
    if let Some(mut stdin) = stdin {
        let _ = stdin.write_all(&input).await;
    }
    Ok(())
}

async fn read(stdout: Option<ChildStdout>) -> Result<Vec<u8>, Failure> {
    let mut output = Vec::new();
    if let Some(stdout) = stdout {
        let mut limited = stdout.take(LONGEST_OUTPUT + 1);
        let _ = limited.read_to_end(&mut output).await;
        // Read the rest too, otherwise the command blocks on its output while we wait for its end.
        let _ = tokio::io::copy(&mut limited.into_inner(), &mut tokio::io::sink()).await;
    }
    Ok(output)
}

fn judge(stage: &Stage, status: ExitStatus, output: &[u8], said: &Said) -> Result<Output, Failure> {
    use std::os::unix::process::ExitStatusExt as _;
    let how = match (status.code(), status.signal()) {
        (Some(0), _) if output.len() as u64 > LONGEST_OUTPUT => "the command printed more than 16 MiB".to_owned(),
        (Some(0), _) => return Ok(Output::new(result(output))),
        (Some(code), _) => format!("the command ended with exit status {code}"),
        (None, signal) => format!("the command was ended by signal {}", signal.unwrap_or_default()),
    };
    let message = said.message().map_or_else(|| how.clone(), |text| format!("{text} ({how})"));
    let failure = Failure::new(message).category(stage.default_category());
    Err(if matches!(status.code(), Some(NOT_RETRYABLE | 0)) { failure.for_good() } else { failure })
}

/// JSON as it is, text as `{"text": …}`, empty output as null.
fn result(output: &[u8]) -> Value {
    let text = String::from_utf8_lossy(output);
    let text = text.trim();
    if text.is_empty() {
        return Value::Null;
    }
    serde_json::from_str(text).unwrap_or_else(|_| json!({"text": text}))
}
