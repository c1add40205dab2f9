//! Servers that were left running by a dead parent.

use std::path::Path;
use std::time::{Duration, Instant};

use tokio::time::{sleep, timeout};

use crate::account::Account;
use crate::pid::{self, LOOK_AGAIN, PidFile};
use crate::{Error, Result, connect};

/// How long processes left by a dead parent may take to end before a start gives up.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server that outlived its parent, once it is certain that it will keep running; `None` once no process is left.
pub(crate) async fn survivor(data: &Path, account: &Account) -> Result<Option<PidFile>> {
    let began = Instant::now();
    loop {
        let left = pid::servers_in(data, account)?;
        if left.is_empty() {
            pid::remove_stale(data)?;
            return Ok(None);
        }
        let file = PidFile::read(data).filter(|file| left.contains(&file.pid));
        if let Some(file) = file
            && file.phase == "ready"
            && stays(&file).await
            && PidFile::read(data).as_ref() == Some(&file)
        {
            return Ok(Some(file));
        }
        if began.elapsed() > PATIENCE {
            return Err(Error::ServerLeft { data: data.to_owned(), pids: left });
        }
        sleep(LOOK_AGAIN).await;
    }
}

/// Whether a server keeps a session open for a moment. Its parent may have died just now, and the signal that shuts it down may not
/// have arrived yet: the kernel releases our lock slightly before it sends that signal.
async fn stays(file: &PidFile) -> bool {
    let url = connect::socket_url(&file.socket_directory, file.port, "postgres");
    let Ok(Ok(client)) = timeout(Duration::from_secs(5), connect::connect(&url)).await else {
        return false;
    };
    sleep(Duration::from_millis(200)).await;
    client.batch_execute("select 1").await.is_ok()
}
