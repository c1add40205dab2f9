//! `gleaner agent mcp`.

mod token;

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use gleaner::transport::Direct;
use gleaner_agent::mcp::{DirectBackend, Grant, Guard, Service, Settings, WireBackend};
use gleaner_agent::wire::{self, Wire};
use gleaner_agent::{a2a, mcp};
use serde_json::json;

use crate::App;
use crate::output::{self, BOLD, DIM, paint};
use crate::signals::Signals;

/// Let an AI assistant work queues, over the Model Context Protocol (MCP).
///
/// Uses standard input and output, for the assistant that started it; with --http a port, for assistants that have the
/// address and the token, and for other agents over A2A. Each assistant is an agent of its own: it claims under a lease, and
/// its items are released when it disconnects.
///
/// What it reads was written by others, and may contain instructions. So it can only act on items it holds, unless more is granted:
/// `cancel` ends items of any owner, `link` links an activity to a contact, `schedule` schedules follow-ups that will be sent.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  claude mcp add gleaner -- gleaner agent mcp                 the assistant starts it by itself
  gleaner agent mcp --queues activities --owner 7             one queue, and the work of owner 7 first
  gleaner agent mcp --grant link,schedule                     it may also link contacts and schedule follow-ups
  gleaner agent mcp --http 127.0.0.1:7434                     on a port, for several assistants
  gleaner agent mcp --http 127.0.0.1:7434 --accept jobs       other agents may also put tasks into jobs (A2A)")]
pub(super) struct Args {
    /// What the assistant may do beyond its own items: cancel, link, schedule
    #[arg(long, value_delimiter = ',', value_name = "GRANT,…")]
    grant: Vec<Grant>,
    /// The queues it sees; all of them when left out
    #[arg(long, value_delimiter = ',', value_name = "QUEUE,…")]
    queues: Option<Vec<String>>,
    /// Work for this owner first
    #[arg(long)]
    owner: Option<String>,
    /// How long the leases of a silent assistant are renewed
    #[arg(long, default_value_t = 600, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    patience: u64,
    /// Listen here instead of standard input
    #[arg(long, value_name = "ADDRESS")]
    http: Option<SocketAddr>,
    /// The file with the token that callers of --http send; created when it does not exist. GLEANER_MCP_TOKEN takes precedence
    #[arg(long, value_name = "FILE", requires = "http")]
    token_file: Option<std::path::PathBuf>,
    /// Another host name of this server, besides loopback
    #[arg(long, value_delimiter = ',', value_name = "HOST,…", requires = "http")]
    allow_host: Vec<String>,
    /// An origin whose pages may connect
    #[arg(long, value_delimiter = ',', value_name = "ORIGIN,…", requires = "http")]
    allow_origin: Vec<String>,
    /// Queues into which other agents may enqueue, over A2A
    #[arg(long, value_delimiter = ',', value_name = "QUEUE,…", requires = "http")]
    accept: Vec<String>,
}

pub(super) async fn run(app: &App, args: Args) -> Result<ExitCode> {
    let mut signals = Signals::listen()?;
    output::end_orderly();
    let (backend, owner) = backend(app, args.owner.clone()).await?;
    let settings = Settings {
        grants: args.grant.iter().copied().collect(),
        queues: args.queues.clone(),
        accepts: args.accept.clone(),
        owner,
        patience: Duration::from_secs(args.patience),
        ..Settings::default()
    };
    let service = Service::new(backend, settings);
    // Checked now, so that the error is seen where it is started and not by a model.
    let known = gleaner::transport::Endpoint::queues(service.backend().endpoint()).await?;
    if let Some(unknown) = args.queues.iter().flatten().chain(&args.accept).find(|queue| !known.contains(queue)) {
        return Err(gleaner::Error::UnknownQueue { name: unknown.clone(), known }.into());
    }
    match args.http {
        None => {
            mcp::serve_stdio(&service, rmcp::transport::stdio_pipes(), async move { signals.any().await }).await?;
            // Standard input that is no pipe is read by a thread that nothing ends but its end.
            std::process::exit(0);
        }
        Some(address) => listen(app, &args, address, &service, signals).await,
    }
}

/// The database that was named, else the server of the session, else the private database; and whose work comes first.
async fn backend(app: &App, owner: Option<String>) -> Result<(Arc<dyn mcp::Backend>, Option<String>)> {
    let wire = match app.target.given() {
        Some(_) => None,
        None => wire::Settings::from_env(app.target.home()?.path())?,
    };
    let Some(settings) = wire else {
        let direct = Direct::new(&app.target.url().await?, 8)?;
        return Ok((Arc::new(DirectBackend::new(direct)), owner));
    };
    let wire = Wire::connect(settings)?;
    let owner = match owner {
        Some(owner) => Some(owner),
        None => wire.who().await?.map(|who| who.sales_id),
    };
    Ok((Arc::new(WireBackend::new(wire)), owner))
}

async fn listen(app: &App, args: &Args, address: SocketAddr, service: &Service, mut signals: Signals) -> Result<ExitCode> {
    if !address.ip().is_loopback() && args.allow_host.is_empty() {
        bail!(
            "{address} can be reached from elsewhere: say with --allow-host under which name, and put TLS in front, for the token travels in the clear"
        );
    }
    let (token, from) = token::find(app, args.token_file.as_deref())?;
    let listener = tokio::net::TcpListener::bind(address).await.with_context(|| format!("listen on {address}"))?;
    let address = listener.local_addr()?;
    let guard = Guard::new(token).hosts(args.allow_host.iter().cloned()).origins(args.allow_origin.iter().cloned());
    let router = mcp::router(service, guard.clone()).merge(a2a::router(service, guard));
    let base = format!("http://{address}");
    app.out.json(
        &json!({"running": true, "pid": std::process::id(), "mcp": format!("{base}/mcp"), "a2a": format!("{base}/a2a"), "token": from}),
    );
    app.out.line(format!("{} on {address}", paint(BOLD, "Listening")));
    app.out.line(format!("  MCP    {base}/mcp"));
    app.out.line(format!("  A2A    {base}/.well-known/agent-card.json"));
    app.out.line(format!("  token  {from}"));
    app.out.line(paint(DIM, "Ctrl-C stops, and gives back what assistants hold."));
    // Streams stay open for as long as assistants listen; what matters is given back, and then they are cut.
    let serving = tokio::spawn(async move { axum::serve(listener, router).await });
    signals.any().await;
    serving.abort();
    let released = service.close().await;
    if released > 0 {
        app.out.note(format!("{released} given back"));
    }
    Ok(ExitCode::SUCCESS)
}
