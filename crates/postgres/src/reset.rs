//! Deletes the data of a home.

use std::fs;

use crate::account::Account;
use crate::lock::Lock;
use crate::state::State;
use crate::{Error, Home, Result, init, pid, socket};

/// Deletes the data, the log and the state of a home; the next start creates a new cluster. Refuses while anything runs.
pub fn reset(home: &Home) -> Result<()> {
    if !home.path().exists() {
        return Ok(());
    }
    let _lock = Lock::take(home)?;
    let data = home.data();
    let servers = pid::servers_in(&data, &Account::for_data(&data)?)?;
    if let Some(pid) = servers.first() {
        return Err(Error::AlreadyRunning { home: home.path().to_owned(), pid: Some(*pid) });
    }
    if let Some(state) = State::read(home) {
        socket::remove(&state.socket_directory);
    }
    // Renamed first, so that half-deleted data is never found in its place.
    let discarded = home.discarded();
    init::remove_tree(&discarded)?;
    match fs::rename(&data, &discarded) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(Error::io("rename", &data)(error));
        }
        _ => {}
    }
    for tree in [&discarded, &home.unfinished(), &home.path().join("log")] {
        init::remove_tree(tree)?;
    }
    State::remove(home);
    match fs::remove_file(home.password()) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::io("delete", home.password())(error)),
        _ => Ok(()),
    }
}
