//! Finds the function to call, by its name and the set of argument names.

use std::sync::Arc;

use gleaner_http::WireError;
use http::StatusCode;

use crate::rest::catalogue::Function;
use crate::rest::sql::Arguments;

pub(super) fn resolve<'a>(
    schema: &str,
    name: &str,
    candidates: &'a [Arc<Function>],
    arguments: &Arguments,
) -> Result<&'a Function, WireError> {
    let given = arguments.names();
    let fitting: Vec<&Arc<Function>> = candidates.iter().filter(|function| fits(function, &given)).collect();
    match fitting.as_slice() {
        [function] => Ok(function),
        [] => Err(none(schema, name, candidates, &given)),
        several => Err(ambiguous(several)),
    }
}

/// Every given name is an argument, and every argument without a default is given.
fn fits(function: &Function, given: &[&str]) -> bool {
    given.iter().all(|name| function.argument(name).is_some())
        && function.arguments.iter().all(|argument| !argument.required || given.contains(&argument.name.as_str()))
}

fn none(schema: &str, name: &str, candidates: &[Arc<Function>], given: &[&str]) -> WireError {
    let called =
        if given.is_empty() { format!("{schema}.{name} without parameters") } else { format!("{schema}.{name}({})", given.join(", ")) };
    let with = match given {
        [] => "without parameters".to_owned(),
        [one] => format!("with parameter {one}"),
        several => format!("with parameters {}", several.join(", ")),
    };
    let error = WireError::new(StatusCode::NOT_FOUND, "PGRST202", format!("Could not find the function {called} in the schema cache"))
        .details(format!("Searched for the function {schema}.{name} {with}, but no matches were found in the schema cache."));
    match candidates.first() {
        Some(function) => error.hint(format!("Perhaps you meant to call the function {}", signature(function))),
        None => error,
    }
}

fn ambiguous(several: &[&Arc<Function>]) -> WireError {
    let signatures: Vec<_> = several.iter().map(|function| typed_signature(function)).collect();
    let message = format!("Could not choose the best candidate function between: {}", signatures.join(", "));
    WireError::new(StatusCode::MULTIPLE_CHOICES, "PGRST203", message)
        .hint("Try renaming the parameters or the function itself in the database so function overloading can be resolved")
}

fn signature(function: &Function) -> String {
    let arguments: Vec<_> = function.arguments.iter().map(|argument| argument.name.as_str()).collect();
    format!("{}.{}({})", function.schema, function.name, arguments.join(", "))
}

fn typed_signature(function: &Function) -> String {
    let typed = |argument: &crate::rest::catalogue::Argument| {
        format!("{} => {}", argument.name, argument.kind.sql.trim_start_matches("pg_catalog."))
    };
    let arguments: Vec<_> = function.arguments.iter().map(typed).collect();
    format!("{}.{}({})", function.schema, function.name, arguments.join(", "))
}
