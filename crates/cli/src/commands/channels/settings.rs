//! Settings on the command line, and ways to give a secret that no other user of the machine can read.

use std::io::Read as _;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

/// Settings of a channel, as `gleaner channels providers` lists them.
#[derive(Debug, clap::Args)]
pub(super) struct Settings {
    /// A setting. For secrets say KEY=@FILE or KEY=- (standard input): every user of the machine can read a command line. A value
    /// that begins with @ is written with two
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// A setting whose value is in an environment variable
    #[arg(long = "set-env", value_name = "KEY=VARIABLE")]
    set_env: Vec<String>,
}

impl Settings {
    /// Names and values, in the order given. Errors name the setting and never the value.
    pub(super) fn read(&self) -> Result<Vec<(String, Value)>> {
        let mut settings = Vec::new();
        let mut stdin_for: Option<String> = None;
        for given in &self.set {
            // The argument may be a secret without its name, so the error does not repeat it.
            let Some((name, value)) = given.split_once('=') else { bail!("--set takes KEY=VALUE") };
            if value == "-"
                && let Some(other) = stdin_for.replace(name.to_owned())
            {
                bail!("{other} and {name} cannot both come from standard input");
            }
            settings.push((name.to_owned(), Value::String(read(value).with_context(|| format!("read {name}"))?)));
        }
        for given in &self.set_env {
            let Some((name, variable)) = given.split_once('=') else { bail!("--set-env takes KEY=VARIABLE") };
            let value = std::env::var(variable).ok().with_context(|| format!("{name}: there is no variable {variable:?}"))?;
            settings.push((name.to_owned(), Value::String(value)));
        }
        for (n, (name, _)) in settings.iter().enumerate() {
            if settings[..n].iter().any(|(earlier, _)| earlier == name) {
                bail!("{name} is given twice");
            }
        }
        Ok(settings)
    }
}

/// The value itself, the content of a file (`@FILE`), or standard input (`-`). A line break at the end is not part of a secret.
pub(super) fn read(value: &str) -> Result<String> {
    let mut text = match value.strip_prefix('@') {
        Some(rest) if rest.starts_with('@') => return Ok(rest.to_owned()),
        Some(file) => std::fs::read_to_string(file).with_context(|| file.to_owned())?,
        None if value == "-" => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).context("standard input")?;
            text
        }
        None => return Ok(value.to_owned()),
    };
    text.truncate(text.trim_end_matches(['\n', '\r']).len());
    Ok(text)
}
