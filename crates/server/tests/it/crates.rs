//! Which crate of the workspace may depend on which. ARCHITECTURE.md describes the rules; this test checks them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use toml::Table;

/// Each crate, and the crates of this workspace that it may use.
const MAY_USE: &[(&str, &[&str])] = &[
    ("gleaner", &[]),
    // Its libraries read what strangers send, so only a process of its own uses it.
    ("gleaner-documents", &[]),
    ("gleaner-http", &[]),
    ("gleaner-ingest", &[]),
    ("gleaner-postgres", &[]),
    // Does not depend on queues: what it needs of them is passed in through its traits.
    ("gleaner-supabase", &["gleaner-http"]),
    ("gleaner-intake", &["gleaner", "gleaner-http", "gleaner-ingest"]),
    ("gleaner-server", &["gleaner", "gleaner-http", "gleaner-ingest", "gleaner-intake", "gleaner-supabase"]),
    ("gleaner-stages", &["gleaner"]),
    ("gleaner-systems", &["gleaner", "gleaner-http", "gleaner-stages"]),
    ("gleaner-agent", &["gleaner", "gleaner-postgres", "gleaner-stages", "gleaner-systems"]),
    (
        "gleaner-cli",
        &[
            "gleaner",
            "gleaner-agent",
            "gleaner-documents",
            "gleaner-http",
            "gleaner-ingest",
            "gleaner-intake",
            "gleaner-postgres",
            "gleaner-server",
            "gleaner-stages",
            "gleaner-supabase",
            "gleaner-systems",
        ],
    ),
    (
        "gleaner-bench",
        &[
            "gleaner",
            "gleaner-agent",
            "gleaner-http",
            "gleaner-ingest",
            "gleaner-intake",
            "gleaner-postgres",
            "gleaner-server",
            "gleaner-supabase",
        ],
    ),
];

/// What the tests of a crate may use in addition. The tests of every crate may use a database and migrate it.
const TESTS_MAY_USE: &[(&str, &[&str])] = &[("gleaner-agent", &["gleaner-http", "gleaner-intake", "gleaner-server", "gleaner-supabase"])];
const EVERY_TEST_MAY_USE: &[&str] = &["gleaner", "gleaner-postgres"];

struct Manifest {
    dependencies: BTreeSet<String>,
    of_tests: BTreeSet<String>,
}

/// The manifests of the workspace, by the name of the package.
fn manifests() -> Result<BTreeMap<String, Manifest>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut folders = vec![root.join("bench")];
    for entry in fs::read_dir(root.join("crates"))? {
        folders.push(entry?.path());
    }
    let mut found = BTreeMap::new();
    for file in folders.iter().map(|folder| folder.join("Cargo.toml")).filter(|file| file.exists()) {
        let manifest: Table = fs::read_to_string(&file)?.parse().with_context(|| file.display().to_string())?;
        let name = manifest["package"]["name"].as_str().context("a name")?.to_owned();
        let table = |name: &str| manifest.get(name).and_then(|table| table.as_table());
        let ours = |names: &[&str]| {
            let all = names.iter().filter_map(|name| table(name)).flat_map(Table::keys);
            all.filter(|name| name.starts_with("gleaner")).cloned().collect()
        };
        let (dependencies, of_tests) = (ours(&["dependencies", "build-dependencies"]), ours(&["dev-dependencies"]));
        found.insert(name, Manifest { dependencies, of_tests });
    }
    Ok(found)
}

fn listed(list: &[(&str, &'static [&'static str])], package: &str) -> Option<&'static [&'static str]> {
    list.iter().find(|(name, _)| *name == package).map(|(_, names)| *names)
}

#[test]
fn each_crate_uses_only_those_below_it() -> Result<()> {
    let mut wrong = Vec::new();
    for (package, manifest) in manifests()? {
        let Some(may) = listed(MAY_USE, &package) else {
            wrong.push(format!(
                "{package} is new: say in MAY_USE of crates/server/tests/it/crates.rs what it may use, and draw it in ARCHITECTURE.md"
            ));
            continue;
        };
        for used in manifest.dependencies.iter().filter(|used| !may.contains(&used.as_str())) {
            wrong.push(format!(
                "{package} must not use {used}. Move what it needs into a crate below both, or let {package} take a trait or a value \
                 that the server gives it (as rest::Observe and realtime::Signals are)"
            ));
        }
        let tests_may = listed(TESTS_MAY_USE, &package).unwrap_or_default();
        let known = |used: &&String| [may, tests_may, EVERY_TEST_MAY_USE].iter().any(|list| list.contains(&used.as_str()));
        for used in manifest.of_tests.iter().filter(|used| !known(used)) {
            wrong.push(format!(
                "the tests of {package} must not use {used}. Move the test to the crate that has both, such as gleaner-server"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}
