//! `gleaner agent mcp`.

mod token;

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use gleaner::transport::Direct;
use gleaner_agent::mcp::{DirectDesk, Grant, Guard, Service, Settings, WireDesk};
use gleaner_agent::wire::{self, Wire};
use gleaner_agent::{a2a, mcp};
use serde_json::json;

use crate::Desk;
use crate::output::{self, BOLD, DIM, paint};
use crate::signals::Signals;

/// Let an assistant be the worker, over the Model Context Protocol.
///
/// Speaks on standard input and output, for the assistant that started it; with --http on a port, for assistants that are told
/// the address and the token, and for other agents over A2A. Each assistant is an agent of its own: it claims under a lease, and
/// what it holds is given back when it goes.
///
/// What it reads was written by strangers, who may write orders. So it can only work on items it holds, unless more is granted:
/// `cancel` ends anybody's items, `link` says whom an activity came from, `schedule` makes follow-ups that will be sent.
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
    /// How long an assistant may be silent before life is no longer shown for what it holds
    #[arg(long, default_value_t = 600, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    patience: u64,
    /// Listen here instead of standard input
    #[arg(long, value_name = "ADDRESS")]
    http: Option<SocketAddr>,
    /// The file with the token that callers of --http send; made when it is not there. GLEANER_MCP_TOKEN goes before it
    #[arg(long, value_name = "FILE", requires = "http")]
    token_file: Option<std::path::PathBuf>,
    /// Another name this server goes by, beyond loopback
    #[arg(long, value_delimiter = ',', value_name = "HOST,…", requires = "http")]
    allow_host: Vec<String>,
    /// An origin whose pages may come in
    #[arg(long, value_delimiter = ',', value_name = "ORIGIN,…", requires = "http")]
    allow_origin: Vec<String>,
    /// Queues into which other agents may put tasks, over A2A
    #[arg(long, value_delimiter = ',', value_name = "QUEUE,…", requires = "http")]
    accept: Vec<String>,
}

pub(super) async fn run(desk: &Desk, args: Args) -> Result<ExitCode> {
    let mut signals = Signals::listen()?;
    output::end_orderly();
    let (place, owner) = place(desk, args.owner.clone()).await?;
    let settings = Settings {
        grants: args.grant.iter().copied().collect(),
        queues: args.queues.clone(),
        accepts: args.accept.clone(),
        owner,
        patience: Duration::from_secs(args.patience),
        ..Settings::default()
    };
    let service = Service::new(place, settings);
    // Told here and now, where somebody looks, and not to a model.
    let known = gleaner::transport::Endpoint::queues(service.desk().place()).await?;
    if let Some(unknown) = args.queues.iter().flatten().chain(&args.accept).find(|queue| !known.contains(queue)) {
        return Err(gleaner::Error::UnknownQueue { name: unknown.clone(), known }.into());
    }
    match args.http {
        None => {
            mcp::serve_stdio(&service, rmcp::transport::stdio_pipes(), async move { signals.any().await }).await?;
            // Standard input that is no pipe is read by a thread that nothing ends but its end.
            std::process::exit(0);
        }
        Some(address) => listen(desk, &args, address, &service, signals).await,
    }
}

/// The database that was named, else the server somebody signed in to, else the private database; and whose work comes first.
async fn place(desk: &Desk, owner: Option<String>) -> Result<(Arc<dyn mcp::Desk>, Option<String>)> {
    let wire = match desk.place.given() {
        Some(_) => None,
        None => wire::Settings::from_env(desk.place.home()?.path())?,
    };
    let Some(settings) = wire else {
        let direct = Direct::new(&desk.place.url().await?, 8)?;
        return Ok((Arc::new(DirectDesk::new(direct)), owner));
    };
    let wire = Wire::connect(settings)?;
    let owner = match owner {
        Some(owner) => Some(owner),
        None => wire.who().await?.map(|who| who.sales_id),
    };
    Ok((Arc::new(WireDesk::new(wire)), owner))
}

async fn listen(desk: &Desk, args: &Args, address: SocketAddr, service: &Service, mut signals: Signals) -> Result<ExitCode> {
    if !address.ip().is_loopback() && args.allow_host.is_empty() {
        bail!(
            "{address} can be reached from elsewhere: say with --allow-host under which name, and put TLS in front, for the token travels in the clear"
        );
    }
    let (token, from) = token::find(desk, args.token_file.as_deref())?;
    let listener = tokio::net::TcpListener::bind(address).await.with_context(|| format!("listen on {address}"))?;
    let address = listener.local_addr()?;
    let guard = Guard::new(token).hosts(args.allow_host.iter().cloned()).origins(args.allow_origin.iter().cloned());
    let router = mcp::router(service, guard.clone()).merge(a2a::router(service, guard));
    let base = format!("http://{address}");
    desk.out.json(
        &json!({"running": true, "pid": std::process::id(), "mcp": format!("{base}/mcp"), "a2a": format!("{base}/a2a"), "token": from}),
    );
    desk.out.line(format!("{} on {address}", paint(BOLD, "Listening")));
    desk.out.line(format!("  MCP    {base}/mcp"));
    desk.out.line(format!("  A2A    {base}/.well-known/agent-card.json"));
    desk.out.line(format!("  token  {from}"));
    desk.out.line(paint(DIM, "Ctrl-C stops, and gives back what assistants hold."));
    // Streams stay open for as long as assistants listen; what matters is given back, and then they are cut.
    let serving = tokio::spawn(async move { axum::serve(listener, router).await });
    signals.any().await;
    serving.abort();
    let released = service.close().await;
    if released > 0 {
        desk.out.note(format!("{released} given back"));
    }
    Ok(ExitCode::SUCCESS)
}
