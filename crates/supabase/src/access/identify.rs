//! Who is calling: the project key identifies the project, and the bearer token the user in it.

use futures_util::future::{BoxFuture, FutureExt as _};
use gleaner_http::{Caller, WireError};
use http::header::AUTHORIZATION;
use http::{HeaderMap, StatusCode};

use super::{Access, is_opaque};

/// Identifies a caller by what a request carries: the project key in `apikey` (header or query string) and the bearer token.
/// Refusals are 401 in the shape of [`WireError`]: a missing or unknown key, `PGRST301` for a token that we did not sign,
/// `PGRST303` for an expired one. It is a trait because keys may also be kept where a lookup takes time.
pub trait Identify: Send + Sync + 'static {
    fn identify<'a>(&'a self, headers: &'a HeaderMap, query: Option<&'a str>) -> BoxFuture<'a, Result<Caller, WireError>>;
}

/// Accepts only keys that are tokens signed with the project's secret.
impl Identify for Access {
    fn identify<'a>(&'a self, headers: &'a HeaderMap, query: Option<&'a str>) -> BoxFuture<'a, Result<Caller, WireError>> {
        identify_with(self, headers, query, async |_| Ok(None)).boxed()
    }
}

/// Identifies the caller. `look_up` finds the caller of an opaque key (`sb_…`).
pub(super) async fn identify_with(
    access: &Access,
    headers: &HeaderMap,
    query: Option<&str>,
    look_up: impl AsyncFnOnce(&str) -> Result<Option<Caller>, WireError>,
) -> Result<Caller, WireError> {
    let key = project_key(headers, query)?;
    let holder = if is_opaque(&key) { look_up(&key).await? } else { access.verify(&key).ok().filter(is_no_person) };
    let holder = holder.ok_or_else(|| unknown("Invalid API key", "Double check your Supabase `anon` or `service_role` API key."))?;
    match bearer(headers) {
        // The client sends the key as the bearer token while no user is signed in. An opaque key is not a token at all.
        Some(token) if token != key && !is_opaque(&token) => Ok(access.verify(&token)?),
        _ => Ok(holder),
    }
}

/// A user's token gives access to what that user may see. It is not a project key.
fn is_no_person(caller: &Caller) -> bool {
    matches!(caller, Caller::Token { claims, .. } if !claims.contains_key("sub"))
}

/// The project key of a request.
pub(super) fn project_key(headers: &HeaderMap, query: Option<&str>) -> Result<String, WireError> {
    let header = headers.get("apikey").map(|value| String::from_utf8_lossy(value.as_bytes()).trim().to_owned());
    let from_query = || {
        let mut pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
        pairs.find_map(|(name, value)| (name == "apikey").then(|| value.into_owned()))
    };
    header
        .or_else(from_query)
        .filter(|key| !key.is_empty())
        .ok_or_else(|| unknown("No API key found in request", "No `apikey` request header or url param was found."))
}

/// The token of `Authorization: Bearer …`. Another scheme is meant for a proxy in front of us.
pub(super) fn bearer(headers: &HeaderMap) -> Option<String> {
    let value = String::from_utf8_lossy(headers.get(AUTHORIZATION)?.as_bytes()).into_owned();
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().to_owned()).filter(|token| !token.is_empty())
}

fn unknown(message: &str, hint: &str) -> WireError {
    WireError::new(StatusCode::UNAUTHORIZED, "PGRST302", message).hint(hint)
}
