//! `gleaner channels providers`.

use std::process::ExitCode;

use anyhow::{Result, bail};
use gleaner_ingest::providers::{COMMON, all};
use gleaner_ingest::{Provider, Setting};
use serde_json::{Value, json};

use super::tools::Form;
use crate::App;
use crate::output::{BOLD, DIM, paint};
use crate::table::{Cell, Table};

/// List the providers, and the settings of a channel of each.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner channels providers
  gleaner channels providers twilio         only this one")]
pub(crate) struct Args {
    /// Code of a provider
    provider: Option<String>,
    #[command(flatten)]
    form: Form,
}

pub(super) async fn run(app: &App, args: Args) -> Result<ExitCode> {
    let out = args.form.of(app);
    let wanted = |provider: &&&dyn Provider| args.provider.as_deref().is_none_or(|code| provider.code() == code);
    let providers: Vec<_> = all().iter().filter(wanted).collect();
    if providers.is_empty() {
        let known: Vec<_> = all().iter().map(|provider| provider.code()).collect();
        bail!("there is no provider {:?}; there are: {}", args.provider.unwrap_or_default(), known.join(", "));
    }
    out.json(&providers.iter().map(|provider| described(**provider)).collect::<Vec<_>>());
    for provider in &providers {
        out.listing(format!("{}  {}", paint(BOLD, provider.code()), provider.title()));
        out.listing(settings(provider.settings()));
    }
    out.listing(paint(BOLD, "every channel"));
    out.listing(settings(COMMON));
    out.listing(
        "Every secret may have a second one beside it, NAME_previous; `gleaner channels rotate` keeps the old one there for a while.",
    );
    Ok(ExitCode::SUCCESS)
}

fn settings(settings: &[Setting]) -> String {
    let mut table = Table::new(&["  SETTING", "KIND", "ABOUT"]);
    for setting in settings {
        let kind = match (setting.required, setting.secret) {
            (true, true) => "required, secret",
            (true, false) => "required",
            (false, true) => "secret",
            (false, false) => "",
        };
        table.row(vec![format!("  {}", setting.name).into(), Cell::styled(kind, DIM), setting.about.into()]);
    }
    if settings.is_empty() { String::new() } else { table.text() + "\n" }
}

fn described(provider: &dyn Provider) -> Value {
    let settings = provider
        .settings()
        .iter()
        .chain(COMMON)
        .map(|setting| json!({"name": setting.name, "secret": setting.secret, "required": setting.required, "about": setting.about}));
    json!({"code": provider.code(), "title": provider.title(), "settings": settings.collect::<Vec<_>>()})
}
