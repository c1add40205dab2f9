//! Reads the file of a dump. The reader is a process of its own, because a document may be damaged or hostile; its death is a
//! failure that trying again does not change.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use futures_util::StreamExt as _;
use gleaner::Failure;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::failure::{DOWNLOAD, STAGE, VALIDATION, invalid};
use super::{Output, Seen};

/// The server accepts no larger one.
const LARGEST: usize = 256 * 1024 * 1024;
/// The reader writes no more than this.
const LONGEST: u64 = 5 * 1024 * 1024;
/// The reader's own limit is on the time it computes.
const PATIENCE: Duration = Duration::from_secs(60);
/// The document is at fault, and the reader says why.
const AT_FAULT: i32 = 65;

/// The file of the item's record, if it has one: the dump's id, and its media type.
pub fn file_of(record: Option<&Value>) -> Option<(&str, &str)> {
    let record = record?;
    record["file_sha256"].as_str()?;
    Some((record["id"].as_str()?, record["media_type"].as_str()?))
}

pub(super) async fn run(seen: &Seen<'_>) -> Result<Output, Failure> {
    let Some((dump, media_type)) = file_of(seen.record) else { return Err(invalid("the item has no file")) };
    let fetched = seen.fetch.document(dump).await?;
    let mut bytes = Vec::new();
    let mut stream = fetched.stream;
    while let Some(piece) = stream.next().await {
        bytes.extend_from_slice(&piece.map_err(|why| Failure::new(format!("fetch the document: {why}")).category(DOWNLOAD))?);
        if bytes.len() > LARGEST {
            return Err(Failure::new("the document has more than 256 MiB").category(DOWNLOAD).for_good());
        }
    }
    read(&reader(), media_type, bytes).await.map(Output::new)
}

/// Our own program, or the one that `GLEANER_READER` names: programs that embed an agent are not `gleaner`.
fn reader() -> PathBuf {
    let named = std::env::var_os("GLEANER_READER").filter(|name| !name.is_empty()).map(PathBuf::from);
    named.or_else(|| std::env::current_exe().ok()).unwrap_or_else(|| PathBuf::from("gleaner"))
}

async fn read(program: &std::path::Path, media_type: &str, bytes: Vec<u8>) -> Result<String, Failure> {
    let broken = |why: String| Failure::new(format!("start the reader of documents: {why}")).category(STAGE);
    let mut child = tokio::process::Command::new(program)
        .args(["read-document", media_type])
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| broken(error.to_string()))?;
    let (Some(mut stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take()) else {
        return Err(broken("it has no pipes".to_owned()));
    };
    let (mut text, mut said) = (Vec::new(), Vec::new());
    let (mut stdout, mut stderr) = (stdout.take(LONGEST), stderr.take(2000));
    let talking = async {
        // A reader that has seen enough closes the pipe; its exit status says why.
        let written = async {
            let _ = stdin.write_all(&bytes).await;
            drop(stdin);
        };
        let _ = tokio::join!(written, stdout.read_to_end(&mut text), stderr.read_to_end(&mut said));
        child.wait().await
    };
    let status = match tokio::time::timeout(PATIENCE, talking).await {
        Ok(status) => status.map_err(|error| broken(error.to_string()))?,
        Err(_) => return Err(dead(format!("did not end within {} seconds", PATIENCE.as_secs()))),
    };
    match status.code() {
        Some(0) => String::from_utf8(text).map_err(|_| dead("wrote no text".to_owned())),
        Some(AT_FAULT) => Err(invalid(String::from_utf8_lossy(&said).trim().to_owned())),
        _ => Err(dead(format!("ended with {status}"))),
    }
}

/// The reader met its limits, or a mistake in a library: the same bytes will end the next one, too.
fn dead(how: String) -> Failure {
    Failure::new(format!("the document could not be read: its reader {how}. It is damaged, or larger than it looks"))
        .category(VALIDATION)
        .for_good()
}
