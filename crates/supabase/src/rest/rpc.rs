//! Functions.

mod resolve;

use std::sync::Arc;

use axum::response::Response;
use gleaner_http::WireError;
use http::StatusCode;

use super::Rest;
use super::body::{self, Rows};
use super::catalogue::{Catalogue, Function, Returns};
use super::media::Media;
use super::observe::Call;
use super::prefer::{Act, Return};
use super::query::{Parameters, Query, looks_like_a_filter};
use super::request::Request;
use super::respond::{self, Frame};
use super::session::Outcome;
use super::sql::{Arguments, Compiler, Reading};

pub(super) async fn answer(rest: &Rest, catalogue: &Catalogue, request: &Request, name: &str) -> Result<Response, WireError> {
    let candidates = catalogue.functions(&request.schema, name);
    let (arguments, parameters) = if request.context.read_only {
        let is_argument = |parameter: &str| candidates.iter().any(|function| function.argument(parameter).is_some());
        // `id=5&id=gt.2`: an argument, and a filter on the column of that name.
        let has_plain = |parameter: &str| request.parameters.iter().any(|(name, value)| name == parameter && !looks_like_a_filter(value));
        let (literals, others) = request.parameters.iter().cloned().partition(|(name, value)| {
            let filters = looks_like_a_filter(value);
            if is_argument(name) { !(filters && has_plain(name)) } else { !(is_reserved(name) || name.contains('.') || filters) }
        });
        (Arguments::Literals(literals), others)
    } else {
        (body_arguments(request, candidates)?, request.parameters.clone())
    };
    let (function, arguments) = resolve::resolve(request, name, candidates, arguments)?;
    let mut query = Query::parse(&parameters_for(function, parameters))?;
    query.narrow(request.range)?;
    let reading = Reading {
        count: request.preferences.count.is_some(),
        // All rows that a claim has taken must reach the caller, so they are never cut off.
        most: request.limits.max_rows.filter(|_| request.context.read_only || !function.volatile),
        head_only: request.is_head(),
        written: false,
    };
    let statement = Compiler::new(catalogue, &query).call(function, arguments, reading)?;
    let single = request.media == Media::Single && matches!(function.returns, Returns::Rows { .. });
    let most = most_affected(request, function)?;
    let rules = |outcome: &Outcome| {
        if single {
            respond::exactly_one(outcome)?;
        }
        respond::within(outcome, most)
    };
    let outcome = rest.run(request, &statement, (single || most.is_some()).then_some(rules)).await?;
    rest.observer.called(&Call {
        schema: &request.schema,
        function: name,
        role: &request.context.role,
        claims: &request.context.claims,
        headers: &request.context.headers,
        arguments: &request.body.bytes,
        rows: &outcome.rows,
    });
    let offset = query.part(&[]).map_or(0, |part| part.offset);
    let status = respond::page_status(&outcome, offset)?;
    let said = respond::Said::of(&outcome)?;
    let range = Some(respond::range(&outcome, offset));
    let frame = Frame { status, schema: &request.schema, applied: request.preferences.applied(Act::Call), range };
    Ok(said.apply(present(request, function, frame, single, outcome)))
}

fn present(request: &Request, function: &Function, mut frame: Frame<'_>, single: bool, outcome: Outcome) -> Response {
    let minimal = request.preferences.give_back == Some(Return::Minimal);
    if minimal || matches!(function.returns, Returns::Nothing) {
        if minimal {
            frame.applied.insert(0, "return=minimal".to_owned());
        }
        frame.status = StatusCode::NO_CONTENT;
        return respond::nothing(frame);
    }
    if single {
        return respond::rows(frame, Media::Single, outcome);
    }
    if function.many {
        return respond::rows(frame, Media::List, outcome);
    }
    // One value, or one row. A null composite returns no row.
    let text = if outcome.shown == 0 { "null".to_owned() } else { outcome.rows };
    respond::value(frame, text)
}

/// How many rows the function may return. Only what returns rows says how many it has affected.
fn most_affected(request: &Request, function: &Function) -> Result<Option<i64>, WireError> {
    let most = request.preferences.most_affected();
    if most.is_some() && !function.many {
        let message = "Function must return SETOF or TABLE when max-affected preference is used with handling=strict";
        return Err(WireError::new(StatusCode::BAD_REQUEST, "PGRST128", message));
    }
    Ok(most)
}

/// The arguments in the body: an object with their names, or the only one of a function, which has no name. No body is an empty
/// object.
fn body_arguments(request: &Request, candidates: &[Arc<Function>]) -> Result<Arguments, WireError> {
    let whole = || String::from_utf8(request.body.bytes.to_vec()).map(Arguments::Whole).map_err(|_| body::unusable());
    if request.plain_text {
        return whole();
    }
    if request.body.bytes.trim_ascii().is_empty() {
        return Ok(Arguments::Json { text: "{}".to_owned(), names: Vec::new() });
    }
    match Rows::parse(&request.body.bytes) {
        Ok(rows) if !rows.is_array => {
            // `columns` says which of the keys are meant.
            let columns = Query::parse(&request.parameters.iter().filter(|(name, _)| name == "columns").cloned().collect())?.columns;
            let meant = |key: &String| columns.as_ref().is_none_or(|columns| columns.contains(key));
            Ok(Arguments::Json { text: rows.text, names: rows.keys.into_iter().filter(meant).collect() })
        }
        // Any JSON is a value for an argument of that type.
        _ if candidates.iter().any(|function| function.unnamed(&resolve::JSON).is_some()) => whole(),
        Ok(_) => Err(body::unusable().details("Arguments are an object, each under its name")),
        Err(error) => Err(error),
    }
}

/// A bare value has no columns to select, filter or order by, so such parameters are ignored.
fn parameters_for(function: &Function, parameters: Parameters) -> Parameters {
    if matches!(function.returns, Returns::Rows { .. }) { parameters } else { Vec::new() }
}

fn is_reserved(name: &str) -> bool {
    matches!(name, "select" | "order" | "limit" | "offset" | "or" | "and" | "columns" | "apikey")
}
