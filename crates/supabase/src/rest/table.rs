//! Tables and views: read, insert, update, delete.

use axum::response::Response;
use gleaner_http::WireError;
use http::{Method, StatusCode};

use super::Rest;
use super::body::{self, Rows};
use super::catalogue::{Catalogue, Relation};
use super::media::Media;
use super::prefer::{Act, Missing};
use super::query::Query;
use super::request::Request;
use super::respond::{self, Frame};
use super::session::Outcome;
use super::sql::{Compiler, Inserting, Reading, Statement, Updating};

pub(super) async fn answer(rest: &Rest, catalogue: &Catalogue, request: &Request, name: &str) -> Result<Response, WireError> {
    let relation = catalogue.relation(&request.schema, name).ok_or_else(|| {
        let message = format!("Could not find the table '{}.{name}' in the schema cache", request.schema);
        WireError::new(StatusCode::NOT_FOUND, "PGRST205", message)
    })?;
    let mut query = Query::parse(&request.parameters)?;
    query.narrow(request.range)?;
    if request.context.read_only {
        return read(rest, request, relation, &query, Compiler::new(catalogue, &query)).await;
    }
    let statement = compile(request, relation, &query, Compiler::new(catalogue, &query))?;
    let outcome = write(rest, request, statement.as_ref()).await?;
    rest.observer.written(&request.schema, name);
    let said = respond::Said::of(&outcome)?;
    let status = write_status(request, &outcome);
    let act = act(request);
    let range = if act == Act::Update { respond::range(&outcome, 0) } else { respond::total_range(&outcome) };
    let frame = Frame { status, schema: &request.schema, applied: request.preferences.applied(act), range: Some(range) };
    let shows = request.preferences.show();
    Ok(said.apply(if shows { respond::rows(frame, request.media, outcome) } else { respond::nothing(frame) }))
}

async fn read(rest: &Rest, request: &Request, relation: &Relation, query: &Query, compiler: Compiler<'_>) -> Result<Response, WireError> {
    let reading =
        Reading { count: request.preferences.count.is_some(), most: request.limits.max_rows, head_only: request.is_head(), written: false };
    let statement = compiler.read(relation, reading)?;
    let outcome = rest.run(request, &statement, None::<fn(&Outcome) -> Result<(), WireError>>).await?;
    if request.media == Media::Single {
        respond::exactly_one(&outcome)?;
    }
    let offset = query.part(&[]).map_or(0, |part| part.offset);
    let status = respond::page_status(&outcome, offset)?;
    let said = respond::Said::of(&outcome)?;
    let range = Some(respond::range(&outcome, offset));
    let frame = Frame { status, schema: &request.schema, applied: request.preferences.applied(Act::Read), range };
    Ok(said.apply(respond::rows(frame, request.media, outcome)))
}

/// The statement of a write; `None` when the body contains nothing to write.
fn compile(request: &Request, relation: &Relation, query: &Query, compiler: Compiler<'_>) -> Result<Option<Statement>, WireError> {
    let (show, count) = (request.preferences.show(), request.preferences.count.is_some());
    let missing_default = request.preferences.missing == Some(Missing::Default);
    match request.method {
        Method::DELETE => compiler.delete(relation, show, count).map(Some),
        Method::PATCH => {
            let rows = Rows::parse(&request.body.bytes)?;
            if rows.count != 1 {
                return Err(body::unusable().details("One object says what is to change"));
            }
            compiler.update(relation, rows, Updating { missing_default, show, count })
        }
        _ => {
            let rows = Rows::parse(&request.body.bytes)?;
            if query.columns.is_none() && !rows.even {
                return Err(WireError::new(StatusCode::BAD_REQUEST, "PGRST102", "All object keys must match"));
            }
            let how = Inserting { upsert: request.preferences.upsert, missing_default, show, count };
            compiler.insert(relation, rows, how)
        }
    }
}

/// Runs a write. Rules about the number of rows are checked before the commit, so that breaking one writes nothing.
async fn write(rest: &Rest, request: &Request, statement: Option<&Statement>) -> Result<Outcome, WireError> {
    // New rows affect no others.
    let most = request.preferences.most_affected().filter(|_| act(request) != Act::Insert);
    let rules = |outcome: &Outcome| {
        if request.media == Media::Single {
            respond::exactly_one(outcome)?;
        }
        respond::within(outcome, most)
    };
    let ruled = request.media == Media::Single || most.is_some();
    match statement {
        Some(statement) => rest.run(request, statement, ruled.then_some(rules)).await,
        None => {
            let nothing = Outcome { total: request.preferences.count.map(|_| 0), ..Outcome::default() };
            rules(&nothing).map(|()| nothing)
        }
    }
}

fn act(request: &Request) -> Act {
    match request.method {
        Method::PATCH => Act::Update,
        Method::DELETE => Act::Delete,
        _ => Act::Insert,
    }
}

fn write_status(request: &Request, outcome: &Outcome) -> StatusCode {
    match request.method {
        // A merge that found all rows inserted none.
        Method::POST if outcome.inserted == Some(0) && outcome.shown > 0 => StatusCode::OK,
        Method::POST => StatusCode::CREATED,
        _ if request.preferences.show() => StatusCode::OK,
        _ => StatusCode::NO_CONTENT,
    }
}
