//! Speech to text with a model.

use gleaner::Failure;
use reqwest::multipart::{Form, Part};
use serde_json::{Value, json};

use super::failure::{TRANSCRIPTION, of_request};
use super::{Output, Seen, Share, openai};

#[derive(Debug, Clone)]
pub struct Transcribe {
    pub model: String,
    /// Whether it gets 16 kHz mono. Otherwise it gets the original file.
    pub decode: bool,
    /// The language code, if the spoken language is always the same.
    pub language: Option<String>,
    pub prompt: Option<String>,
}

impl Transcribe {
    pub fn configuration(&self) -> Value {
        json!([self.decode, self.language, self.prompt])
    }

    pub async fn run(&self, seen: &Seen<'_>, share: &Share<'_>) -> Result<Output, Failure> {
        let (path, content_type) = if self.decode {
            (seen.recording.wav(share).await?.path.clone(), "audio/wav".to_owned())
        } else {
            let original = seen.recording.original(share).await?;
            (original.path.clone(), original.content_type.clone().unwrap_or_else(|| "application/octet-stream".into()))
        };
        if !share.progress(Some("listening"), Some(30.0), None).await {
            return Err(super::failure::cancelled());
        }
        let model = openai::model(seen.models, &self.model, TRANSCRIPTION)?;
        let unread = |error: std::io::Error| Failure::new(format!("read the recording: {error}")).category(TRANSCRIPTION);
        let file = tokio::fs::File::open(&path).await.map_err(unread)?;
        let length = file.metadata().await.map_err(unread)?.len();
        let part = Part::stream_with_length(file_body(file), length).file_name(format!("recording.{}", extension(&content_type)));
        let part = part.mime_str(&content_type).map_err(|error| of_request(TRANSCRIPTION, "the recording's type", error))?;
        let mut form = Form::new().part("file", part).text("model", model.model.clone()).text("response_format", "json");
        for (name, value) in [("language", &self.language), ("prompt", &self.prompt)] {
            if let Some(value) = value {
                form = form.text(name, value.clone());
            }
        }
        let answer = openai::ask(seen.models, &seen.key(), model, TRANSCRIPTION, |request| request.multipart(form)).await?;
        let text = match (answer.get("/text").and_then(Value::as_str), &answer.json) {
            (Some(text), _) => text,
            // Some servers answer in plain text whatever format is requested.
            (None, None) if !answer.body.trim_start().starts_with('<') => answer.body.as_str(),
            _ => return Err(Failure::new("the model's answer has no text").category(TRANSCRIPTION)),
        };
        Ok(Output { value: json!(text.trim()), tokens: answer.tokens(), model: answer.model() })
    }
}

fn file_body(file: tokio::fs::File) -> reqwest::Body {
    let stream = futures_util::stream::unfold(Some(file), |file| async {
        use tokio::io::AsyncReadExt as _;
        let mut file = file?;
        let mut piece = bytes::BytesMut::with_capacity(64 * 1024);
        match file.read_buf(&mut piece).await {
            Ok(0) => None,
            Ok(_) => Some((Ok(piece.freeze()), Some(file))),
            Err(error) => Some((Err(error), None)),
        }
    });
    reqwest::Body::wrap_stream(stream)
}

/// Servers detect the format by the file name.
fn extension(content_type: &str) -> &'static str {
    let kind = content_type.split(';').next().unwrap_or_default().trim();
    match kind {
        "audio/mpeg" | "audio/mp3" => "mp3",
        "audio/ogg" | "audio/opus" | "audio/vorbis" => "ogg",
        "audio/flac" | "audio/x-flac" => "flac",
        "audio/mp4" | "audio/m4a" | "audio/x-m4a" | "audio/aac" => "m4a",
        "audio/webm" | "video/webm" => "webm",
        "audio/amr" => "amr",
        _ => "wav",
    }
}
