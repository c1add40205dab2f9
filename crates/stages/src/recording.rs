//! The audio of an item: fetched when a stage first needs it, once for all stages, and deleted when the item is done.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use gleaner::{Failure, Item};
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::OnceCell;

use super::Share;
use super::audio;
use super::failure::{DOWNLOAD, TRANSCRIPTION, cancelled, invalid};
use crate::fetch::{Fetch, Medium};

/// The limits on recordings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub bytes: u64,
    pub longest: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: 256 * 1024 * 1024, longest: Duration::from_secs(4 * 3600) }
    }
}

#[derive(Debug)]
pub struct Recording<'a> {
    medium: Option<Medium>,
    fetch: &'a Arc<dyn Fetch>,
    home: &'a Path,
    limits: Limits,
    original: OnceCell<Original>,
    wav: OnceCell<Wav>,
}

/// The file as it was received.
#[derive(Debug)]
pub struct Original {
    pub path: PathBuf,
    pub content_type: Option<String>,
    _file: Temporary,
}

/// The file as transcribers need it.
#[derive(Debug)]
pub struct Wav {
    pub path: PathBuf,
    pub seconds: f64,
    _file: Temporary,
}

/// A file that is deleted on drop.
#[derive(Debug)]
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

impl<'a> Recording<'a> {
    pub fn of(item: &Item, record: Option<&Value>, fetch: &'a Arc<dyn Fetch>, home: &'a Path, limits: Limits) -> Self {
        Self { medium: find(item, record), fetch, home, limits, original: OnceCell::new(), wav: OnceCell::new() }
    }

    pub fn exists(&self) -> bool {
        self.medium.is_some()
    }

    /// What identifies this recording.
    pub fn address(&self) -> Option<(&str, usize)> {
        self.medium.as_ref().map(|medium| (medium.address.as_str(), medium.n))
    }

    pub async fn original(&self, share: &Share<'_>) -> Result<&Original, Failure> {
        self.original.get_or_try_init(|| self.download(share)).await
    }

    pub async fn wav(&self, share: &Share<'_>) -> Result<&Wav, Failure> {
        self.wav.get_or_try_init(|| self.decode(share)).await
    }

    async fn download(&self, share: &Share<'_>) -> Result<Original, Failure> {
        let medium = self.medium.as_ref().ok_or_else(|| invalid("the item has no recording"))?;
        if !share.progress(Some("fetching the recording"), Some(0.0), None).await {
            return Err(cancelled());
        }
        let fetched = self.fetch.medium(medium).await?;
        let too_large = || {
            let mib = self.limits.bytes / 1024 / 1024;
            Failure::new(format!("the recording has more than {mib} MiB; `recordings.limit_mib` in the pipeline file allows more"))
                .category(DOWNLOAD)
                .for_good()
        };
        if fetched.length.is_some_and(|length| length > self.limits.bytes) {
            return Err(too_large());
        }
        let temporary = self.temporary("part")?;
        let unwritten =
            |error: std::io::Error| Failure::new(format!("keep the recording in {}: {error}", self.home.display())).category(DOWNLOAD);
        let mut file = tokio::fs::File::create(&temporary.0).await.map_err(unwritten)?;
        let (mut stream, mut size) = (fetched.stream, 0);
        while let Some(piece) = stream.next().await {
            let piece = piece.map_err(|error| Failure::new(format!("fetch the recording: {error}")).category(DOWNLOAD))?;
            size += piece.len() as u64;
            if size > self.limits.bytes {
                return Err(too_large());
            }
            file.write_all(&piece).await.map_err(unwritten)?;
        }
        file.flush().await.map_err(unwritten)?;
        if fetched.length.is_some_and(|length| length != size) {
            return Err(Failure::new("the recording broke off under way").category(DOWNLOAD));
        }
        let content_type = medium.content_type.clone().or(fetched.content_type);
        Ok(Original { path: temporary.0.clone(), content_type, _file: temporary })
    }

    async fn decode(&self, share: &Share<'_>) -> Result<Wav, Failure> {
        let original = self.original(share).await?;
        if !share.progress(Some("decoding"), Some(20.0), None).await {
            return Err(cancelled());
        }
        let temporary = self.temporary("wav")?;
        let (from, longest) = (original.path.clone(), self.limits.longest);
        // The conversion runs to its end even if no caller waits for it any more, and then removes its file.
        let converted = tokio::task::spawn_blocking(move || {
            let converted = audio::convert(&from, &temporary.0, longest);
            (temporary, converted)
        });
        let (temporary, converted) =
            converted.await.map_err(|error| Failure::new(format!("decode the recording: {error}")).category(TRANSCRIPTION))?;
        let sound = converted.map_err(|error| {
            let failure = Failure::new(error.to_string()).category(TRANSCRIPTION);
            // A full disk is temporary. A broken file is not.
            if matches!(error, audio::Error::Write(_)) { failure } else { failure.for_good() }
        })?;
        Ok(Wav { path: temporary.0.clone(), seconds: sound.seconds, _file: temporary })
    }

    fn temporary(&self, ending: &str) -> Result<Temporary, Failure> {
        let folder = self.home.join("recordings");
        std::fs::create_dir_all(&folder).map_err(|error| Failure::new(format!("make {}: {error}", folder.display())).category(DOWNLOAD))?;
        Ok(Temporary(folder.join(format!("{}.{ending}", uuid::Uuid::now_v7()))))
    }
}

/// The first audio file of the item, counted as on the server: first the content or media of the message, then attachments.
fn find(item: &Item, record: Option<&Value>) -> Option<Medium> {
    let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let payload = &item.payload;
    let nothing = Value::Null;
    let metadata = record.map_or(&nothing, |record| &record["metadata"]);
    let content = (payload["source_type"] == "url").then(|| text(&payload["content"])).flatten();
    let list = |name: &str| metadata[name].as_array().cloned().unwrap_or_default();
    let mut media: Vec<(String, Option<String>)> = Vec::new();
    for (n, url) in list("media_urls").iter().enumerate() {
        let kind = text(&metadata["media_types"][n]).or_else(|| text(&payload["format"]).filter(|_| content.as_deref() == url.as_str()));
        media.extend(text(url).map(|url| (url, kind)));
    }
    media.extend(list("media").iter().filter_map(|medium| Some((text(&medium["id"])?, text(&medium["content_type"])))));
    if media.is_empty() {
        media.extend(content.map(|content| (content, text(&payload["format"]))));
    }
    let of_message = media.len();
    for attachment in list("attachments") {
        media.push((
            text(&attachment["file"]).or_else(|| text(&attachment["attachment_id"])).unwrap_or_default(),
            text(&attachment["content_type"]),
        ));
    }
    let is_call = item.kind.as_deref() == Some("call");
    let is_sound = |n: usize, kind: Option<&str>| match kind {
        Some(kind) => kind.starts_with("audio/") || is_call && n < of_message && kind == "application/octet-stream",
        // A call's content is its recording, whether or not it has a type.
        None => is_call && n < of_message,
    };
    let n = media.iter().enumerate().position(|(n, (_, kind))| is_sound(n, kind.as_deref()))?;
    let (address, content_type) = media.swap_remove(n);
    Some(Medium { key: item.key.clone(), n, address, content_type })
}

#[cfg(test)]
mod tests;
