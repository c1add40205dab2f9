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
mod tests {
    use super::*;

    #[test]
    fn transient_errors_are_distinguished_from_permanent_ones() {
        for (status, code, renewable) in [
            (None, None, false),
            (Some(408), None, false),
            (Some(429), Some("over_request_rate_limit"), false),
            (Some(500), Some("XX000"), false),
            (Some(500), Some("40001"), false),
            (Some(409), Some("40P01"), false),
            (Some(400), Some("55P03"), false),
            (Some(502), None, false),
            (Some(503), Some("PGRST001"), false),
            (Some(504), Some("PGRST003"), false),
            (Some(500), Some("57014"), false),
            (Some(522), None, false),
            (Some(540), None, false),
            (Some(401), Some("PGRST301"), true),
            (Some(401), Some("PGRST303"), true),
            (Some(403), Some("bad_jwt"), true),
        ] {
            assert!(classify(status, code, renewable).transient, "{status:?} {code:?}");
        }
        for (status, code, renewable, says) in [
            (401, Some("PGRST301"), false, "SUPABASE_ANON_KEY"),
            (401, Some("PGRST303"), false, "SUPABASE_ANON_KEY"),
            (401, Some("PGRST302"), true, "SUPABASE_ANON_KEY"),
            (401, None, true, "SUPABASE_ANON_KEY"),
            (403, Some("42501"), true, "gleaner keys add"),
            (404, Some("P0002"), true, "gleaner queues"),
            (404, Some("PGRST202"), true, "migrate --supabase"),
            (404, None, true, "URL"),
            (406, Some("PGRST106"), true, "migrate --supabase"),
            (400, Some("refresh_token_already_used"), true, "agent login"),
            (400, Some("invalid_credentials"), true, "password"),
            (301, None, true, "leads"),
            (413, None, true, "too large"),
        ] {
            let verdict = classify(Some(status), code, renewable);
            assert!(!verdict.transient, "{status} {code:?}");
            assert!(verdict.advice.is_some_and(|advice| advice.contains(says)), "{status} {code:?}: {verdict:?}");
        }
        assert_eq!(classify(Some(400), Some("22P02"), true), Verdict { transient: false, advice: None });
        assert_eq!(classify(Some(422), None, true), Verdict { transient: false, advice: None });
    }

    #[test]
    fn an_error_keeps_the_servers_message_and_says_what_to_do() {
        let body = serde_json::json!({"code": "42501", "message": "this key may not work the queue jobs", "details": null, "hint": "A key is made for its queues"});
        let response = refused("claim in jobs", 403, &body, false).to_string();
        assert!(response.starts_with("claim in jobs: this key may not work the queue jobs (403)"), "{response}");
        assert!(response.contains("A key is made for its queues") && response.contains("gleaner keys add"), "{response}");
    }
}
