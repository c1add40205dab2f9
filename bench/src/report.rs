//! Prints figures as they are measured, and the table at the end.

use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};

/// One measured figure, with its baseline.
#[derive(Debug)]
struct Figure {
    /// The server it was measured on.
    server: String,
    what: String,
    value: f64,
    unit: &'static str,
    compared: Compared,
}

#[derive(Debug)]
enum Compared {
    Alone,
    AtMost(f64),
    /// The ratio, its baseline, and the target ratio.
    To(f64, String, Option<f64>),
}

#[derive(Debug, Default)]
pub(crate) struct Report {
    version: String,
    peer: Option<String>,
    /// Names and settings, the one that is being measured last.
    servers: Vec<(String, String)>,
    figures: Vec<Figure>,
}

impl Report {
    /// Sets the server of the next figures.
    pub(crate) fn on(&mut self, server: &str, version: &str, settings: String) {
        println!("\nserver {server}: PostgreSQL {version}, {settings}");
        version.clone_into(&mut self.version);
        self.servers.push((server.to_owned(), settings));
    }

    /// Sets the name and release of the peer that is also measured.
    pub(crate) fn peer(&mut self, name: String) {
        self.peer = Some(name);
    }

    /// A figure without a baseline.
    pub(crate) fn figure(&mut self, what: impl Into<String>, value: f64, unit: &'static str) {
        self.add(what.into(), value, unit, Compared::Alone);
    }

    /// A figure without a baseline, with a target of at most `aim`.
    pub(crate) fn at_most(&mut self, what: impl Into<String>, value: f64, unit: &'static str, aim: f64) {
        self.add(what.into(), value, unit, Compared::AtMost(aim));
    }

    /// A figure and its ratio to `baseline`, with a target of at least `aim`.
    pub(crate) fn ratio(
        &mut self,
        what: impl Into<String>,
        value: f64,
        unit: &'static str,
        baseline: f64,
        of: impl Into<String>,
        aim: Option<f64>,
    ) {
        self.add(what.into(), value, unit, Compared::To(value / baseline, of.into(), aim));
    }

    fn add(&mut self, what: String, value: f64, unit: &'static str, compared: Compared) {
        let server = self.servers.last().map_or_else(String::new, |(name, _)| name.clone());
        let figure = Figure { server, what, value, unit, compared };
        println!("{}", line(&figure));
        self.figures.push(figure);
    }

    pub(crate) fn print(&self) {
        let peer = self.peer.as_ref().map(|p| format!("{p}, ")).unwrap_or_default();
        println!("\nPostgreSQL {}, {peer}{} cores", self.version, std::thread::available_parallelism().map_or(0, usize::from));
        for (name, settings) in &self.servers {
            println!("server {name}: {settings}");
        }
        println!("{:<6} {:<62} {:>12}        {:>6}", "server", "what", "figure", "ratio");
        for figure in &self.figures {
            println!("{}", line(figure));
        }
    }

    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let figures: Vec<Value> = self.figures.iter().map(as_json).collect();
        let servers: serde_json::Map<String, Value> =
            self.servers.iter().map(|(name, settings)| (name.clone(), Value::from(settings.as_str()))).collect();
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let all = json!({"postgresql": self.version, "peer": self.peer, "servers": servers, "figures": figures});
        Ok(std::fs::write(path, serde_json::to_string_pretty(&all)?)?)
    }
}

fn as_json(f: &Figure) -> Value {
    let (ratio, of, aim, at_most) = match &f.compared {
        Compared::Alone => (None, None, None, None),
        Compared::AtMost(aim) => (None, None, None, Some(aim)),
        Compared::To(ratio, of, aim) => (Some(ratio), Some(of), aim.as_ref(), None),
    };
    json!({"server": f.server, "what": f.what, "value": f.value, "unit": f.unit, "ratio": ratio, "baseline": of, "aim": aim, "at_most": at_most})
}

fn line(f: &Figure) -> String {
    let value = if f.value >= 1000.0 { format!("{:.1} k", f.value / 1000.0) } else { format!("{:.2}", f.value) };
    let mut text = format!("{:<6} {:<62} {value:>12} {:<6}", f.server, f.what, f.unit);
    let met = |met: bool| if met { "met" } else { "MISSED" };
    match &f.compared {
        Compared::Alone => {}
        Compared::AtMost(aim) => text += &format!(" (aim at most {aim}, {})", met(f.value <= *aim)),
        Compared::To(ratio, of, aim) => {
            text += &format!(" {ratio:>6.2} of {of}");
            if let Some(aim) = aim {
                text += &format!(" (aim {aim:.1}, {})", met(ratio >= aim));
            }
        }
    }
    text
}
