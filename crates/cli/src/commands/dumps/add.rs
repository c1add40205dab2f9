//! `gleaner dumps add`: documents, notes.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
use futures_util::stream;
use gleaner_http::Caller;
use gleaner_intake::dumps::{Added, Dumps, Upload, limit_from_env};
use gleaner_intake::files::Files;
use serde_json::Value;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::{size, standing};
use crate::App;
use crate::output::{BAD, DIM, GOOD, paint};
use crate::words::harmless;

/// How often --wait checks.
const LOOK: Duration = Duration::from_millis(200);

/// Add documents for agents to read: text, Markdown, HTML, PDF or DOCX.
///
/// Answers as soon as they are stored. The same file twice in one basket is one dump. Without a basket they go to the oldest one; where
/// there is none, a workspace "Default" with a basket "Inbox" is made.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner dumps add notes.md paper.pdf
  gleaner dumps add --wait report.docx               until an agent has read it
  echo 'Call Ada on Friday.' | gleaner dumps add -    what a program says
  gleaner dumps add notes.md --basket 1f0c…")]
pub(crate) struct Args {
    /// The files; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The basket's id
    #[arg(long)]
    basket: Option<Uuid>,
    /// Wait until agents have read them, and say what they found
    #[arg(long)]
    wait: bool,
}

pub(crate) async fn run(app: &App, args: Args) -> Result<ExitCode> {
    let home = app.target.home()?;
    let pool = gleaner::pool(&app.target.url().await?, 4)?;
    let dumps = Dumps::new(pool, Files::from_env(home.path())?, limit_from_env().map_err(anyhow::Error::msg)?);
    let client = app.target.client().await?;
    let basket = match args.basket {
        Some(basket) => basket,
        None => usual_basket(&client).await?,
    };
    let mut all = Vec::new();
    for file in &args.files {
        let (name, bytes) = read(file)?;
        let upload = Upload { basket: Some(basket), name, media_type: None };
        let body = stream::iter([Ok::<_, std::convert::Infallible>(Bytes::from(bytes))]);
        let added = dumps.add(&Caller::Ourselves, &upload, body).await.with_context(|| format!("add {}", file.display()))?;
        tell(app, &added);
        all.push(added);
    }
    let mut ends = Vec::new();
    if args.wait {
        for added in &all {
            ends.push(wait(app, &client, added).await?);
        }
    }
    app.out.json(&all);
    Ok(if ends.iter().all(|done| *done) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn read(file: &std::path::Path) -> Result<(String, Vec<u8>)> {
    if file.as_os_str() == "-" {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut std::io::stdin(), &mut bytes).context("read standard input")?;
        return Ok(("note.txt".to_owned(), bytes));
    }
    let bytes = std::fs::read(file).with_context(|| format!("read {}", file.display()))?;
    Ok((file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(), bytes))
}

async fn usual_basket(client: &tokio_postgres::Client) -> Result<Uuid> {
    let sql = "select coalesce((select b.id from public.baskets as b order by b.created_at, b.id limit 1),
                               (public.fn_workspace_create('Default') ->> 'basket_id')::uuid)";
    let row =
        client.query_one(sql, &[]).await.context("find a basket: does this database have the system dumps? `gleaner migrate` says")?;
    Ok(row.get(0))
}

fn tell(app: &App, added: &Added) {
    let done = if added.known { paint(DIM, "known") } else { paint(GOOD, "added") };
    app.out.line(format!("{done}  {}  {}  {}  {}", added.id, harmless(&added.name), size(added.size), added.media_type));
}

/// Shows the stages as they come, and returns whether it was completed.
async fn wait(app: &App, client: &tokio_postgres::Client, added: &Added) -> Result<bool> {
    let sql = "select q.processing_state::text, q.progress, q.result ->> 'message', q.error_message, gleaner.state_dumps(q, now())
               from public.agent_processing_queue as q where q.dump_id = $1";
    let mut last = String::new();
    loop {
        let Some(row) = client.query_typed(sql, &[(&added.id, Type::UUID)]).await?.pop() else { bail!("{} was deleted", added.id) };
        let (state, progress): (String, Option<Value>) = (row.get(0), row.get(1));
        let (message, error): (Option<String>, Option<String>) = (row.get(2), row.get(3));
        let progress = progress.unwrap_or_default();
        let now = standing(&state, progress["stage"].as_str(), progress["percent"].as_f64(), message.as_deref(), error.as_deref());
        let ended = match (state.as_str(), row.get::<_, &str>(4)) {
            ("completed", _) => Some(true),
            ("cancelled", _) | (_, "dead") => Some(false),
            _ => None,
        };
        if now != last {
            let style = match ended {
                Some(true) => GOOD,
                Some(false) => BAD,
                None => DIM,
            };
            app.out.line(format!("  {}  {}", harmless(&added.name), paint(style, harmless(&now))));
            last = now;
        }
        if let Some(done) = ended {
            return Ok(done);
        }
        tokio::time::sleep(LOOK).await;
    }
}
