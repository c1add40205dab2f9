//! What is logged while a test runs.

use std::io::Write;
use std::sync::{Arc, Mutex, Once, PoisonError, Weak};

use tracing::subscriber::DefaultGuard;
use tracing_subscriber::filter::dynamic_filter_fn;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};

/// What was logged since it was created, at every level that can be switched on.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }

    pub(crate) fn lines_with(&self, text: &str) -> usize {
        self.text().lines().filter(|line| line.contains(text)).count()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The log of this thread, as long as the guard lives: what one test logs, unless its work runs on another thread.
pub(crate) fn here() -> (Log, DefaultGuard) {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(move || writer.clone()).finish();
    (log, tracing::subscriber::set_default(subscriber))
}

/// The log of every thread, and so of every test that runs at the same time.
pub(crate) fn everywhere() -> Log {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        // A program has one log for all threads. Tests that read it share it, and without them nothing is written.
        let listened = dynamic_filter_fn(|_, _| is_listened());
        let layer = tracing_subscriber::fmt::layer().with_writer(|| Everyone).with_filter(listened);
        let subscriber = tracing_subscriber::registry().with(layer);
        tracing::subscriber::set_global_default(subscriber).expect("nobody else installs one");
    });
    let log = Log::default();
    listeners().push(Arc::downgrade(&log.0));
    log
}

type Listener = Weak<Mutex<Vec<u8>>>;

fn listeners() -> std::sync::MutexGuard<'static, Vec<Listener>> {
    static LISTENERS: Mutex<Vec<Listener>> = Mutex::new(Vec::new());
    LISTENERS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn is_listened() -> bool {
    let mut listeners = listeners();
    listeners.retain(|listener| listener.strong_count() > 0);
    !listeners.is_empty()
}

struct Everyone;

impl Write for Everyone {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        for log in listeners().iter().filter_map(Weak::upgrade) {
            Log(log).write_all(bytes)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
