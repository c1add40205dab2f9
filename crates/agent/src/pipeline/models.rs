//! The models of a pipeline file.

use std::path::Path;

use gleaner_stages::models::{Kind, Model, Models, TIMEOUT};

use super::file;
use super::mistake::Mistakes;

/// The models that a file names.
pub(super) fn read(file: &file::File, folder: &Path, mistakes: &mut Mistakes<'_>) -> Models {
    let mut models = Vec::new();
    for (name, model) in &file.models {
        let (place, given) = (model.span(), model.get_ref());
        let kind = match given.kind.get_ref().as_str() {
            "chat" => Kind::Chat,
            "transcription" => Kind::Transcription,
            "embedding" => Kind::Embedding,
            other => {
                mistakes.at(
                    &given.kind.span(),
                    format!("model {name} is of kind {other:?}; write \"chat\", \"transcription\" or \"embedding\""),
                );
                continue;
            }
        };
        if given.url.is_some() && given.url_env.is_some() {
            mistakes.at(&place, format!("model {name} has both url and url_env; keep one"));
        }
        if given.key_env.is_some() && given.key_file.is_some() {
            mistakes.at(&place, format!("model {name} has both key_env and key_file; keep one"));
        }
        let url = given.url.clone().or_else(|| given.url_env.as_ref().and_then(|variable| std::env::var(variable).ok()));
        let url = url.map(|url| url.trim().trim_end_matches('/').to_owned()).filter(|url| !url.is_empty());
        if let Some(url) = url.as_deref().filter(|url| !url.starts_with("http://") && !url.starts_with("https://")) {
            mistakes.at(&place, format!("model {name} has the URL {url:?}; it looks like https://api.example.com/v1"));
        }
        let timeout = super::plan::duration(given.timeout.as_ref(), mistakes).unwrap_or(TIMEOUT);
        models.push(Model {
            name: name.clone(),
            kind,
            base_url: url,
            model: given.model.clone(),
            key_env: given.key_env.clone(),
            key_file: given.key_file.as_ref().map(|file| folder.join(file)),
            timeout,
            url_env: given.url_env.clone(),
        });
    }
    models.into_iter().collect()
}
