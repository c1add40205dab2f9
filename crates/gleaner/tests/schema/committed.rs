//! The resulting schema is committed as one file, so that reviewers see every change as a diff.

use std::path::Path;

use anyhow::{Context as _, Result};

use crate::dump::pg_dump;
use crate::world::world;

const HEADER: &str = "\
-- The schema after every migration, as pg_dump prints it: to be read, never applied. Written by `make schema`; a test fails
-- when it differs from what the migrations make. Qualifiers inside views are left out, as PostgreSQL versions differ in them.

";

/// A change of the schema shows up in the diff of one file, and is the same on every PostgreSQL version.
#[tokio::test]
async fn the_committed_schema_is_what_the_migrations_make() -> Result<()> {
    let world = world().await?;
    let now = HEADER.to_owned() + &pg_dump(world.url(), &["--schema=gleaner", "--schema=public", "--schema=auth"])?;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("sql/schema.sql");
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(&path, now).with_context(|| format!("write {}", path.display()))?;
        return Ok(());
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    if now != committed {
        let line =
            now.lines().zip(committed.lines()).position(|(a, b)| a != b).unwrap_or(now.lines().count().min(committed.lines().count()));
        panic!(
            "crates/gleaner/sql/schema.sql differs from what the migrations make, first in line {}:\n  committed: {:?}\n  migrated:  {:?}\n\
             Run `make schema` and commit the file.",
            line + 1,
            committed.lines().nth(line).unwrap_or_default(),
            now.lines().nth(line).unwrap_or_default(),
        );
    }
    Ok(())
}
