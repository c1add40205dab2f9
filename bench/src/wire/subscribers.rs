//! Thousands of subscribers of a table without changes: the cost of each for the server, and of all of them for the database.
//!
//! They run in another process, which is this program started again, so that their memory is not counted as the server's.

use std::io::Read as _;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use futures_util::future::try_join_all;
use futures_util::{SinkExt as _, StreamExt as _};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use crate::quiet;
use crate::report::Report;
use crate::serving::Serving;
use crate::stage::Stage;

/// As in supabase-js.
const HEARTBEAT: Duration = Duration::from_secs(25);
const PATIENCE: Duration = Duration::from_secs(60);
/// What a process has open besides: connections to the database, the program itself.
const OTHER_FILES: u64 = 200;

pub(crate) async fn measure(stage: &Stage, report: &mut Report, serving: &Serving) -> Result<()> {
    stage.clear().await?;
    let (few, many) = (10, 5000);
    // The server's end of each socket is in this process.
    need_files(many as u64 + OTHER_FILES)?;
    let seconds = stage.seconds(120);
    let crowd = Crowd::gather(serving, few).await?;
    let with_few = quiet::statements_per_minute(stage, seconds).await?;
    let before = resident()?;
    let more = Crowd::gather(serving, many - few).await?;
    let each = (resident()? - before) / (many - few) as f64;
    let with_many = quiet::statements_per_minute(stage, seconds).await?;
    let joins = serving.state().realtime.as_ref().map_or(0, gleaner_supabase::realtime::Realtime::joins);
    ensure!(joins >= many, "of {many} subscribers {joins} are there");
    report.figure(format!("memory per subscriber, {many} subscribers"), each, "kB");
    report.figure(format!("{few} idle subscribers, statements"), with_few, "/min");
    report.figure(format!("{many} idle subscribers, statements"), with_many, "/min");
    more.leave().await?;
    crowd.leave().await
}

/// Kilobytes of this process in memory.
fn resident() -> Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status").context("memory is read from /proc")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    Ok(line.trim().trim_end_matches("kB").trim().parse()?)
}

/// Subscribers in another process.
#[derive(Debug)]
struct Crowd(Child);

impl Crowd {
    /// Returns when all have joined.
    async fn gather(serving: &Serving, many: usize) -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["--subscribe", &many.to_string(), "--at", &serving.address])
            .env("GLEANER_BENCH_KEY", &serving.key)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let mut said = BufReader::new(child.stdout.take().context("its output")?).lines();
        let joined = said.next_line().await?;
        ensure!(joined.as_deref() == Some("joined"), "the subscribers did not come in");
        Ok(Self(child))
    }

    async fn leave(mut self) -> Result<()> {
        drop(self.0.stdin.take());
        ensure!(self.0.wait().await?.success(), "subscribers were cut off");
        Ok(())
    }
}

/// The other process: joins, reports that, and stays until its input ends.
pub(crate) async fn subscribe(address: &str, many: usize) -> Result<()> {
    need_files(many as u64 + OTHER_FILES)?;
    let key = std::env::var("GLEANER_BENCH_KEY")?;
    let mut subscribers = Vec::with_capacity(many);
    while subscribers.len() < many {
        // A few at a time, because the speed of joining is not measured.
        let some = (many - subscribers.len()).min(50);
        subscribers.extend(try_join_all((0..some).map(|_| Subscriber::join(address, &key))).await?);
    }
    println!("joined");
    let mut staying: tokio::task::JoinSet<Result<()>> = subscribers.into_iter().enumerate().map(|(n, s)| s.stay(n, many)).collect();
    let input = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
    tokio::select! {
        ended = input => { ended??; }
        Some(cut) = staying.join_next() => cut??,
    }
    Ok(())
}

/// Raises the limit of open files as far as the system allows.
pub(crate) fn raise_limit() -> Result<()> {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    Ok(setrlimit(Resource::RLIMIT_NOFILE, most, most)?)
}

/// Checks that this process may open that many files, or fails with how to raise the limit.
pub(crate) fn need_files(files: u64) -> Result<()> {
    let (allowed, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if allowed >= files {
        return Ok(());
    }
    ensure!(
        most >= files,
        "this takes {files} open files, and the system allows {most}: start it where `ulimit -Hn` says more \
         (`prlimit --nofile={files} --pid $$` as root in this shell, `docker run --ulimit nofile={files}`)"
    );
    // Not always the maximum: where that is unlimited, some systems refuse it.
    Ok(setrlimit(Resource::RLIMIT_NOFILE, files, most)?)
}

/// One socket that follows the inserts into one table.
#[derive(Debug)]
pub(crate) struct Subscriber(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Subscriber {
    /// Returns when the server has confirmed the subscription.
    pub(crate) async fn join(address: &str, key: &str) -> Result<Self> {
        let url = format!("ws://{address}/realtime/v1/websocket?apikey={key}&vsn=2.0.0");
        let (stream, _) = tokio_tungstenite::connect_async(url).await?;
        let mut subscriber = Self(stream);
        let config = json!({"config": {"postgres_changes": [{"event": "INSERT", "schema": "public", "table": "activities"}]}});
        subscriber.send("realtime:bench", "phx_join", config).await?;
        subscriber.expect("phx_reply").await?;
        subscriber.expect("system").await?;
        Ok(subscriber)
    }

    async fn send(&mut self, topic: &str, event: &str, payload: Value) -> Result<()> {
        Ok(self.0.send(Message::text(json!(["1", "1", topic, event, payload]).to_string())).await?)
    }

    /// Waits for this event. Other events, and refusals, are errors.
    pub(crate) async fn expect(&mut self, event: &str) -> Result<()> {
        loop {
            let message = tokio::time::timeout(PATIENCE, self.0.next()).await.context("no event came")?.context("cut off")??;
            let Message::Text(text) = message else { continue };
            let frame: Value = serde_json::from_str(&text)?;
            if frame[3] != event || frame[4]["status"] == "error" {
                bail!("wanted {event}, got {text}");
            }
            return Ok(());
        }
    }

    /// Sends heartbeats until the socket is closed. They are spread out like those of clients that connected at different times.
    async fn stay(mut self, place: usize, of: usize) -> Result<()> {
        tokio::time::sleep(HEARTBEAT.mul_f64(place as f64 / of as f64)).await;
        loop {
            self.send("phoenix", "heartbeat", json!({})).await?;
            self.expect("phx_reply").await?;
            tokio::time::sleep(HEARTBEAT).await;
        }
    }
}
