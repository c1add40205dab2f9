//! `gleaner agent`: real processes, on one database, that come and go.

mod living;
mod scenarios;
mod talking;
mod watching;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::support::{Gleaner, Started, eventually};

/// Looks often, so that tests need not wait.
const QUICK: [&str; 8] = ["--poll-base", "100ms", "--poll-max", "300ms", "--poll-pushed-base", "200ms", "--poll-pushed-max", "300ms"];

/// People, their activities, and agents whose work takes until a file is there.
struct Team {
    gleaner: Gleaner,
    pipelines: String,
}

/// A line of what agents did: who, in which stage, with which item, and when.
#[derive(Debug, Clone, PartialEq)]
struct Done {
    who: String,
    stage: String,
    item: String,
    at: f64,
}

impl Team {
    fn new() -> Self {
        let gleaner = Gleaner::migrated();
        let folder = gleaner.folder.display().to_string();
        let note = |and: &str| format!(r#"echo "$WHO $GLEANER_STAGE $GLEANER_ID $(date +%s.%N)" >> {folder}/did; {and}"#);
        let work = note(&format!("while [ ! -e {folder}/go ]; do sleep 0.02; done; echo '{{\"by\": \"'$WHO'\"}}'"));
        let pipelines = format!(
            "[stages.listen]\ncommand = '''{}'''\n[stages.work]\ncommand = '''{work}'''\n\
             [queues.activities.kinds]\nnote = [\"work\"]\ncall = [\"listen\", \"work\"]\n",
            note("echo '{\"heard\": true}'")
        );
        let pipelines = gleaner.file("pipelines.toml", &pipelines);
        Self { gleaner, pipelines }
    }

    /// Lets all work end.
    fn go(&self) {
        self.gleaner.file("go", "");
    }

    /// A person whose work others may take after a minute; gives the id.
    fn person(&self, name: &str) -> String {
        self.gleaner.sql(&format!(
            "insert into sales (first_name, last_name, email, user_id, stale_threshold_minutes, allow_remote_processing)
             values ('{name}', '', '{name}@example.com', gen_random_uuid(), 1, true) returning id"
        ))
    }

    /// Something that arrived `age` seconds ago; gives the id.
    fn activity(&self, owner: &str, kind: &str, age: f64) -> String {
        self.gleaner.sql(&format!(
            "insert into activities (sales_id, type, raw_data, created_at)
             values ({owner}, '{kind}', '{{\"source_type\": \"text\", \"content\": \"hello\"}}', clock_timestamp() - {age} * interval '1 second')
             returning id"
        ))
    }

    fn agent(&self, who: &str, owner: &str, more: &[&str]) -> Started {
        let args = ["agent", "--name", who, "--owner", owner, "--pipelines", &self.pipelines, "--status", "127.0.0.1:0"];
        let mut agent = self.gleaner.start_with(&[&args[..], &QUICK, more].concat(), &[("WHO", who)]);
        agent.out_until("Ctrl-C");
        agent
    }

    fn did(&self) -> Vec<Done> {
        let text = std::fs::read_to_string(self.folder().join("did")).unwrap_or_default();
        let line = |line: &str| {
            let mut words = line.split(' ').map(str::to_owned);
            let mut next = || words.next().unwrap_or_default();
            Done { who: next(), stage: next(), item: next(), at: next().parse().unwrap_or_default() }
        };
        text.lines().map(line).collect()
    }

    fn until_begun(&self, item: &str) -> Done {
        eventually(&format!("{item} to be begun"), || self.did().iter().any(|done| done.item == item));
        self.did().into_iter().find(|done| done.item == item).expect("just seen")
    }

    fn until_completed(&self, item: &str) {
        self.gleaner.until(&format!("select processing_status from activities where id = '{item}'"), "completed");
    }

    fn folder(&self) -> PathBuf {
        self.gleaner.folder.clone()
    }
}

/// Something must not happen, and has this long to do so.
fn never_within(time: Duration, what: &str, mut happens: impl FnMut() -> bool) {
    let until = Instant::now() + time;
    while Instant::now() < until {
        assert!(!happens(), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
