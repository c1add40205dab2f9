//! `gleaner status`.

pub(crate) mod keys;
mod wait;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::ValueEnum;
use gleaner::registry::Surveyed;
use gleaner_postgres::Status;
use serde_json::{Value, json};

use crate::App;
use crate::output::{BAD, BOLD, GOOD, paint};
use crate::serving::Serving;
use crate::words::double_quoted;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Text,
    /// Lines for a shell's `eval`
    Env,
    Json,
    /// The address alone
    Url,
}

/// Show whether it runs, and where.
///
/// The exit code is 1 when it does not run. --wait also waits for the schema and for a server that answers /ready.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner status
  psql \"$(gleaner status -o url)\"           a prompt on the database
  eval \"$(gleaner status -o env)\"           sets DB_URL, API_URL, ANON_KEY, SERVICE_ROLE_KEY
  gleaner status -o json | jq -r .DB_URL
  gleaner status -q || gleaner up --detach  only when it does not run yet
  gleaner status --wait --timeout 120 -q    for scripts: go on when all of it answers")]
pub(crate) struct Args {
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
    /// Wait until the schema is there and the server answers /ready
    #[arg(long)]
    wait: bool,
    /// Seconds to wait
    #[arg(long, default_value_t = 60, value_name = "SECONDS", requires = "wait")]
    timeout: u64,
}

/// Where it runs, whichever kind it is.
struct Found {
    url: Option<String>,
    tcp_url: Option<String>,
    /// Where our server answers.
    api_url: Option<String>,
    whole: Value,
    lines: Vec<String>,
    sorry: String,
}

pub(crate) async fn run(app: &App, args: Args) -> Result<ExitCode> {
    if args.wait {
        wait::until_ready(app, Duration::from_secs(args.timeout)).await?;
    }
    let mut found = match app.target.given() {
        Some(url) => given(url).await?,
        None => private(gleaner_postgres::status(&app.target.home()?).await?),
    };
    if let Some(serving) = Serving::find(app.target.home()?.path()) {
        found.lines.insert(1.min(found.lines.len()), format!("  api   {}", serving.url()));
        found.whole["API_URL"] = json!(serving.url());
        found.api_url = Some(serving.url());
    }
    if let Some(url) = &found.url {
        let broken = broken_queues(url).await;
        found.lines.extend(
            broken
                .iter()
                .map(|queue| format!("  {} queue {}: {}", paint(BAD, "broken"), queue.name, queue.broken.as_deref().unwrap_or_default())),
        );
        found.whole["broken_queues"] = broken.iter().map(|queue| json!({"queue": queue.name, "broken": queue.broken})).collect();
    }
    let format = if app.out.json { Format::Json } else { args.output };
    // Keys are for those who ask in a form for programs; people do not need them on their screen.
    let wants_keys = found.url.is_some() && matches!(format, Format::Json | Format::Env);
    let keys = if wants_keys { keys::project_keys(app) } else { None };
    for (name, key) in keys.iter().flatten() {
        found.whole[*name] = json!(key);
    }
    match (format, &found.url) {
        (Format::Json, _) => app.out.data(serde_json::to_string_pretty(&found.whole)?),
        (Format::Text, _) => found.lines.iter().for_each(|line| app.out.line(line)),
        (_, None) => bail!("{}", found.sorry),
        (Format::Url, Some(url)) => app.out.data(url),
        (Format::Env, Some(url)) => {
            app.out.data(format!("DB_URL={}", double_quoted(url)));
            if let Some(url) = &found.tcp_url {
                app.out.data(format!("DB_TCP_URL={}", double_quoted(url)));
            }
            if let Some(url) = &found.api_url {
                app.out.data(format!("API_URL={}", double_quoted(url)));
            }
            for (name, key) in keys.iter().flatten() {
                app.out.data(format!("{name}={}", double_quoted(key)));
            }
        }
    }
    Ok(if found.url.is_some() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Queues that cannot be used. Empty when the database does not answer, which is reported elsewhere.
async fn broken_queues(url: &str) -> Vec<Surveyed> {
    let Ok(client) = gleaner::connect(url).await else { return Vec::new() };
    let queues = gleaner::registry::survey(&client).await.unwrap_or_default();
    queues.into_iter().filter(|queue| queue.broken.is_some()).collect()
}

fn private(now: Status) -> Found {
    let ready = now.server.as_ref().filter(|_| now.is_ready());
    let data = if now.initialised { "there is data" } else { "there is no data yet" };
    let sorry = format!("not running in {} ({data})\n  Start it with `gleaner up`", now.home.display());
    let mut lines = Vec::new();
    match &now.server {
        Some(server) => {
            let phase = serde_json::to_value(server.phase).ok().and_then(|p| p.as_str().map(str::to_owned)).unwrap_or_default();
            let style = if ready.is_some() { GOOD } else { BAD };
            let version = server.version.as_ref().map(|v| format!(" PostgreSQL {v},")).unwrap_or_default();
            lines.push(format!("{}{version} pid {}", paint(style, phase), server.pid));
            lines.push(format!("  url   {}", server.url));
            lines.extend(server.tcp_url.iter().map(|url| format!("        {url}")));
            match now.parent_pid {
                Some(pid) => lines.push(format!("  up    pid {pid}; `gleaner down` stops it")),
                None => lines.push("  up    gone; `gleaner up` takes it over, `gleaner down` stops it".into()),
            }
        }
        None => lines.push(format!("{}; {data}. Start it with `gleaner up`.", paint(BOLD, "not running"))),
    }
    lines.push(format!("  home  {}", now.home.display()));
    lines.push(format!("  log   {}", now.log.display()));
    let url = ready.map(|server| server.url.clone());
    let tcp_url = ready.and_then(|server| server.tcp_url.clone());
    let mut whole = json!(now);
    whole["running"] = json!(url.is_some());
    whole["DB_URL"] = json!(url);
    Found { url, tcp_url, api_url: None, whole, lines, sorry }
}

async fn given(url: &str) -> Result<Found> {
    let answer = async {
        let client = gleaner::connect(url).await?;
        let row = client
            .query_one("select current_setting('server_version'), current_database()::text, to_regclass('gleaner.queue') is not null", &[])
            .await;
        row.map_err(|source| gleaner::Error::Database { act: "ask the server".into(), source })
    };
    Ok(match answer.await {
        Ok(row) => {
            let (version, database, migrated): (String, String, bool) = (row.get(0), row.get(1), row.get(2));
            let schema = if migrated { "migrated" } else { "not migrated yet; run `gleaner migrate`" };
            Found {
                url: Some(url.to_owned()),
                tcp_url: None,
                api_url: None,
                whole: json!({"running": true, "DB_URL": url, "version": version, "database": database, "migrated": migrated}),
                lines: vec![
                    format!("{} PostgreSQL {version}, database {database}, {schema}", paint(GOOD, "answers")),
                    "  DATABASE_URL is set, so this database is used".into(),
                ],
                sorry: String::new(),
            }
        }
        Err(error) => Found {
            url: None,
            tcp_url: None,
            api_url: None,
            whole: json!({"running": false, "DB_URL": null, "error": error.to_string()}),
            lines: vec![format!("{}: {error}", paint(BAD, "does not answer")), "  DATABASE_URL is set, so that database was asked".into()],
            sorry: format!("the database in DATABASE_URL does not answer: {error}"),
        },
    })
}
