//! Starts the server process: the program, the arguments and the account.

use std::path::Path;
use std::process::Stdio;

use crate::account::Account;
use crate::connect::PORT;
use crate::process::{ChildProcess, Server};
use crate::program::Program;
use crate::{Error, Installation, Options, Result, Search, init, log, settings};

/// A server process that was just started.
#[derive(Debug)]
pub(crate) struct Launched {
    pub(crate) server: Server,
    /// Its executable.
    pub(crate) program: Option<Program>,
    /// The length of its log before the start.
    pub(crate) log_start: u64,
}

/// Starts the server process.
pub(crate) fn launch(options: &Options, account: &Account, socket_directory: &Path) -> Result<Launched> {
    let home = &options.home;
    let data = home.data();
    let installation = match &options.installation {
        Some(installation) => installation.clone(),
        None => Search::from_env().for_data(&data)?,
    };
    let remedy = || "Install PostgreSQL where every account can reach it, or start as an ordinary user".to_owned();
    account.must_reach(installation.bin(), remedy)?;
    if init::initialise(home, account, &installation, options.durable)? {
        tracing::info!(data = %data.display(), version = %installation.version(), "made a new cluster");
    }
    check_version(&data, &installation)?;
    settings::write_generated(&data, account, &installation, options)?;

    let (log, log_start) = log::open(home)?;
    let mut command = account.command(installation.program("postgres"), &data);
    // Where it listens is set here and not in a file, so that the addresses we return are always correct.
    command
        .arg("-D")
        .arg(&data)
        .arg("-k")
        .arg(socket_directory)
        .arg("-p")
        .arg(options.port.unwrap_or(PORT).to_string())
        .arg("-c")
        .arg(format!("listen_addresses={}", if options.port.is_some() { "127.0.0.1" } else { "" }));
    for (name, value) in &options.settings {
        command.arg("-c").arg(format!("{name}={value}"));
    }
    let errors = log.try_clone().map_err(Error::io("open", home.log()))?;
    command.stdout(Stdio::from(log)).stderr(Stdio::from(errors));
    // Before the start: an upgrade in between is then noticed.
    let program = Program::at(&installation.program("postgres"));
    let process = ChildProcess::spawn(command, options.parent_death).map_err(Error::io("run", installation.program("postgres")))?;
    Ok(Launched { server: Server::Child(process), program, log_start })
}

fn check_version(data: &Path, installation: &Installation) -> Result<()> {
    match crate::find::data_version(data)? {
        Some(wanted) if wanted != installation.version().major => {
            Err(Error::OtherVersion { data: data.to_owned(), wanted, found: vec![installation.clone()] })
        }
        _ => Ok(()),
    }
}
