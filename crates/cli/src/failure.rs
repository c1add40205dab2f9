//! How errors are reported: on standard error, as `error: …`, with what to do.

use std::process::ExitCode;

use anyhow::Error;
use gleaner_http::database;
use gleaner_intake::channels;
use tokio_postgres::error::SqlState;

use crate::output::{BAD, paint};
use crate::words::harmless;

const UNREACHABLE: &str = "Check DATABASE_URL; or unset it and run `gleaner up` for a private PostgreSQL.";

/// Prints the error and returns the exit code. Usage errors (2) are reported by the argument parser, before anything runs.
pub(crate) fn tell(error: &Error) -> ExitCode {
    anstream::eprintln!("{} {}", paint(BAD, "error:"), harmless(&text(error)));
    ExitCode::FAILURE
}

fn text(error: &Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        if !text.is_empty() {
            text.push_str(": ");
        }
        text.push_str(&cause.to_string());
        // These errors already include their causes.
        let tells_causes = cause.is::<gleaner::Error>() || cause.is::<database::Error>() || cause.is::<channels::Error>();
        if tells_causes || cause.is::<gleaner_postgres::Error>() {
            break;
        }
    }
    if let Some(hint) = hint(error)
        && !text.contains("`gleaner migrate`")
    {
        text.push_str("\n  ");
        text.push_str(hint);
    }
    text
}

fn hint(error: &Error) -> Option<&'static str> {
    error.chain().find_map(|cause| match cause.downcast_ref() {
        Some(channels::Error::Database(error)) => Some(hint_of_database(error)),
        _ => cause.downcast_ref().map(hint_of_database).or_else(|| cause.downcast_ref().map(hint_of_engine)),
    })?
}

fn hint_of_database(error: &database::Error) -> Option<&'static str> {
    match error {
        database::Error::Database { source, .. } => hint_of_code(source.code(), error),
        database::Error::Connect(_) => Some(UNREACHABLE),
        _ => None,
    }
}

fn hint_of_engine(error: &gleaner::Error) -> Option<&'static str> {
    match error {
        gleaner::Error::Database { source, .. } => hint_of_code(source.code(), error),
        gleaner::Error::Connect(_) => Some(UNREACHABLE),
        gleaner::Error::Refused { .. } => Some("Or unset DATABASE_URL and run `gleaner up` for a private PostgreSQL."),
        _ => None,
    }
}

fn hint_of_code(code: Option<&SqlState>, error: &dyn std::fmt::Display) -> Option<&'static str> {
    let text = error.to_string();
    match code?.code() {
        // Our own tables or functions do not exist.
        "42P01" | "3F000" | "42883" if text.contains("gleaner.") => {
            Some("This database may not be migrated, or by an older version: run `gleaner migrate`.")
        }
        // The table is that of an older version.
        "42703" if text.contains("column c.") => Some("This database was migrated by an older version: run `gleaner migrate`."),
        _ => None,
    }
}
