//! A pipeline file made ready to run: prompts and schemas read, models resolved, mistakes collected.

mod stage;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use chrono::FixedOffset;
use gleaner_stages::Stage;
use gleaner_stages::models::Models;
use gleaner_stages::recording::Limits;
use toml::Spanned;

use super::mistake::Mistakes;
use super::{file, models};

/// Everything a file says.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub queues: BTreeMap<String, Queue>,
    pub models: Models,
    pub limits: Limits,
    pub utc_offset: Option<FixedOffset>,
}

#[derive(Debug, Clone)]
pub(super) struct Queue {
    /// The path of the text in the payload: names separated by dots.
    pub text: String,
    pub record: Option<file::Record>,
    pub kinds: BTreeMap<String, Kind>,
}

#[derive(Debug, Clone)]
pub(super) struct Kind {
    pub stages: Vec<Stage>,
    pub time_limit: Option<Duration>,
    /// The stage that cannot run here, and why.
    pub lacks: Option<(String, String)>,
}

/// Settings that all stages of a file share.
pub(super) struct Common<'a> {
    pub file: &'a file::File,
    pub folder: &'a Path,
    pub models: &'a Models,
}

impl Plan {
    pub(super) fn of(file: &file::File, folder: &Path, mistakes: &mut Mistakes<'_>) -> Self {
        let models = models::read(file, folder, mistakes);
        let common = Common { file, folder, models: &models };
        let mut stages: BTreeMap<&str, Stage> = BTreeMap::new();
        for (name, given) in &file.stages {
            if let Some(stage) = stage::read(&common, name, given, mistakes) {
                stages.insert(name, stage);
            }
        }
        let mut queues = BTreeMap::new();
        for (name, queue) in &file.queues {
            queues.insert(name.clone(), read_queue(&common, name, queue, &stages, mistakes));
        }
        if queues.is_empty() && mistakes.found.is_empty() {
            mistakes.at(
                &(0..0),
                "there is no queue; write [queues.activities.kinds] and below it, for example, sms = [\"clean\", \"summary\"]",
            );
        }
        let usual = Limits::default();
        let limits = Limits {
            bytes: file.recordings.limit_mib.map_or(usual.bytes, |mib| mib.saturating_mul(1024 * 1024)),
            longest: duration(file.recordings.longest.as_ref(), mistakes).unwrap_or(usual.longest),
        };
        let utc_offset = file.utc_offset.as_ref().and_then(|given| {
            let offset = given.get_ref().parse::<FixedOffset>();
            if offset.is_err() {
                mistakes.at(&given.span(), format!("utc_offset is {:?}; it looks like \"+01:00\"", given.get_ref()));
            }
            offset.ok()
        });
        Self { queues, models, limits, utc_offset }
    }
}

fn read_queue(
    common: &Common<'_>,
    queue: &str,
    given: &Spanned<file::Queue>,
    defined: &BTreeMap<&str, Stage>,
    mistakes: &mut Mistakes<'_>,
) -> Queue {
    let place = given.span();
    let given = given.get_ref();
    let limit = duration(given.time_limit.as_ref(), mistakes);
    if given.kinds.is_empty() {
        mistakes
            .at(&place, format!("queue {queue} has no kinds; write [queues.{queue}.kinds] and below it \"*\" = [\"clean\", \"summary\"]"));
    }
    let mut kinds = BTreeMap::new();
    for (kind, list) in &given.kinds {
        let place = list.span();
        let names = list.get_ref().stages();
        if names.is_empty() {
            mistakes.at(&place, format!("{queue}/{kind} has no stages; leave the line out, or write {kind} = [\"clean\", \"summary\"]"));
        }
        let mut stages: Vec<Stage> = Vec::new();
        for name in names {
            let known = defined.get(name.as_str()).cloned().or_else(|| stage::built_in(common, name));
            match known {
                _ if stages.iter().any(|stage| stage.name == *name) => {
                    mistakes.at(&place, format!("{queue}/{kind} has the stage {name} twice"));
                }
                Some(stage) => stages.push(stage),
                // The stage is defined, but invalid. That was reported at its definition.
                None if common.file.stages.contains_key(name) => {}
                None => mistakes.at(
                    &place,
                    format!(
                        "{queue}/{kind} has the stage {name:?}, which is neither built in ({}) nor defined; write [stages.{name}]",
                        stage::names()
                    ),
                ),
            }
        }
        let time_limit = match list.get_ref().time_limit() {
            Some(text) => parse_duration(text, &place, mistakes),
            None => limit,
        };
        let lacks = stages.iter().find_map(|stage| Some((stage.name.clone(), stage.lacks(common.models)?)));
        kinds.insert(kind.clone(), Kind { stages, time_limit, lacks });
    }
    Queue { text: given.text.clone().unwrap_or_else(|| "content".into()), record: given.record.clone(), kinds }
}

pub(super) fn duration(given: Option<&Spanned<String>>, mistakes: &mut Mistakes<'_>) -> Option<Duration> {
    given.and_then(|given| parse_duration(given.get_ref(), &given.span(), mistakes))
}

pub(super) fn parse_duration(text: &str, place: &std::ops::Range<usize>, mistakes: &mut Mistakes<'_>) -> Option<Duration> {
    match humantime::parse_duration(text) {
        Ok(duration) if !duration.is_zero() => Some(duration),
        _ => {
            mistakes.at(place, format!("{text:?} is no time; write it as \"90 seconds\", \"10 minutes\" or \"2h\""));
            None
        }
    }
}
