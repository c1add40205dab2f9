//! `gleaner work`: a worker for any language.

mod group;
mod item;
mod progress;
mod report;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use gleaner::Queue;
use gleaner::transport::DirectQueue;
use gleaner::worker::{Builder, Job, Wake, Worker};
use serde_json::Value;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use crate::App;
use crate::output;
use crate::target::Named;
use group::Groups;
use item::Runner;
use report::Report;

/// Work a queue with a command in any language.
///
/// In: the command is run by `sh -c` once per item. The item comes as JSON on standard input, {queue, id, kind, owner, attempts,
/// lease, payload, partial}, and GLEANER_QUEUE, GLEANER_ID, GLEANER_LEASE and GLEANER_KIND are set.
///
/// Out: what the command prints becomes the result, JSON as it is, other text as {"text": …}. Exit code 0 completes the item.
/// Anything else fails it, with the last lines of standard error as message, and it is tried again as the queue declares;
/// exit code 75 requests a retry, 65 forbids one.
///
/// Meanwhile: a line `progress: 40 resizing` on standard error, or a JSON object with stage, percent or partial, shows progress. The
/// lease is renewed while the command runs, up to the queue's deadline. When the item is cancelled, the command and its child
/// processes are ended.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner work jobs --exec './send-mail'
  gleaner work jobs --kinds resize,crop --concurrency 8 --exec 'python3 image.py'
  gleaner work jobs --exec 'jq .payload' --until-empty        work what is due, then end
  gleaner work activities --owner 7 --exec ./transcribe       owner 7 first, then items without an owner, then stale ones
  gleaner work jobs --once --exec 'cat >&2; exit 65'          take one item, and give up on it")]
pub(crate) struct Args {
    #[command(flatten)]
    named: Named,
    /// The command, run by `sh -c` for each item
    #[arg(short = 'x', long, value_name = "CMD")]
    exec: String,
    /// Work for this owner first
    #[arg(long)]
    owner: Option<String>,
    /// Take only these kinds
    #[arg(short, long, value_delimiter = ',', value_name = "KIND,…")]
    kinds: Option<Vec<String>>,
    /// How many commands run at once
    #[arg(short, long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    concurrency: u16,
    /// End after one item
    #[arg(long)]
    once: bool,
    /// End when nothing is due
    #[arg(long, conflicts_with = "once")]
    until_empty: bool,
    /// Do not listen for notifications; poll every few seconds (for a pooler in transaction mode)
    #[arg(long)]
    poll_only: bool,
    /// Seconds that running commands get to finish after Ctrl-C; then their items are released
    #[arg(long, default_value_t = 30, value_name = "SECONDS")]
    grace: u64,
}

impl Args {
    fn worker(&self, queue: &Queue, url: &str) -> Builder {
        let mut worker = Worker::builder(Arc::new(DirectQueue::new(queue.clone(), Some(url))))
            .concurrency(self.concurrency.into())
            .owner(self.owner.clone())
            .grace(Duration::from_secs(self.grace))
            .wake(if self.poll_only { Wake::PollOnly } else { Wake::Hybrid })
            .watch(Duration::from_secs(1));
        if let Some(kinds) = &self.kinds {
            worker = worker.kinds(kinds);
        }
        if self.until_empty || self.once {
            worker = worker.until_empty();
        }
        if self.once { worker.take(1) } else { worker }
    }
}

pub(crate) async fn run(app: &App, args: Args) -> Result<ExitCode> {
    check(&args.exec).await?;
    let signals = Signals::listen()?;
    output::end_orderly();
    let url = app.target.url().await?;
    let pool = gleaner::pool(&url, usize::from(args.concurrency).min(20) + 2)?;
    // A refused connection is reported here.
    drop(gleaner::connect::checkout(&pool).await?);
    let mut queue = Queue::open(&pool, &args.named.queue).await?;
    args.named.check_tenant(queue.acts().declaration().tenant.is_some())?;
    if let Some(tenant) = &args.named.tenant {
        queue = queue.within(tenant).await?;
    }
    let ends = args.until_empty || args.once;
    let worker = args.worker(&queue, &url);
    let report = Report::new(app.out, queue.name());
    if !ends {
        report.begin(&args.exec, args.concurrency);
    }
    let groups = Groups::default();
    let runner = Arc::new(Runner { exec: args.exec, queue: queue.clone(), groups: groups.clone(), report });
    let (stop, stopping) = watch::channel(false);
    let farewell = report::Stopping { out: app.out, grace: args.grace };
    let listening = tokio::spawn(signals.obey(stop, queue.clone(), groups.clone(), farewell));
    let handler = move |job: Job<Value>| {
        let runner = Arc::clone(&runner);
        async move { runner.run(job.item, job.context).await }
    };
    let tally = worker.otherwise(handler).build().run_until(stopping).await;
    listening.abort();
    // Commands that outlived the grace period were signalled to end when their item was given back.
    groups.end_all().await;
    Report::new(app.out, queue.name()).end(&tally?, ends);
    Ok(ExitCode::SUCCESS)
}

/// SIGINT (Ctrl-C) and SIGTERM, received from the moment this exists.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn listen() -> Result<Self> {
        let on = |kind| signal(kind).context("listen for signals");
        Ok(Self { interrupt: on(SignalKind::interrupt())?, terminate: on(SignalKind::terminate())? })
    }

    /// The first signal lets running commands finish; the second gives their items back at once.
    async fn obey(mut self, stop: watch::Sender<bool>, queue: Queue, groups: Groups, stopping: report::Stopping) {
        let mut asked = false;
        loop {
            tokio::select! { _ = self.interrupt.recv() => {}, _ = self.terminate.recv() => {} }
            let held = groups.held();
            if asked {
                groups.abandon();
                let released = queue.release(&held).await;
                groups.end_all().await;
                stopping.released(released.as_deref().map_or(0, <[_]>::len));
                std::process::exit(130);
            }
            asked = true;
            stop.send_replace(true);
            stopping.tell(held.len());
        }
    }
}

/// A mistake in the command should not cost every item an attempt.
async fn check(exec: &str) -> Result<()> {
    let shell = |args: Vec<String>| async move { tokio::process::Command::new("sh").args(args).output().await.context("run sh") };
    let parsed = shell(vec!["-n".into(), "-c".into(), exec.into()]).await?;
    if !parsed.status.success() {
        bail!("sh does not understand the command: {}", String::from_utf8_lossy(&parsed.stderr).trim());
    }
    let first = exec.split_whitespace().next().unwrap_or_default();
    let plain = first.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c));
    if first.is_empty() || plain && !shell(vec!["-c".into(), r#"command -v -- "$0""#.into(), first.into()]).await?.status.success() {
        bail!("there is no command {first:?} here; --exec takes what `sh -c` can run");
    }
    Ok(())
}
