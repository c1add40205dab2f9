//! What a response means for the caller: retry, or change something.

use gleaner::Error;
use serde_json::Value;

/// How to handle a failed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// The same call may succeed a moment later.
    pub transient: bool,
    /// What a person can do about it, if a retry does not help.
    pub advice: Option<&'static str>,
}

const LATER: Verdict = Verdict { transient: true, advice: None };

const fn never(advice: &'static str) -> Verdict {
    Verdict { transient: false, advice: Some(advice) }
}

/// Classifies a failure by its HTTP status (none: there was no response), the code in its body (PostgREST's, GoTrue's, or an
/// SQLSTATE) and whether the token that was sent can be renewed.
pub fn classify(status: Option<u16>, code: Option<&str>, renewable: bool) -> Verdict {
    // Refused, reset, timed out, name not resolved, cut off: the network comes back.
    let Some(status) = status else { return LATER };
    match code.unwrap_or_default() {
        // Serialization failures and deadlocks, lock timeouts, a database that is unreachable or shutting down.
        "40001" | "40P01" | "55P03" | "55006" | "PGRST000" | "PGRST001" | "PGRST002" | "PGRST003" => return LATER,
        code if ["08", "53", "57"].iter().any(|class| code.len() == 5 && code.starts_with(class)) => return LATER,
        "PGRST301" | "PGRST303" | "bad_jwt" if renewable => return LATER,
        "PGRST106" => {
            return never(
                "the server does not show the schema gleaner; run `gleaner migrate --supabase`, or add it in the project's API settings",
            );
        }
        "PGRST202" | "PGRST205" | "42883" | "42P01" | "P0002" => {
            return never("there is no such queue; run `gleaner migrate --supabase` there, and look for the name in `gleaner queues`");
        }
        "refresh_token_not_found" | "refresh_token_already_used" | "session_expired" | "session_not_found" | "user_banned" => {
            return never("the session has ended; run `gleaner agent login`");
        }
        "invalid_credentials" => return never("check the address and the password"),
        "email_not_confirmed" => return never("follow the link in the mail that confirms the address, then sign in again"),
        _ => {}
    }
    match status {
        408 | 425 | 429 | 500.. => LATER,
        401 => never(
            "the key is not good here; check SUPABASE_URL and SUPABASE_ANON_KEY (`gleaner status -o env` prints ours), or sign in again with `gleaner agent login`",
        ),
        403 => {
            never("it is not for this key or person; sign in as a member of the team, or use a key made by `gleaner keys add --queue …`")
        }
        404 => never("check the URL: nothing of ours answers there"),
        413 => never("the result is too large for one request; store it elsewhere and return where"),
        300..=399 => never("the address leads elsewhere; give the URL it leads to"),
        _ => Verdict { transient: false, advice: None },
    }
}

/// The error for an unsuccessful response: its message, and what to do.
pub(super) fn refused(act: &str, status: u16, body: &Value, renewable: bool) -> Error {
    let text = |name: &str| body.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    // GoTrue uses three different fields for the message.
    let code = text("code").or_else(|| text("error_code"));
    let message = text("message").or_else(|| text("msg")).or_else(|| text("error_description")).or_else(|| text("error"));
    let verdict = classify(Some(status), code, renewable);
    let mut response = message.map_or_else(|| format!("the server answered {status}"), |message| format!("{message} ({status})"));
    for more in [text("details"), text("hint"), verdict.advice].into_iter().flatten() {
        response.push_str("\n  ");
        response.push_str(more);
    }
    Error::Remote { act: act.into(), message: response, status: Some(status), code: code.map(str::to_owned), transient: verdict.transient }
}

/// The error of a call that got no response, or only part of one.
pub(super) fn unanswered(act: &str, error: &reqwest::Error) -> Error {
    // The cause is at the end of the chain. The URL may contain a key, so it is left out.
    let mut message = if error.is_timeout() { "timed out".to_owned() } else { "no answer".to_owned() };
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        message = format!("{message}: {inner}");
        source = inner.source();
    }
    Error::Remote { act: act.into(), message, status: None, code: None, transient: !error.is_builder() }
}

#[cfg(test)]
mod tests;
