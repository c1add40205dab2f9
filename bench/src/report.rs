//! Figures as they come, and the table at the end.

use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};

/// One measured figure, with the baseline it is compared to and the ratio we aim at.
#[derive(Debug)]
struct Figure {
    what: String,
    value: f64,
    unit: &'static str,
    ratio: Option<(f64, String, Option<f64>)>,
}

#[derive(Debug)]
pub struct Report {
    version: String,
    peer: Option<String>,
    figures: Vec<Figure>,
}

impl Report {
    pub fn new(version: &str) -> Self {
        Self { version: version.into(), peer: None, figures: Vec::new() }
    }

    /// Which release of whom is measured beside us.
    pub fn peer(&mut self, name: String) {
        self.peer = Some(name);
    }

    /// A figure by itself.
    pub fn figure(&mut self, what: impl Into<String>, value: f64, unit: &'static str) {
        self.add(Figure { what: what.into(), value, unit, ratio: None });
    }

    /// A figure and its ratio to `baseline`, where at least `aim` is wanted.
    pub fn ratio(
        &mut self,
        what: impl Into<String>,
        value: f64,
        unit: &'static str,
        baseline: f64,
        of: impl Into<String>,
        aim: Option<f64>,
    ) {
        self.add(Figure { what: what.into(), value, unit, ratio: Some((value / baseline, of.into(), aim)) });
    }

    fn add(&mut self, figure: Figure) {
        println!("{}", line(&figure));
        self.figures.push(figure);
    }

    pub fn print(&self) {
        let peer = self.peer.as_ref().map(|p| format!("{p}, ")).unwrap_or_default();
        println!("\nPostgreSQL {}, {peer}{} cores", self.version, std::thread::available_parallelism().map_or(0, usize::from));
        println!("{:<58} {:>12}        {:>6}", "what", "figure", "ratio");
        for figure in &self.figures {
            println!("{}", line(figure));
        }
    }

    pub fn write(&self, path: &Path) -> Result<()> {
        let figures: Vec<Value> = self
            .figures
            .iter()
            .map(|f| {
                let (ratio, of, aim) = f.ratio.as_ref().map_or((None, None, None), |(r, o, a)| (Some(r), Some(o), a.as_ref()));
                json!({"what": f.what, "value": f.value, "unit": f.unit, "ratio": ratio, "baseline": of, "aim": aim})
            })
            .collect();
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(path, serde_json::to_string_pretty(&json!({"postgresql": self.version, "peer": self.peer, "figures": figures}))?)?;
        Ok(())
    }
}

fn line(f: &Figure) -> String {
    let value = if f.value >= 1000.0 { format!("{:.1} k", f.value / 1000.0) } else { format!("{:.2}", f.value) };
    let mut text = format!("{:<58} {value:>12} {:<6}", f.what, f.unit);
    if let Some((ratio, of, aim)) = &f.ratio {
        text += &format!(" {ratio:>6.2} of {of}");
        if let Some(aim) = aim {
            text += &format!(" (aim {aim:.1}{})", if ratio >= aim { ", met" } else { ", MISSED" });
        }
    }
    text
}
