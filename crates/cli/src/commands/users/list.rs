//! `gleaner users list`.

use std::process::ExitCode;

use anyhow::Result;
use gleaner_supabase::auth::people;

use super::as_error;
use crate::App;
use crate::output::{BAD, DIM, GOOD, WARN};
use crate::table::{Cell, Table};
use crate::words::{member, span};

/// List the users, and when they last signed in.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner users list
  gleaner users list --json | jq -r '.[] | select(.state == \"disabled\") | .email'")]
pub(crate) struct Args {}

pub(super) async fn run(app: &App, _: Args) -> Result<ExitCode> {
    let client = app.target.client().await?;
    let people = people::list(&client).await.map_err(as_error)?;
    app.out.json(&people);
    let mut table = Table::new(&["EMAIL", "STATE", "ROLE", ">SALES", ">SESSIONS", "SIGNED IN"]);
    for person in &people {
        let state = member(person, "state");
        let style = match state.as_str() {
            "active" => GOOD,
            "disabled" | "banned" => BAD,
            _ => WARN,
        };
        let seen = person["signed_in_seconds_ago"].as_f64().map_or_else(|| "never".to_owned(), |seconds| format!("{} ago", span(seconds)));
        table.row(vec![
            member(person, "email").into(),
            Cell::styled(state, style),
            if person["administrator"] == true { "administrator".into() } else { Cell::styled("member", DIM) },
            member(person, "sales_id").into(),
            member(person, "sessions").into(),
            Cell::styled(seen, DIM),
        ]);
    }
    if people.is_empty() {
        app.out.line("There are no users yet. `gleaner users add EMAIL --admin` adds one.");
    } else {
        app.out.listing(table.text());
    }
    Ok(ExitCode::SUCCESS)
}
