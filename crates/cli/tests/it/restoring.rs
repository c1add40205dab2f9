//! The commands of `docs/how-to/back-up-and-restore.md`, run as they stand there.

use std::path::Path;
use std::process::Command;

use gleaner_postgres::Installation;
use gleaner_postgres::testing::PrivateServer;

use crate::support::{GLEANER, Gleaner, block_on};

const PAGE: &str = include_str!("../../../../docs/how-to/back-up-and-restore.md");

/// What follows `$ ` in the page's console blocks.
fn commands() -> Vec<&'static str> {
    PAGE.lines().filter_map(|line| line.strip_prefix("$ ")).collect()
}

#[test]
fn the_commands_of_the_page_back_a_database_up_and_restore_it() {
    let gleaner = Gleaner::migrated();
    gleaner.sql("insert into gleaner.jobs (kind) values ('saved')");
    let server = block_on(PrivateServer::start(false)).expect("a second server");
    let restored = server.cluster().url_of("restored");
    let bin = match std::env::var_os("GLEANER_TEST_PG_BIN").filter(|v| !v.is_empty()) {
        Some(bin) => Installation::at(bin),
        None => Installation::find(),
    };
    let (bin, ours) = (bin.expect("PostgreSQL's programs"), Path::new(GLEANER).parent().expect("a folder"));
    let path = std::env::join_paths([ours, bin.bin(), Path::new("/usr/bin"), Path::new("/bin")]).expect("a path");
    assert!(commands().len() >= 8, "the page has its commands");
    for command in commands() {
        let run = Command::new("sh")
            .args(["-c", command])
            .current_dir(&gleaner.folder)
            .env("PATH", &path)
            .env("DATABASE_URL", gleaner.url())
            .env("SERVER_URL", server.cluster().url())
            .env("RESTORED_URL", &restored)
            .output()
            .expect("sh");
        let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
        assert!(run.status.success(), "{command}\n{out}\n{err}");
        if command.starts_with("gleaner migrate") {
            assert!(out.contains("is up to date"), "{command}\n{out}\n{err}");
            let claimed = block_on(async {
                let client = gleaner::connect(&restored).await?;
                client.batch_execute("begin; set local role service_role").await?;
                let kind: String = client.query_one("select kind from gleaner.claim_jobs('agent')", &[]).await?.get(0);
                client.batch_execute("rollback").await?;
                anyhow::Ok(kind)
            });
            assert_eq!(claimed.expect("the restored database works"), "saved", "{command}");
        }
    }
}
