//! What to try once it runs.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::App;
use crate::output::{BOLD, paint};
use crate::words::{count, shell_word};

/// Where to look later.
pub(super) const LOOK: &str =
    "`gleaner status` says where everything is, `gleaner logs` what it logged, `gleaner help` what else there is.";

pub(super) async fn queues(url: &str) -> Result<Vec<String>> {
    let client = gleaner::connect(url).await?;
    Ok(gleaner::registry::list(&client).await?.into_iter().map(|entry| entry.name).collect())
}

pub(super) fn schema(applied: usize) -> String {
    if applied == 0 { "up to date".to_owned() } else { format!("{} applied", count(applied as i64, "step")) }
}

/// Commands that work as they stand, one after the other.
pub(super) fn hints(app: &App, place: &str) -> String {
    let gleaner = program();
    let mut lines = vec![String::new(), paint(BOLD, format!("Try next, {place}:"))];
    if let Some(home) = app.target.unusual_home().filter(|_| app.target.given().is_none()) {
        let home = std::path::absolute(home).unwrap_or_else(|_| home.clone());
        lines.push(format!("  export GLEANER_HOME={}", shell_word(&home.display().to_string())));
    }
    lines.extend([
        format!("  {gleaner} enqueue jobs --kind greet '{{\"name\": \"Ada\"}}'"),
        format!("  {gleaner} work jobs --exec 'echo \"Hello from item $GLEANER_ID\"' --until-empty"),
        format!("  {gleaner} items list jobs"),
        format!("  psql \"$({gleaner} status -o url)\" -c 'select id, kind, status, result from gleaner.jobs'"),
    ]);
    lines.push(String::new());
    lines.join("\n")
}

/// How to call us from there: by name where the PATH leads here, else by the way that was taken.
fn program() -> String {
    let Ok(me) = std::env::current_exe().and_then(|path| path.canonicalize()) else { return "gleaner".into() };
    let on_path = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .map(|folder| folder.join("gleaner"))
        .find(|candidate| candidate.is_file())
        .is_some_and(|found| found.canonicalize().is_ok_and(|found| found == me));
    if on_path { "gleaner".into() } else { shell_word(&from_here(&me).display().to_string()) }
}

fn from_here(path: &Path) -> PathBuf {
    let here = std::env::current_dir().ok().and_then(|here| here.canonicalize().ok());
    let below = here.and_then(|here| path.strip_prefix(here).ok());
    below.map_or_else(|| path.to_owned(), |below| Path::new(".").join(below))
}
