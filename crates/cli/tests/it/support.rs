//! The binary, a database or a home for it, and ways to wait for it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use gleaner_postgres::testing;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tokio_postgres::SimpleQueryMessage;

/// The program under test.
pub(crate) const GLEANER: &str = env!("CARGO_BIN_EXE_gleaner");

/// `gleaner`, in a world of its own: a database, or a home in a temporary directory.
pub(crate) struct Gleaner {
    pub folder: PathBuf,
    url: Option<String>,
    /// Where its server listens; none leaves the choice to it.
    listen: Option<String>,
}

/// What a command said.
#[derive(Debug)]
pub(crate) struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Gleaner {
    /// On a migrated database.
    pub(crate) fn migrated() -> Self {
        let prepare = async |url: String| gleaner::migrate::migrate(&url, &|_| {}).await.map(drop);
        let database = block_on(testing::server().database_from("migrated", prepare)).expect("a database");
        Self { folder: folder(), url: Some(database.url), listen: None }
    }

    /// On a database with nothing in it.
    pub(crate) fn empty() -> Self {
        Self { folder: folder(), url: Some(block_on(testing::server().empty_database()).expect("a database").url), listen: None }
    }

    /// With a home and no database but the private one. Its port is asked for: one that it chose and left for a moment could be taken
    /// by another home that chooses.
    pub(crate) fn at_home() -> Self {
        Self { folder: folder(), url: None, listen: Some(free_address()) }
    }

    pub(crate) fn at_home_that_chooses_its_port() -> Self {
        Self { folder: folder(), url: None, listen: None }
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.folder.join("home")
    }

    pub(crate) fn url(&self) -> &str {
        self.url.as_deref().expect("a database was given")
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(GLEANER);
        command.args(args).env("GLEANER_HOME", self.home()).env_remove("RUST_LOG").stdin(Stdio::null());
        command.env("GLEANER_LISTEN", self.listen.as_deref().unwrap_or_default());
        match &self.url {
            Some(url) => command.env("DATABASE_URL", url),
            None => command.env_remove("DATABASE_URL"),
        };
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        Ran::from(self.command(args).output().expect("the program runs"))
    }

    /// Runs it, insists on success, and gives what it said.
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let ran = self.run(args);
        assert_eq!(ran.code, 0, "gleaner {}: {ran:?}", args.join(" "));
        ran.out
    }

    /// The same, in JSON.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let out = self.ok(&[args, &["--json"]].concat());
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("gleaner {} --json: {error}: {out}", args.join(" ")))
    }

    /// Starts it and lets it run, with its outputs to be read.
    pub(crate) fn start(&self, args: &[&str]) -> Started {
        self.start_with(args, &[])
    }

    /// The same, with variables.
    pub(crate) fn start_with(&self, args: &[&str], variables: &[(&str, &str)]) -> Started {
        let mut command = self.command(args);
        command.envs(variables.iter().copied());
        Started { child: command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program runs") }
    }

    /// The first value of a query, as text; empty for null and for nothing.
    pub(crate) fn sql(&self, query: &str) -> String {
        block_on(async {
            let client = gleaner::connect(self.url()).await.expect("a connection");
            let messages = client.simple_query(query).await.unwrap_or_else(|error| panic!("{query}: {error:?}"));
            let rows = messages.iter().filter_map(|m| if let SimpleQueryMessage::Row(row) = m { Some(row) } else { None });
            rows.last().and_then(|row| row.get(0)).unwrap_or_default().to_owned()
        })
    }

    /// Waits until the query gives this value.
    pub(crate) fn until(&self, query: &str, wanted: &str) {
        eventually(&format!("{query} to give {wanted:?}"), || self.sql(query) == wanted);
    }

    /// A file in a folder of its own.
    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        let path = self.folder.join(name);
        std::fs::File::create(&path).and_then(|mut file| file.write_all(text.as_bytes())).expect("a file");
        path.to_str().expect("plain").to_owned()
    }
}

impl Drop for Gleaner {
    fn drop(&mut self) {
        if self.url.is_none() {
            let _ = self.run(&["down"]);
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A program that runs. Killed when dropped.
pub(crate) struct Started {
    child: Child,
}

impl Started {
    /// Reads standard output up to the line that contains `text`, and gives all of it.
    pub(crate) fn out_until(&mut self, text: &str) -> String {
        lines_until(self.child.stdout.as_mut().expect("piped"), text)
    }

    /// Reads no more of it.
    pub(crate) fn close_out(&mut self) {
        drop(self.child.stdout.take());
    }

    /// The same with standard error.
    pub(crate) fn err_until(&mut self, text: &str) -> String {
        lines_until(self.child.stderr.as_mut().expect("piped"), text)
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().cast_signed()), signal).expect("it runs");
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> Ran {
        let child = std::mem::replace(&mut self.child, Command::new("true").spawn().expect("true"));
        Ran::from(child.wait_with_output().expect("it ends"))
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("text");
        Self { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
    }
}

/// Byte by byte, so that what follows is left for the next reader.
fn lines_until(from: &mut impl std::io::Read, text: &str) -> String {
    let mut all = String::new();
    let mut reader = BufReader::with_capacity(1, from);
    while !all.lines().last().is_some_and(|line| line.contains(text)) {
        assert!(reader.read_line(&mut all).expect("readable") > 0, "it ended without saying {text:?}: {all}");
    }
    all
}

/// Waits for what must become true.
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < until, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Runs a line as a person would type it into a shell.
pub(crate) fn shell(line: &str, home: &Path) -> Ran {
    let mut command = Command::new("sh");
    Ran::from(command.args(["-c", line]).env("GLEANER_HOME", home).env_remove("DATABASE_URL").stdin(Stdio::null()).output().expect("sh"))
}

/// An address of this machine with a port that nothing uses.
pub(crate) fn free_address() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").to_string()
}

fn folder() -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    // The server of a home may run as an account that cannot enter a private TMPDIR.
    let folder = Path::new("/tmp").join(format!("gleaner-cli-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
    std::fs::create_dir(&folder).expect("a folder");
    folder
}

pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime").block_on(work)
}
