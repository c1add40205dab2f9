//! `GET /admin/users`, a page at a time.

use axum::Json;
use axum::extract::{Query, State};
use axum::http::HeaderName;
use axum::http::header::LINK;
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_postgres::types::Type;

use crate::auth::Auth;
use crate::auth::bearer::Administrator;
use crate::auth::error::{Failure, Result};

const TOTAL: HeaderName = HeaderName::from_static("x-total-count");
const PAGE: i64 = 50;
const LARGEST: i64 = 1000;

#[derive(Deserialize)]
pub(super) struct ListQuery {
    page: Option<String>,
    per_page: Option<String>,
}

/// A number from 1 on. The client sends an empty string where the program gave none.
fn number(text: Option<&str>, default: i64, most: i64) -> Result<i64> {
    match text.filter(|text| !text.is_empty()) {
        None => Ok(default),
        Some(text) => match text.parse::<i64>() {
            Ok(number) if number >= 1 => Ok(number.min(most)),
            _ => Err(Failure::invalid("Bad Pagination Parameters: page and per_page are numbers from 1 on")),
        },
    }
}

pub(super) async fn get(State(auth): State<Auth>, _: Administrator, Query(asked): Query<ListQuery>) -> Result<Response> {
    let page = number(asked.page.as_deref(), 1, i64::MAX / LARGEST)?;
    let size = number(asked.per_page.as_deref(), PAGE, LARGEST)?;
    let row = auth
        .row(
            "list the users",
            "select coalesce((select jsonb_agg(gleaner.show_user(u.id) order by u.created_at desc, u.id)
                              from (select id, created_at from auth.users order by created_at desc, id limit $1 offset $2) as u), '[]'),
                    (select count(*) from auth.users)",
            &[(&size, Type::INT8), (&((page - 1) * size), Type::INT8)],
        )
        .await?;
    let (users, total): (Value, i64) = (row.get(0), row.get(1));
    let last = ((total + size - 1) / size).max(1);
    let to = |page: i64, name: &str| format!("</admin/users?page={page}&per_page={size}>; rel=\"{name}\"");
    // The client reads the numbers of the next and the last page from this header.
    let mut links = Vec::new();
    if page < last {
        links.push(to(page + 1, "next"));
    }
    links.push(to(last, "last"));
    let headers = [(LINK, links.join(", ")), (TOTAL, total.to_string())];
    Ok((headers, Json(json!({"users": users, "aud": "authenticated"}))).into_response())
}
