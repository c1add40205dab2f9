//! `sslmode` and `sslrootcert`, on a server with certificates of every age, compared with psql.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use gleaner_postgres::{Cluster, Home, Options, ParentDeath};
use tokio_postgres::Client;

use crate::dump::installation;

const MODES: [&str; 6] = ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"];

/// A server that listens on a loopback port, and certificates for it.
struct Encrypted {
    cluster: Cluster,
    admin: Client,
    folder: PathBuf,
}

impl Encrypted {
    async fn start() -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("gleaner-ssl-{}-{}", std::process::id(), rand_port()?));
        std::fs::create_dir_all(&folder)?;
        let mut options = Options::new(Home::at(folder.join("home"))?);
        options.port = Some(rand_port()?);
        options.durable = false;
        options.parent_death = ParentDeath::Abort;
        options.socket_parent = Some(folder.join("home"));
        options.installation = Some(installation()?);
        let cluster = Cluster::start(options).await?;
        let admin = gleaner::connect(cluster.url()).await?;
        let server = Self { cluster, admin, folder };
        server.make_certificates()?;
        Ok(server)
    }

    /// Creates an authority; a certificate signed by it for this host, and one for another host; an obsolete one, self-signed
    /// with SHA-1, of version 1; and one that has expired.
    fn make_certificates(&self) -> Result<()> {
        let script = "set -e
            openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -subj /CN=authority -days 2
            for name in here elsewhere old expired; do
                openssl req -new -newkey rsa:2048 -nodes -keyout $name.key -out $name.csr -subj /CN=$name
            done
            printf 'subjectAltName=IP:127.0.0.1' > here.ext; printf 'subjectAltName=DNS:elsewhere.example' > elsewhere.ext
            for name in here elsewhere; do
                openssl x509 -req -in $name.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile $name.ext -out $name.pem
            done
            openssl x509 -req -in expired.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days -1 -extfile here.ext -out expired.pem
            openssl x509 -req -in old.csr -signkey old.key -sha1 -days 2 -out old.pem
            openssl x509 -in old.pem -noout -text | grep -q 'Version: 1'";
        let run = Command::new("sh").args(["-c", script]).current_dir(&self.folder).output().context("run openssl")?;
        ensure!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        Ok(())
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Makes the server present the certificate `name` (none: no encryption), and accept clients by pg_hba.conf lines of kind `hba`.
    async fn show(&self, name: Option<&str>, hba: &str) -> Result<()> {
        use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
        let data = self.cluster.home().data();
        let owner = std::fs::metadata(&data)?;
        let give = |path: &Path| -> Result<()> {
            std::os::unix::fs::chown(path, Some(owner.uid()), Some(owner.gid()))?;
            Ok(std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?)
        };
        for end in ["pem", "key"] {
            let path = data.join(format!("shown.{end}"));
            std::fs::copy(self.file(&format!("{}.{end}", name.unwrap_or("here"))), &path)?;
            give(&path)?;
        }
        let lines = format!("local all all trust\n{hba} all all 127.0.0.1/32 scram-sha-256\n");
        std::fs::write(data.join("pg_hba.conf"), lines)?;
        let before: String = self.admin.query_one("select pg_conf_load_time()::text", &[]).await?.get(0);
        for setting in
            ["ssl_cert_file = 'shown.pem'", "ssl_key_file = 'shown.key'", &format!("ssl = {}", if name.is_some() { "on" } else { "off" })]
        {
            self.admin.batch_execute(&format!("alter system set {setting}")).await?;
        }
        self.admin.batch_execute("select pg_reload_conf()").await?;
        let begun = Instant::now();
        loop {
            let loaded: bool = self.admin.query_one("select pg_conf_load_time()::text <> $1", &[&before]).await?.get(0);
            if loaded {
                break;
            }
            ensure!(begun.elapsed() < Duration::from_secs(20), "the settings were never read");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        // The postmaster reads the settings before its children do; a session that begins now has them.
        Ok(())
    }

    fn url(&self, mode: &str, root: Option<&str>) -> String {
        let base = self.cluster.tcp_url().expect("it listens").split('?').next().unwrap_or_default().to_owned();
        let root = root.map(|name| format!("&sslrootcert={}", self.file(name).display())).unwrap_or_default();
        format!("{base}?sslmode={mode}{root}")
    }
}

fn rand_port() -> Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

const ENCRYPTED: &str = "select ssl::text from pg_stat_ssl where pid = pg_backend_pid()";

/// `true` or `false` if the session is encrypted or not, or `refused`.
async fn ours(url: &str) -> String {
    let alone = async { anyhow::Ok(gleaner::connect(url).await?.query_one(ENCRYPTED, &[]).await?.get::<_, String>(0)) };
    let pooled = async {
        anyhow::Ok(gleaner::connect::checkout(&gleaner::pool(url, 1)?).await?.query_one(ENCRYPTED, &[]).await?.get::<_, String>(0))
    };
    let (alone, pooled) = (alone.await.unwrap_or_else(|_| "refused".into()), pooled.await.unwrap_or_else(|_| "refused".into()));
    assert_eq!(alone, pooled, "a pool connects as a single connection does");
    alone
}

fn psqls(url: &str) -> Result<String> {
    let output = Command::new(installation()?.program("psql"))
        .args(["--no-psqlrc", "--tuples-only", "--no-align", "--dbname", url, "--command", ENCRYPTED])
        .env("HOME", "/nowhere")
        .output()?;
    Ok(if output.status.success() { String::from_utf8(output.stdout)?.trim().to_owned() } else { "refused".into() })
}

#[tokio::test]
async fn every_mode_accepts_and_refuses_what_psql_does() -> Result<()> {
    let server = Encrypted::start().await?;
    let mut differing = Vec::new();
    for shown in [Some("old"), Some("here"), Some("elsewhere"), Some("expired"), None] {
        for hba in ["host", "hostssl", "hostnossl"] {
            server.show(shown, hba).await?;
            for mode in MODES {
                let url = server.url(mode, mode.starts_with("verify").then_some("ca.pem"));
                let (ours, psqls) = (ours(&url).await, psqls(&url)?);
                if ours != psqls {
                    differing.push(format!("{shown:?} {hba} {mode}: ours {ours}, psql {psqls}"));
                }
            }
        }
    }
    assert_eq!(differing, Vec::<String>::new());
    std::fs::remove_dir_all(&server.folder).ok();
    Ok(())
}

/// Citus creates such a certificate: version 1, self-signed.
#[tokio::test]
async fn an_old_self_signed_certificate_is_not_checked_below_verify_ca() -> Result<()> {
    let server = Encrypted::start().await?;
    server.show(Some("old"), "hostssl").await?;
    for mode in ["allow", "prefer", "require"] {
        assert_eq!(ours(&server.url(mode, None)).await, "true", "{mode}");
    }
    for mode in ["disable", "verify-ca", "verify-full"] {
        assert_eq!(ours(&server.url(mode, Some("ca.pem"))).await, "refused", "{mode}");
    }
    // Same as libpq: if there is a root certificate file, the certificate is checked.
    assert_eq!(ours(&server.url("require", Some("ca.pem"))).await, "refused");
    server.show(Some("here"), "hostssl").await?;
    assert_eq!(ours(&server.url("verify-full", Some("ca.pem"))).await, "true");
    assert_eq!(ours(&server.url("verify-full", None)).await, "refused", "the system does not know this authority");
    std::fs::remove_dir_all(&server.folder).ok();
    Ok(())
}
