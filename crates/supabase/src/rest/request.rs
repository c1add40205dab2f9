//! A request, parsed as far as possible without the catalogue.

use axum::extract::Request as HttpRequest;
use gleaner_http::{Caller, Role, WireError, person};
use http::{HeaderMap, HeaderName, Method, StatusCode};
use serde_json::{Map, Value};

use super::Rest;
use super::body::{self, Held};
use super::context::Context;
use super::media::Media;
use super::prefer::Preferences;
use super::query::{Parameters, decode, decode_segment};
use super::range::Range;
use super::settings::{Limits, Settings};

const ACCEPT_PROFILE: HeaderName = HeaderName::from_static("accept-profile");
const CONTENT_PROFILE: HeaderName = HeaderName::from_static("content-profile");

#[derive(Debug)]
pub(super) struct Request {
    pub method: Method,
    pub resource: Resource,
    pub schema: String,
    pub parameters: Parameters,
    pub preferences: Preferences,
    pub range: Option<Range>,
    pub media: Media,
    pub body: Held,
    /// The body is text, not JSON.
    pub plain_text: bool,
    pub limits: Limits,
    pub context: Context,
}

#[derive(Debug)]
pub(super) enum Resource {
    Relation(String),
    Function(String),
}

impl Request {
    pub(super) async fn read(rest: &Rest, request: HttpRequest) -> Result<Self, WireError> {
        let (parts, body) = request.into_parts();
        let caller = rest.identify.identify(&parts.headers, parts.uri.query()).await?;
        let Caller::Token { role, claims } = caller else {
            // Nothing is run with the rights of the server's own login.
            return Err(WireError::new(StatusCode::UNAUTHORIZED, "PGRST302", "Anonymous access is disabled"));
        };
        let resource = resource(parts.uri.path())?;
        check_method(&parts.method, &resource)?;
        let schema = schema(&rest.settings, &parts.method, &parts.headers)?;
        let parameters = decode(parts.uri.query())?;
        let media = Media::negotiate(&parts.headers)?;
        let range = Range::parse(&parts.method, &parts.headers)?;
        let preferences = Preferences::parse(&parts.headers);
        preferences.check()?;
        let limits = rest.settings.limits(role);
        let context = Context {
            search_path: search_path(&rest.settings, &schema),
            role: role.name().to_owned(),
            person: person(&claims),
            claims: claims_with_role(claims, role),
            method: parts.method.to_string(),
            path: parts.uri.path().to_owned(),
            headers: headers_as_json(&parts.headers),
            timezone: preferences.timezone.clone().unwrap_or_else(|| "UTC".to_owned()),
            statement_timeout: limits.statement_timeout.unwrap_or_default(),
            read_only: matches!(parts.method, Method::GET | Method::HEAD),
        };
        let mut plain_text = false;
        let body = if matches!(parts.method, Method::POST | Method::PATCH) {
            plain_text = body::check_type(&parts.headers, matches!(resource, Resource::Function(_)))?;
            // The schema decides who may write. Nothing large is read for callers who may not.
            let reads = !body::may_be_large(&parts.headers) || rest.may_write(&context, &schema, &resource, &parts.method).await?;
            let memory = rest.bodies.of(context.is_anonymous());
            if reads { body::read(body, rest.settings.max_body, rest.settings.body_within, memory).await? } else { Held::default() }
        } else {
            Held::default()
        };
        Ok(Self { method: parts.method, resource, schema, parameters, preferences, range, media, body, plain_text, limits, context })
    }

    pub(super) fn is_head(&self) -> bool {
        self.method == Method::HEAD
    }
}

fn resource(path: &str) -> Result<Resource, WireError> {
    let invalid = || WireError::new(StatusCode::NOT_FOUND, "PGRST125", "Invalid path specified in request URL");
    let mut segments = path.strip_prefix('/').unwrap_or(path).split('/');
    let (first, second, more) = (segments.next().unwrap_or_default(), segments.next(), segments.next());
    match (first, second, more) {
        ("rpc", Some(name), None) if !name.is_empty() => Ok(Resource::Function(decode_segment(name)?)),
        (name, None, None) if !name.is_empty() => Ok(Resource::Relation(decode_segment(name)?)),
        _ => Err(invalid()),
    }
}

fn check_method(method: &Method, resource: &Resource) -> Result<(), WireError> {
    let refused = |code, message| Err(WireError::new(StatusCode::METHOD_NOT_ALLOWED, code, message));
    match resource {
        Resource::Function(_) if !matches!(*method, Method::GET | Method::HEAD | Method::POST) => {
            refused("PGRST101", format!("Cannot use the {method} method on RPC"))
        }
        Resource::Relation(_) if !matches!(*method, Method::GET | Method::HEAD | Method::POST | Method::PATCH | Method::DELETE) => {
            refused("PGRST117", format!("Unsupported HTTP method: {method}"))
        }
        _ => Ok(()),
    }
}

fn schema(settings: &Settings, method: &Method, headers: &HeaderMap) -> Result<String, WireError> {
    let profile = if matches!(*method, Method::GET | Method::HEAD) { ACCEPT_PROFILE } else { CONTENT_PROFILE };
    let Some(asked) = headers.get(profile) else { return Ok(settings.schemas.first().cloned().unwrap_or_default()) };
    let asked = String::from_utf8_lossy(asked.as_bytes());
    settings.schemas.iter().find(|schema| **schema == asked).cloned().ok_or_else(|| {
        WireError::new(StatusCode::NOT_ACCEPTABLE, "PGRST106", format!("Invalid schema: {asked}"))
            .hint(format!("Only the following schemas are exposed: {}", settings.schemas.join(", ")))
    })
}

fn search_path(settings: &Settings, schema: &String) -> String {
    let quoted = |name: &String| format!("\"{}\"", name.replace('"', "\"\""));
    let others = settings.extra_search_path.iter().filter(|other| *other != schema);
    std::iter::once(schema).chain(others).map(quoted).collect::<Vec<_>>().join(", ")
}

/// Policies read the role from the claims. A key may lack it, so it is added.
fn claims_with_role(mut claims: Map<String, Value>, role: Role) -> String {
    claims.insert("role".to_owned(), role.name().into());
    Value::Object(claims).to_string()
}

fn headers_as_json(headers: &HeaderMap) -> String {
    let text = |value: &http::HeaderValue| Value::String(String::from_utf8_lossy(value.as_bytes()).into_owned());
    let headers: Map<String, Value> = headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect();
    Value::Object(headers).to_string()
}
