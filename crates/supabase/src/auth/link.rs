//! `/link`: the page behind a printed or mailed link. It asks for a password and sets it. Opening the page does not use up the
//! link, because mail programs open every link.

use axum::Form;
use axum::extract::rejection::FormRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_FRAME_OPTIONS};
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use tokio_postgres::types::Type;

use super::Auth;
use super::error::{Failure, Result};
use super::password::Password;
use super::people::LinkKind;
use super::session::Device;
use super::strength;
use super::token::hash_of;
use super::verify::link_is_over;

#[derive(Deserialize)]
pub(super) struct Followed {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    token: String,
}

#[derive(Deserialize)]
pub(super) struct Filled {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    token: String,
    password: Option<Password>,
}

pub(super) async fn get(State(auth): State<Auth>, device: Device, Query(link): Query<Followed>) -> Response {
    match looked_at(&auth, &device, &link.kind, &link.token).await {
        Ok((kind, email)) => page(StatusCode::OK, &form(&auth, kind, &link.token, &email, None)),
        Err(failure) => sorry(&failure),
    }
}

pub(super) async fn post(State(auth): State<Auth>, device: Device, filled: Result<Form<Filled>, FormRejection>) -> Response {
    let Ok(Form(filled)) = filled else { return sorry(&Failure::invalid("This form was not filled in on our page")) };
    let (kind, email) = match looked_at(&auth, &device, &filled.kind, &filled.token).await {
        Ok(known) => known,
        Err(failure) => return sorry(&failure),
    };
    match set(&auth, kind, &email, &filled).await {
        Ok(()) => page(StatusCode::OK, &thanks(&auth, kind, &email)),
        // The link is still valid, so the user can choose another password.
        Err(failure) if failure.status().as_u16() == 422 => {
            page(failure.status(), &form(&auth, kind, &filled.token, &email, Some(failure.message())))
        }
        Err(failure) => sorry(&failure),
    }
}

/// The kind of link, and the address of its user.
async fn looked_at(auth: &Auth, device: &Device, kind: &str, token: &str) -> Result<(LinkKind, String)> {
    let kind = LinkKind::named(kind).ok_or_else(link_is_over)?;
    let attempt = auth.0.limits.try_token(device.network())?;
    let row = auth
        .row(
            "look at a link",
            "select min(t.relates_to) from auth.one_time_tokens as t
             where t.token_hash = $1 and t.token_type = $2 and t.expires_at > clock_timestamp()",
            &[(&hash_of(token), Type::TEXT), (&kind.stored(), Type::TEXT)],
        )
        .await?;
    let email = row.get::<_, Option<String>>(0).ok_or_else(link_is_over)?;
    attempt.does_not_count();
    Ok((kind, email))
}

async fn set(auth: &Auth, kind: LinkKind, email: &str, filled: &Filled) -> Result<()> {
    let hash = if kind.asks_for_password() {
        let password = filled.password.clone().unwrap_or_else(|| Password::new(""));
        strength::judge(&password, email, &auth.0.settings.password)?;
        Some(auth.0.hasher.hash(password).await?)
    } else {
        None
    };
    auth.redeem(kind, &filled.token, hash.as_deref()).await.map(drop)
}

fn form(auth: &Auth, kind: LinkKind, token: &str, email: &str, wrong: Option<&str>) -> String {
    let title = match kind {
        LinkKind::Invite => "Welcome",
        LinkKind::Recovery => "New password",
        LinkKind::Signup | LinkKind::Magic => "Confirm your address",
    };
    let wrong = wrong.map(|text| format!("<p role=\"alert\">{}</p>", escaped(text))).unwrap_or_default();
    let field = if kind.asks_for_password() {
        format!(
            "<label>Password <input type=\"password\" name=\"password\" minlength=\"{}\" required autofocus autocomplete=\"new-password\"></label>",
            auth.0.settings.password.shortest
        )
    } else {
        String::new()
    };
    format!(
        "<h1>{title}</h1><p>{email}</p>{wrong}<form method=\"post\" action=\"{action}\"><input type=\"hidden\" name=\"type\" value=\"{kind}\">
         <input type=\"hidden\" name=\"token\" value=\"{token}\"><input type=\"hidden\" name=\"username\" autocomplete=\"username\" value=\"{email}\">
         {field}<button>Go on</button></form>",
        email = escaped(email),
        // Relative to the page itself, so that it also works below a path.
        action = "link",
        kind = kind.name(),
        token = escaped(token),
    )
}

fn thanks(auth: &Auth, kind: LinkKind, email: &str) -> String {
    let done = if kind.asks_for_password() { "Your password is set." } else { "Your address is confirmed." };
    let next = match auth.0.settings.redirects.first() {
        Some(place) => format!("<p><a href=\"{}\">Sign in</a></p>", escaped(place)),
        // Beside us, the web interface has a page for it. Relative, so that it also works below a path.
        None => "<p><a href=\"../../sign-in\">Sign in</a></p>".to_owned(),
    };
    format!("<h1>{done}</h1><p>{}</p>{next}", escaped(email))
}

fn sorry(failure: &Failure) -> Response {
    page(failure.status(), &format!("<h1>Sorry</h1><p role=\"alert\">{}.</p>", escaped(failure.message())))
}

fn page(status: StatusCode, content: &str) -> Response {
    const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:24rem;margin:15vh auto;padding:0 1rem}label,input,button{display:block;\
        width:100%;box-sizing:border-box;margin:.5rem 0;font:inherit;padding:.25rem}label{padding:0}[role=alert]{color:#b00020}";
    let html = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>Gleaner</title><style>{STYLE}</style><main>{content}</main></html>"
    );
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (
            CONTENT_SECURITY_POLICY,
            "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
        ),
        (X_FRAME_OPTIONS, "DENY"),
        // The URL of this page gives access to an account.
        (REFERRER_POLICY, "no-referrer"),
    ];
    (status, headers, html).into_response()
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}
