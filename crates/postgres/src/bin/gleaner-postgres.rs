//! The crate as a program: runs the private PostgreSQL of `GLEANER_HOME` until SIGINT or SIGTERM, and prints its address once it is
//! ready. For scripts that need only a database. The tests use it as a parent process that they can kill.

use std::io::Write as _;
use std::process::ExitCode;

use gleaner_postgres::{Cluster, Error, Home, Options};
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run().await {
        Ok(code) => code,
        Err(error) => {
            eprintln!("gleaner-postgres: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<ExitCode, Error> {
    let listen = |kind| signal(kind).expect("a runtime with signals");
    let (mut interrupt, mut terminate) = (listen(SignalKind::interrupt()), listen(SignalKind::terminate()));
    let cluster = Cluster::start(Options::new(Home::from_env()?)).await?;
    // A closed standard output is no reason to stop the server.
    let _ = writeln!(std::io::stdout(), "{}", cluster.url());
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        () = cluster.exited() => {
            eprintln!("gleaner-postgres: the server ended; see {}", cluster.home().log().display());
            return Ok(ExitCode::FAILURE);
        }
    }
    cluster.stop().await?;
    Ok(ExitCode::SUCCESS)
}
