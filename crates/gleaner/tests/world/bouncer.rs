//! A PgBouncer in transaction mode, in front of the test server.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use gleaner_postgres::testing;

/// A PgBouncer for this test, in front of the test server; stopped and deleted when dropped.
pub(super) struct Bouncer {
    child: Child,
    folder: PathBuf,
}

impl Bouncer {
    pub(super) async fn start() -> Result<Self> {
        let server = testing::server().cluster().socket_directory().to_owned();
        let folder = std::env::temp_dir().join(format!("gleaner-bouncer-{}", std::process::id()));
        fs::DirBuilder::new().mode(0o700).create(&folder)?;
        // Started as root it must switch to another account that can access both sockets: the server's own account can.
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

    pub(super) fn url_of(&self, database: &str) -> String {
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
