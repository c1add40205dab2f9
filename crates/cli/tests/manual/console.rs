//! Runs the console blocks of the manual, each page in a fresh home.

use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use gleaner_postgres::Installation;

use crate::compare::Values;
use crate::page::{Block, Page, Part, Run, Step, pages, root};
use crate::session::Session;
use crate::support::{GLEANER, Gleaner};

/// Homes that run at the same time.
const AT_ONCE: usize = 3;
/// A page may show what an agent makes of a message; that takes a moment.
const PATIENCE: Duration = Duration::from_secs(30);

#[test]
fn every_console_block_of_the_manual_runs_or_says_why_not() {
    let waiting = Mutex::new(pages().into_iter().filter(runs_here).collect::<Vec<_>>());
    let faults = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(page) = { waiting.lock().expect("whole").pop() } {
                    let found = run(&page);
                    faults.lock().expect("whole").extend(found);
                }
            });
        }
    });
    let faults = faults.into_inner().expect("whole");
    assert!(faults.is_empty(), "{} differences from the manual:\n\n{}", faults.len(), faults.join("\n\n"));
}

#[test]
fn a_block_that_another_test_runs_names_that_test() {
    for page in pages() {
        for part in page.parts() {
            if let Part::Block(Block { run: Run::By(test), line, .. }) = part {
                let text = std::fs::read_to_string(root().join(&test)).unwrap_or_default();
                assert!(text.contains(&page.name), "{}:{line}: {test} does not run this page", page.name);
            }
        }
    }
}

#[test]
fn a_block_that_is_not_run_has_a_reason() {
    for page in pages() {
        for part in page.parts() {
            if let Part::Block(Block { run: Run::Not(reason), line, .. }) = part {
                assert!(reason.split_whitespace().count() > 2, "{}:{line}: say why: {reason:?}", page.name);
            }
        }
    }
}

fn runs_here(page: &Page) -> bool {
    page.parts().iter().any(|part| matches!(part, Part::Block(Block { run: Run::Here, .. })))
}

/// The differences between what the page shows and what its commands print.
fn run(page: &Page) -> Vec<String> {
    let gleaner = Gleaner::at_home();
    let (home, path) = (gleaner.home(), path());
    gleaner.ok(&["up", "--detach"]);
    let url = gleaner.ok(&["status", "-o", "url"]);
    let root = root().canonicalize().expect("the root");
    let variables = [
        ("GLEANER_HOME", home.to_str().expect("plain")),
        ("PATH", path.as_str()),
        ("DB_URL", url.trim()),
        ("ROOT", root.to_str().expect("plain")),
    ];
    let mut shell = Session::shell(&gleaner.folder, &variables);
    let (mut values, mut faults) = (Values::default(), Vec::new());
    for part in page.parts() {
        match part {
            Part::Setup(commands) => {
                let answer = shell.run(&format!("(set -e; {commands}\n)"));
                if answer.failed {
                    faults.push(format!("{}: setup failed: {commands}\n{}", page.name, answer.printed.join("\n")));
                }
            }
            Part::Block(block) if block.run == Run::Here => {
                let mut psql = None;
                for step in &block.steps {
                    let session = if step.sql { psql.get_or_insert_with(|| Session::psql(url.trim(), &path)) } else { &mut shell };
                    faults.extend(difference(session, step, &mut values).map(|fault| format!("{}:{}: {fault}", page.name, step.line)));
                }
            }
            Part::Block(_) => {}
        }
    }
    faults
}

fn difference(session: &mut Session, step: &Step, values: &mut Values) -> Option<String> {
    if step.command.starts_with("--") {
        return None;
    }
    let command = values.with_printed(&step.command);
    let until = Instant::now() + PATIENCE;
    loop {
        // What reads its input must not read the next command.
        let answer = session.run(&if step.sql { command.clone() } else { format!("{{ {command}\n}} < /dev/null") });
        let agree = if step.shown.is_empty() { !answer.failed } else { values.agree(&step.shown, &answer.printed) };
        if agree {
            return None;
        }
        // Only a query may be repeated.
        if !command.starts_with("psql") || command.contains("insert") || Instant::now() > until {
            return Some(format!("{command}\nshown:\n{}\nprinted:\n{}", step.shown.join("\n"), answer.printed.join("\n")));
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Ours first, then PostgreSQL's programs, then the system's.
fn path() -> String {
    let bin = match std::env::var_os("GLEANER_TEST_PG_BIN").filter(|v| !v.is_empty()) {
        Some(bin) => Installation::at(bin),
        None => Installation::find(),
    };
    let (bin, ours) = (bin.expect("PostgreSQL's programs"), Path::new(GLEANER).parent().expect("a folder"));
    let path = std::env::join_paths([ours, bin.bin(), Path::new("/usr/local/bin"), Path::new("/usr/bin"), Path::new("/bin")]);
    path.expect("a path").into_string().expect("plain")
}
