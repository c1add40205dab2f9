//! Finds the function to call, by its name and the set of argument names.

use std::sync::Arc;

use gleaner_http::WireError;
use http::StatusCode;

use crate::rest::catalogue::Function;
use crate::rest::request::Request;
use crate::rest::sql::Arguments;

/// Types that take a body of JSON as it is.
pub(super) const JSON: [&str; 2] = ["pg_catalog.json", "pg_catalog.jsonb"];
const TEXT: [&str; 1] = ["pg_catalog.text"];

/// The function, and its arguments. Where none takes arguments of these names, one whose only argument has no name gets the whole
/// body.
pub(super) fn resolve<'a>(
    request: &Request,
    name: &str,
    candidates: &'a [Arc<Function>],
    arguments: Arguments,
) -> Result<(&'a Function, Arguments), WireError> {
    let schema = &request.schema;
    let given = arguments.names();
    let is_whole = matches!(arguments, Arguments::Whole(_));
    let fitting: Vec<&Arc<Function>> = candidates.iter().filter(|function| !is_whole && fits(function, &given)).collect();
    match fitting.as_slice() {
        [function] => return Ok((function, arguments)),
        [] => {}
        several => return Err(ambiguous(several)),
    }
    let types = if request.plain_text { TEXT.as_slice() } else { JSON.as_slice() };
    let takes_body: Vec<&Arc<Function>> = candidates.iter().filter(|function| function.unnamed(types).is_some()).collect();
    match (takes_body.as_slice(), arguments) {
        ([], arguments) => Err(none(schema, name, candidates, &arguments.names())),
        (_, Arguments::Literals(pairs)) => Err(none(schema, name, candidates, &Arguments::Literals(pairs).names())),
        ([function], Arguments::Json { text, .. } | Arguments::Whole(text)) => Ok((function, Arguments::Whole(text))),
        (several, _) => Err(ambiguous(several)),
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
