//! How errors are told: on standard error, as `error: …`, with what to do.

use std::process::ExitCode;

use anyhow::Error;
use gleaner_server::channels;

use crate::output::{BAD, paint};
use crate::words::harmless;

/// Prints the error and gives the exit code. Usage errors (2) are told by the argument parser, before anything runs.
pub fn tell(error: &Error) -> ExitCode {
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
        // These tell their own causes.
        if cause.is::<gleaner::Error>() || cause.is::<gleaner_postgres::Error>() || cause.is::<channels::Error>() {
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
    let known = error.chain().find_map(|cause| match cause.downcast_ref() {
        Some(channels::Error::Database(error)) => Some(error),
        _ => cause.downcast_ref::<gleaner::Error>(),
    })?;
    match known {
        // Our own tables or functions are not there.
        gleaner::Error::Database { .. }
            if known.code().is_some_and(|c| matches!(c.code(), "42P01" | "3F000" | "42883")) && known.to_string().contains("gleaner.") =>
        {
            Some("This database may not be migrated, or by an older version: run `gleaner migrate`.")
        }
        // The table of an older version.
        gleaner::Error::Database { .. } if known.code().is_some_and(|c| c.code() == "42703") && known.to_string().contains("column c.") => {
            Some("This database was migrated by an older version: run `gleaner migrate`.")
        }
        gleaner::Error::Connect(_) => Some("Check DATABASE_URL; or unset it and run `gleaner up` for a private PostgreSQL."),
        gleaner::Error::Refused { .. } => Some("Or unset DATABASE_URL and run `gleaner up` for a private PostgreSQL."),
        _ => None,
    }
}
