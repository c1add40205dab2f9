//! The schema of a database as `pg_dump` prints it, with the programs of the server's own installation.

use std::io::Write as _;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use gleaner_postgres::Installation;

/// The schema as `pg_dump --schema-only` prints it, without the lines that name versions or settings. `which` selects a part of it.
pub(crate) fn pg_dump(url: &str, which: &[&str]) -> Result<String> {
    let output = Command::new(installation()?.program("pg_dump"))
        .args(["--schema-only", "--no-publications", "--no-subscriptions", "--dbname", url])
        .args(which)
        .output()
        .context("run pg_dump")?;
    ensure!(output.status.success(), "pg_dump: {}", String::from_utf8_lossy(&output.stderr));
    Ok(normalised(&String::from_utf8(output.stdout)?))
}

/// The server's own programs.
pub(crate) fn installation() -> Result<Installation> {
    Ok(match std::env::var_os("GLEANER_TEST_PG_BIN").filter(|v| !v.is_empty()) {
        Some(bin) => Installation::at(bin)?,
        None => Installation::find()?,
    })
}

/// Runs a script with psql, statement by statement, up to the first error.
pub(crate) fn psql(url: &str, script: &str) -> Result<()> {
    let mut output = Command::new(installation()?.program("psql"))
        .args(["--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1", "--dbname", url, "--command"])
        .args(["set client_min_messages = warning", "--file", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .context("run psql")?;
    output.stdin.take().context("psql reads")?.write_all(script.as_bytes())?;
    let output = output.wait_with_output()?;
    ensure!(output.status.success(), "psql: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// The same text for the same schema from every version: PostgreSQL 15 qualifies each column of a view, later ones only if there
/// are two tables; and 15 calls a view a table when its owner changes.
fn normalised(dump: &str) -> String {
    let mut out = String::new();
    let (mut blank, mut in_view) = (true, false);
    for line in dump.lines() {
        let noise = ["--", "SET ", "\\restrict", "\\unrestrict", "SELECT pg_catalog.set_config"].iter().any(|n| line.starts_with(n));
        // The tables belong to the role that migrates, which differs between environments.
        if noise || line.ends_with(" OWNER TO gleaner;") || line.is_empty() && blank {
            continue;
        }
        blank = line.is_empty();
        in_view |= line.starts_with("CREATE VIEW");
        let line = if in_view {
            unqualified(line)
        } else {
            line.replace("ALTER TABLE ONLY ", "ALTER TABLE ").replace("ALTER VIEW ", "ALTER TABLE ")
        };
        in_view &= !line.ends_with(';');
        out.push_str(&line);
        out.push('\n');
    }
    out
}

/// Removes the table aliases before columns; schemas stay.
fn unqualified(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(dot) = rest.find('.') {
        let head = &rest[..dot];
        let begin = head.rfind(|c: char| !(c.is_alphanumeric() || c == '_')).map_or(0, |i| i + 1);
        let word = &head[begin..];
        let alias = !matches!(word, "public" | "gleaner" | "auth" | "pg_catalog") && word.starts_with(char::is_alphabetic);
        out.push_str(if alias { &head[..begin] } else { &rest[..=dot] });
        rest = &rest[dot + 1..];
    }
    out + rest
}
