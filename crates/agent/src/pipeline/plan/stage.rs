//! One stage of a pipeline file made ready to run.

use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use gleaner_stages::builtin::{Builtin, What};
use gleaner_stages::chat::{Chat, Format, Schema};
use gleaner_stages::command::{Command, Run};
use gleaner_stages::embed::Embed;
use gleaner_stages::http::Http;
use gleaner_stages::template::Template;
use gleaner_stages::transcribe::Transcribe;
use gleaner_stages::{Stage, Work};
use serde_json::Value;
use toml::Spanned;

use super::{Common, Mistakes, parse_duration};
use crate::pipeline::{ModelKind, file};

/// Long enough for an hour of speech on a slow machine. All other stages finish sooner.
const TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// The prompts that ship with the agent, for stages that write these keys.
const PROMPTS: &[(&str, &str, &str)] = &[
    ("summary", include_str!("../prompts/summary.md"), include_str!("../prompts/summary.schema.json")),
    ("facts", include_str!("../prompts/facts.md"), include_str!("../prompts/facts.schema.json")),
    ("blocks", include_str!("../prompts/blocks.md"), include_str!("../prompts/blocks.schema.json")),
    ("context_items", include_str!("../prompts/context_items.md"), include_str!("../prompts/context_items.schema.json")),
    ("relationships", include_str!("../prompts/relationships.md"), include_str!("../prompts/relationships.schema.json")),
];

pub(super) fn names() -> String {
    What::ALL.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

/// A stage that needs no definition.
pub(super) fn built_in(common: &Common<'_>, name: &str) -> Option<Stage> {
    let what = What::named(name)?;
    let given = file::Stage::default();
    Some(Stage {
        name: name.into(),
        key: what.key().into(),
        keep: true,
        timeout: TIMEOUT,
        category: None,
        work: builtin(common, what, &given),
    })
}

fn builtin(common: &Common<'_>, what: What, given: &file::Stage) -> Work {
    Work::Builtin(Builtin {
        what,
        languages: common.file.languages.clone(),
        region: common.file.region.as_ref().map(|region| region.get_ref().clone()),
        sentences: given.sentences,
        words: given.words,
        most: given.most,
    })
}

pub(super) fn read(common: &Common<'_>, name: &str, spanned: &Spanned<file::Stage>, mistakes: &mut Mistakes<'_>) -> Option<Stage> {
    let before = mistakes.found.len();
    let mut reader = Reader { common, name, place: spanned.span(), mistakes };
    let given = spanned.get_ref();
    let work = reader.work(given);
    let timeout = given.timeout.as_deref().and_then(|text| parse_duration(text, &reader.place, reader.mistakes)).unwrap_or(TIMEOUT);
    let work = work.filter(|_| reader.mistakes.found.len() == before)?;
    let key = given.key.clone().unwrap_or_else(|| match &work {
        Work::Builtin(builtin) => builtin.what.key().into(),
        _ => name.to_owned(),
    });
    if key == "gleaner" || key.is_empty() {
        reader.mistake(format!("stage {name} writes to {key:?}, which is taken; write as = \"{name}_result\""));
        return None;
    }
    Some(Stage { name: name.into(), key, keep: given.keep.unwrap_or(true), timeout, category: given.category.clone(), work })
}

struct Reader<'a, 'b, 'c> {
    common: &'a Common<'a>,
    name: &'a str,
    place: Range<usize>,
    mistakes: &'b mut Mistakes<'c>,
}

impl Reader<'_, '_, '_> {
    fn mistake(&mut self, what: String) {
        self.mistakes.at(&self.place.clone(), what);
    }

    fn work(&mut self, given: &file::Stage) -> Option<Work> {
        let name = self.name;
        let kinds: Vec<&str> = [
            ("builtin", given.builtin.is_some()),
            ("chat", given.chat.is_some()),
            ("transcribe", given.transcribe.is_some()),
            ("embed", given.embed.is_some()),
            ("command", given.command.is_some()),
            ("http", given.http.is_some()),
        ]
        .into_iter()
        .filter_map(|(kind, is)| is.then_some(kind))
        .collect();
        let [kind] = kinds[..] else {
            // A built-in stage with settings need not repeat what it is.
            if let (true, Some(what)) = (kinds.is_empty(), What::named(name)) {
                return Some(builtin(self.common, what, given));
            }
            self.mistake(match kinds.is_empty() {
                true => format!("stage {name} does not say what it is; write one of builtin, chat, transcribe, embed, command or http"),
                false => format!("stage {name} is {} at once; keep one, and make another stage of the other", kinds.join(" and ")),
            });
            return None;
        };
        self.check_keys(kind, given);
        if let Some(name) = &given.builtin {
            let what = What::named(name);
            if what.is_none() {
                self.mistake(format!("there is no built-in stage {name:?}; there are {}", names()));
            }
            return what.map(|what| builtin(self.common, what, given));
        }
        if let Some(model) = &given.chat {
            return self.chat(model, given).map(Work::Chat);
        }
        if let Some(model) = &given.transcribe {
            self.check_model(model, ModelKind::Transcription)?;
            return Some(Work::Transcribe(Transcribe {
                model: model.clone(),
                decode: given.decode.unwrap_or(true),
                language: given.language.clone().filter(|language| language != "auto"),
                prompt: given.prompt_text.clone(),
            }));
        }
        if let Some(model) = &given.embed {
            self.check_model(model, ModelKind::Embedding)?;
            return Some(Work::Embed(Embed { model: model.clone() }));
        }
        if let Some(command) = &given.command {
            let run = match command {
                file::Command::Line(line) => Run::Line(line.clone()),
                file::Command::Words(words) => Run::Words(words.clone()),
            };
            let (audio, decode) = (given.audio.unwrap_or(false), given.decode.unwrap_or(true));
            return Some(Work::Command(Command { run, folder: self.common.folder.to_owned(), audio, decode }));
        }
        given.http.as_ref().and_then(|http| self.http(http)).map(Work::Http)
    }

    /// A setting without effect is reported as a mistake.
    fn check_keys(&mut self, kind: &str, given: &file::Stage) {
        let keys: [(&str, bool, &[&str]); 12] = [
            ("audio", given.audio.is_some(), &["command"]),
            ("decode", given.decode.is_some(), &["command", "transcribe"]),
            ("prompt", given.prompt.is_some(), &["chat"]),
            ("prompt_text", given.prompt_text.is_some(), &["chat", "transcribe"]),
            ("schema", given.schema.is_some(), &["chat"]),
            ("format", given.format.is_some(), &["chat"]),
            ("temperature", given.temperature.is_some(), &["chat"]),
            ("max_tokens", given.max_tokens.is_some(), &["chat"]),
            ("language", given.language.is_some(), &["chat", "transcribe"]),
            ("sentences", given.sentences.is_some(), &["builtin"]),
            ("words", given.words.is_some(), &["builtin"]),
            ("most", given.most.is_some(), &["builtin"]),
        ];
        for (key, _, of) in keys.into_iter().filter(|(_, is, of)| *is && !of.contains(&kind)) {
            self.mistake(format!("stage {} has {key}, which is for {}; leave it out", self.name, of.join(" and ")));
        }
    }

    fn check_model(&mut self, model: &str, kind: ModelKind) -> Option<()> {
        match self.common.models.get(model) {
            Some(found) if found.kind == kind => Some(()),
            Some(found) => {
                self.mistake(format!(
                    "stage {} needs a model for {}, and {model} is one for {}",
                    self.name,
                    kind.as_str(),
                    found.kind.as_str()
                ));
                None
            }
            None if self.common.file.models.contains_key(model) => None,
            None => {
                self.mistake(format!(
                    "stage {} asks the model {model:?}, which is not defined; write [models.{model}] with kind = \"{}\", url and model",
                    self.name,
                    kind.as_str()
                ));
                None
            }
        }
    }

    fn chat(&mut self, model: &str, given: &file::Stage) -> Option<Chat> {
        self.check_model(model, ModelKind::Chat)?;
        let key = given.key.as_deref().unwrap_or(self.name);
        let usual = PROMPTS.iter().find(|(name, ..)| *name == key);
        let (prompt, from) = match (&given.prompt, &given.prompt_text) {
            (Some(_), Some(_)) => {
                self.mistake(format!("stage {} has both prompt and prompt_text; keep one", self.name));
                return None;
            }
            (Some(file), None) => (self.file(file)?, file.display().to_string()),
            (None, Some(text)) => (text.clone(), "prompt_text".to_owned()),
            (None, None) => match usual {
                Some((name, prompt, _)) => ((*prompt).to_owned(), format!("the built-in prompt {name}")),
                None => {
                    self.mistake(format!("stage {} has no prompt; write prompt = \"prompts/{}.md\"", self.name, self.name));
                    return None;
                }
            },
        };
        let schema = match (&given.schema, usual) {
            (Some(file::Schema::File(file)), _) => Some((self.file(file)?, file.display().to_string())),
            (Some(file::Schema::Inline(table)), _) => Some((serde_json::to_string(table).unwrap_or_default(), "schema".to_owned())),
            (None, Some((name, _, schema))) if given.prompt.is_none() && given.prompt_text.is_none() => {
                Some(((*schema).to_owned(), format!("the built-in schema {name}")))
            }
            (None, _) => None,
        };
        let schema = match schema {
            Some((text, from)) => Some(self.schema(&text, &from)?),
            None => None,
        };
        let (system, user) = match split(&prompt) {
            Some((system, user)) => (Some(self.template(&from, system)?), self.template(&from, user)?),
            None => (None, self.template(&from, &prompt)?),
        };
        let format = match given.format.as_deref() {
            None | Some("json_schema") => Format::JsonSchema,
            Some("json_object") => Format::JsonObject,
            Some("plain") => Format::Plain,
            Some(other) => {
                self.mistake(format!("stage {} has the format {other:?}; write \"json_schema\", \"json_object\" or \"plain\"", self.name));
                return None;
            }
        };
        let language = given.language.clone().or_else(|| self.common.file.language.clone());
        let (temperature, max_tokens) = (given.temperature, given.max_tokens);
        Some(Chat { model: model.to_owned(), system, user, schema, format, temperature, max_tokens, language })
    }

    fn http(&mut self, given: &file::Http) -> Option<Http> {
        let Ok(method) = given.method.to_uppercase().parse::<http::Method>() else {
            self.mistake(format!("stage {} has the method {:?}; write \"POST\" or \"GET\"", self.name, given.method));
            return None;
        };
        let host = given.url.split('/').take(3).collect::<Vec<_>>().join("/");
        if !(host.starts_with("http://") || host.starts_with("https://")) || host.contains('{') {
            self.mistake(format!(
                "stage {} calls {:?}; the address begins with http:// or https:// and a host that no item can choose",
                self.name, given.url
            ));
            return None;
        }
        let mut headers = std::collections::BTreeMap::new();
        for (name, value) in &given.headers {
            match Template::with_environment(&format!("the header {name}"), value.clone()) {
                Ok(template) if http::HeaderName::from_bytes(name.as_bytes()).is_ok() => drop(headers.insert(name.clone(), template)),
                Ok(_) => self.mistake(format!("stage {} has the header {name:?}, which is no name of a header", self.name)),
                Err(error) => self.mistake(format!("stage {}: {error}", self.name)),
            }
        }
        let url = self.template("the url", &given.url)?;
        let body = match &given.body {
            Some(body) => Some(self.template("the body", body)?),
            None => None,
        };
        let (expect, retry, give_up) = (given.expect.clone(), given.retry.clone(), given.give_up.clone());
        Some(Http { method, url, headers, body, expect, retry, give_up })
    }

    fn file(&mut self, path: &Path) -> Option<String> {
        let path = self.common.folder.join(path);
        match std::fs::read_to_string(&path) {
            Ok(text) => Some(text),
            Err(error) => {
                self.mistake(format!("stage {}: read {}: {error}", self.name, path.display()));
                None
            }
        }
    }

    fn template(&mut self, name: &str, text: &str) -> Option<Template> {
        Template::new(name, text.to_owned()).map_err(|error| self.mistake(format!("stage {}: {error}", self.name))).ok()
    }

    fn schema(&mut self, text: &str, from: &str) -> Option<Schema> {
        let read = serde_json::from_str::<Value>(text).map_err(|error| error.to_string()).and_then(Schema::new);
        read.map_err(|error| self.mistake(format!("stage {}: {from} is no JSON schema: {error}", self.name))).ok()
    }
}

/// A line of three dashes separates the system prompt from the user prompt.
fn split(prompt: &str) -> Option<(&str, &str)> {
    prompt.split_once("\n---\n").map(|(system, user)| (system.trim(), user.trim()))
}
