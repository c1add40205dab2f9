//! Signals that stop the process.

use anyhow::{Context as _, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGINT (Ctrl-C), SIGTERM, and SIGHUP when the terminal is closed.
pub(crate) struct Signals([Signal; 3]);

impl Signals {
    pub(crate) fn listen() -> Result<Self> {
        let on = |kind| signal(kind).context("listen for signals");
        Ok(Self([on(SignalKind::interrupt())?, on(SignalKind::terminate())?, on(SignalKind::hangup())?]))
    }

    pub(crate) async fn any(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}
