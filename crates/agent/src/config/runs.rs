//! The section `runs`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use gleaner_systems::runs::Settings;
use ipnet::IpNet;

use super::layers::Layers;
use super::read;

/// Variables of the agent that a recording may use: `{{secret.NAME}}` is what `GLEANER_RUN_SECRET_NAME` says.
const SECRET: &str = "GLEANER_RUN_SECRET_";

pub(super) fn secrets(variables: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    variables.iter().filter_map(|(name, value)| Some((name.strip_prefix(SECRET)?.to_owned(), value.clone()))).collect()
}

pub(super) fn read(layers: &mut Layers, secrets: BTreeMap<String, String>) -> Settings {
    let mut allow = Vec::new();
    for text in layers.maybe("runs.allow", read::list).unwrap_or_default() {
        match network(&text) {
            Some(network) => allow.push(network),
            None => layers.mistake("runs.allow", format!("{text:?} is neither an address nor a network such as 10.0.0.0/8")),
        }
    }
    let mut program = |key: &str| layers.maybe(key, read::text).filter(|text| !text.is_empty()).map(PathBuf::from);
    Settings {
        chromium: program("runs.chromium"),
        chromedriver: program("runs.chromedriver"),
        slots: layers.maybe("runs.slots", read::number(0..=64)).unwrap_or(1),
        labels: layers.maybe("runs.labels", read::list).unwrap_or_default(),
        per_site: layers.maybe("runs.per_site", read::number(1..=1000)).unwrap_or(2),
        allow,
        secrets,
    }
}

fn network(text: &str) -> Option<IpNet> {
    text.parse().ok().or_else(|| text.parse::<std::net::IpAddr>().ok().map(IpNet::from))
}
