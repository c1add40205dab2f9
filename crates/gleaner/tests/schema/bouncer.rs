//! Behind PgBouncer in transaction mode every statement may meet another session: nothing may lean on one.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use gleaner::worker::Options;
use gleaner::{Claim, Failure, Outcome, Queue, Worker};
use gleaner_postgres::testing;
use serde_json::json;
use tokio::sync::watch;

use crate::world::{World, empty_world, jobs};

/// A PgBouncer of this test's own, in front of the test server; ended and swept away when dropped.
struct Bouncer {
    child: Child,
    folder: PathBuf,
}

impl Bouncer {
    async fn start() -> Result<Self> {
        let server = testing::server().cluster().socket_directory().to_owned();
        let folder = std::env::temp_dir().join(format!("gleaner-bouncer-{}", std::process::id()));
        fs::DirBuilder::new().mode(0o700).create(&folder)?;
        // As root it insists on being somebody else, who must reach both sockets: the server's own account does.
        let account = fs::metadata(&server)?.uid();
        std::os::unix::fs::chown(&folder, Some(account), None)
            .or_else(|e| if account == fs::metadata(&folder)?.uid() { Ok(()) } else { Err(e) })?;
        let port = fs::read_dir(&server)?
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.strip_prefix(".s.PGSQL.")?.parse::<u16>().ok())
            .next()
            .context("the server has no socket")?;
        let configuration = folder.join("pgbouncer.ini");
        let user = testing::connect(&testing::server().cluster().url_of("postgres"))
            .await?
            .query_one("select current_user::text", &[])
            .await?
            .get::<_, String>(0);
        fs::write(
            &configuration,
            format!(
                "[databases]\n* = host={server} port={port} user={user}\n\
                 [pgbouncer]\npool_mode = transaction\nauth_type = any\nlisten_addr =\nlisten_port = 6432\nunix_socket_dir = {folder}\n\
                 default_pool_size = 3\nmin_pool_size = 3\nserver_round_robin = 1\nlogfile =\npidfile =\nlog_connections = 0\nlog_disconnections = 0\n",
                server = server.display(),
                folder = folder.display()
            ),
        )?;
        fs::set_permissions(&configuration, fs::Permissions::from_mode(0o644))?;
        let mut command = Command::new(if PathBuf::from("/usr/sbin/pgbouncer").exists() { "/usr/sbin/pgbouncer" } else { "pgbouncer" });
        if fs::metadata("/proc/self")?.uid() == 0 {
            let name = Command::new("id").args(["-nu", &account.to_string()]).output()?;
            command.arg("-u").arg(String::from_utf8(name.stdout)?.trim());
        }
        let child = command
            .arg(&configuration)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("run pgbouncer (Debian: apt install pgbouncer)")?;
        let bouncer = Self { child, folder };
        let begun = Instant::now();
        while !bouncer.folder.join(".s.PGSQL.6432").exists() {
            ensure!(begun.elapsed() < Duration::from_secs(10), "PgBouncer did not start");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(bouncer)
    }

    fn url_of(&self, database: &str) -> String {
        format!("postgresql://gleaner@/{database}?host={}&port=6432", self.folder.display())
    }
}

impl Drop for Bouncer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[tokio::test]
async fn a_whole_life_passes_through_pgbouncer_in_transaction_mode() -> Result<()> {
    let bouncer = Bouncer::start().await?;
    let world = empty_world().await?;
    let url = bouncer.url_of(&world.database.name);

    let (first, second) = tokio::join!(gleaner::migrate::migrate(&url, &|_| {}), gleaner::migrate::migrate(&url, &|_| {}));
    assert_eq!(first?.len() + second?.len(), gleaner::migrate::status(&world.client).await?.len());

    world.run("create table public.parcels (id bigint generated always as identity primary key, state text not null default 'new', note text)").await?;
    world.run("insert into public.parcels (state) select 'new' from generate_series(1, 10)").await?;
    let toml =
        "table = 'public.parcels'\nstatus = { column = 'state', ready = 'new', running = 'moving', done = 'delivered', failed = 'lost' }";
    let mut client = gleaner::connect(&url).await?;
    gleaner::attach::attach(
        &mut client,
        &gleaner::Declaration::parse(toml, "parcels")?,
        toml,
        gleaner::attach::Options::default(),
        &|_| {},
    )
    .await?;

    let pool = gleaner::pool(&url, 8)?;
    let parcels = Queue::open(&pool, "parcels").await?;
    let items = parcels.claim(&Claim::by("a").limit(3)).await?.items;
    let held: Vec<(&str, i64)> = items.iter().map(|i| (i.key.as_str(), i.lease)).collect();
    assert_eq!(held.len(), 3);
    parcels.start(&held).await?;
    assert_eq!(parcels.progress(held[0].0, held[0].1, Some("loading"), Some(50.0), None).await?.0.outcome, Outcome::Done);
    assert_eq!(parcels.complete(&[(held[0].0, held[0].1, None)]).await?[0].outcome, Outcome::Done);
    assert_eq!(parcels.fail(held[1].0, held[1].1, &Failure::new("wet")).await?.outcome, Outcome::Done);
    assert_eq!(parcels.release(&held[2..]).await?[0].outcome, Outcome::Done);
    gleaner::attach::detach(&mut client, "parcels", false).await?;

    // A worker that only polls, beside the claims of others on the same few server connections.
    let queue = Queue::open(&pool, "jobs").await?;
    queue.enqueue(&jobs("mail", 50)).await?;
    queue.enqueue_copy(&jobs("mail", 50)).await?;
    let (_stop, stopped) = watch::channel(false);
    let options = Options { listen: false, until_empty: true, poll_base: Duration::from_millis(20), concurrency: 4, ..Options::default() };
    let tally = Worker::new(queue, None, options).run(|_item, _context| async move { Ok(Some(json!({"ok": true}))) }, stopped).await?;
    assert_eq!(tally.completed, 100);
    still_working(&world).await
}

async fn still_working(world: &World) -> Result<()> {
    assert_eq!(world.count("select count(*) from gleaner.jobs where status = 'done'").await?, 100);
    assert_eq!(
        world
            .count("select count(*) from pg_attribute where attrelid = 'public.parcels'::regclass and attnum > 0 and not attisdropped")
            .await?,
        3
    );
    Ok(())
}
