//! Who is calling: the project key says which project, and the bearer token who in it.

use futures_util::future::{BoxFuture, FutureExt as _};
use http::header::AUTHORIZATION;
use http::{HeaderMap, StatusCode};

use super::query::decode;
use crate::access::{Access, Caller};
use crate::wire_error::WireError;

/// What keys begin with that are looked up.
const OPAQUE: &str = "sb_";

/// Tells a caller by what a request carries: the project key in `apikey` (header or query string) and the bearer token.
/// Refusals are 401 in the shape of [`WireError`]: no or an unknown key, `PGRST301` for a token that is none of ours,
/// `PGRST303` for one whose time is over. A trait, because keys may also be kept where it takes a while to look.
pub trait Identify: Send + Sync + 'static {
    fn identify<'a>(&'a self, headers: &'a HeaderMap, query: Option<&'a str>) -> BoxFuture<'a, Result<Caller, WireError>>;
}

/// Keys that are tokens signed with the project's secret, and no others.
impl Identify for Access {
    fn identify<'a>(&'a self, headers: &'a HeaderMap, query: Option<&'a str>) -> BoxFuture<'a, Result<Caller, WireError>> {
        identify_with(self, headers, query, async |_| Ok(None)).boxed()
    }
}

/// Tells the caller. `look_up` knows whom an opaque key (`sb_…`) stands for.
pub async fn identify_with(
    access: &Access,
    headers: &HeaderMap,
    query: Option<&str>,
    look_up: impl AsyncFnOnce(&str) -> Result<Option<Caller>, WireError>,
) -> Result<Caller, WireError> {
    let key = project_key(headers, query)?;
    let holder = if key.starts_with(OPAQUE) { look_up(&key).await? } else { access.verify(&key).ok().filter(is_no_person) };
    let holder = holder.ok_or_else(|| unknown("Invalid API key", "Double check your Supabase `anon` or `service_role` API key."))?;
    match bearer(headers) {
        // The client sends the key as bearer while nobody is signed in; an opaque one is no token at all.
        Some(token) if token != key && !token.starts_with(OPAQUE) => Ok(access.verify(&token)?),
        _ => Ok(holder),
    }
}

/// A person's token opens what is theirs; it is no key of the project.
fn is_no_person(caller: &Caller) -> bool {
    matches!(caller, Caller::Token { claims, .. } if !claims.contains_key("sub"))
}

/// The project key of a request.
pub fn project_key(headers: &HeaderMap, query: Option<&str>) -> Result<String, WireError> {
    let header = headers.get("apikey").map(|value| String::from_utf8_lossy(value.as_bytes()).trim().to_owned());
    let from_query = || decode(query).ok()?.into_iter().find_map(|(name, value)| (name == "apikey").then_some(value));
    header
        .or_else(from_query)
        .filter(|key| !key.is_empty())
        .ok_or_else(|| unknown("No API key found in request", "No `apikey` request header or url param was found."))
}

/// The token of `Authorization: Bearer …`. Another scheme is for somebody before us.
pub fn bearer(headers: &HeaderMap) -> Option<String> {
    let value = String::from_utf8_lossy(headers.get(AUTHORIZATION)?.as_bytes()).into_owned();
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().to_owned()).filter(|token| !token.is_empty())
}

fn unknown(message: &str, hint: &str) -> WireError {
    WireError::new(StatusCode::UNAUTHORIZED, "PGRST302", message).hint(hint)
}
