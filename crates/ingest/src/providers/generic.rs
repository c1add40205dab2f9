//! Generic: any sender that can sign by one of our presets, or that the operator chose to trust without a signature.

mod envelope;
mod shape;

use http::{HeaderMap, HeaderValue, Method, StatusCode};
use serde_json::{Value, json};

use crate::provider::{Message, Sample, Setting, Verified};
use crate::refusal::Why;
use crate::scheme::{Keys, Scheme};
use crate::schemes::{self, basic};
use crate::{Answer, Channel, Inbound, Provider, Refusal, Request, draft, providers};
use shape::Shape;

#[derive(Debug)]
pub struct Generic;

const SCHEMES: &str = "how the sender signs: standard-webhooks, hub-sha256 (the default when there is a secret), timestamped, \
    slack-v0, raw-hex, mailgun, sendgrid-ecdsa, bearer, basic or none";

const SETTINGS: &[Setting] = &[
    Setting { name: "scheme", secret: false, required: false, about: SCHEMES },
    Setting { name: "secret", secret: true, required: false, about: "what the scheme signs or compares with" },
    Setting { name: "header", secret: false, required: false, about: "header of the signature, when it is not the scheme's usual one" },
    Setting { name: "basic_auth.username", secret: false, required: false, about: "user name, for the scheme basic" },
    Setting { name: "basic_auth.password", secret: true, required: false, about: "password, for the scheme basic" },
    Setting { name: "body_limit", secret: false, required: false, about: "bytes of body to accept, default 1048576" },
];

const BODY_LIMIT: usize = 1024 * 1024;
/// The largest limit a channel may set: the body is held in memory.
const LARGEST_BODY_LIMIT: u64 = 64 * 1024 * 1024;

/// The scheme of a channel. A channel with a secret and no scheme was created for a signature in `X-Webhook-Signature`. A channel
/// with neither refuses every request: relying on the key alone must be explicit.
fn scheme(channel: &Channel) -> Result<&'static dyn Scheme, Why> {
    match channel.settings.get("scheme") {
        None | Some(Value::Null) if channel.settings.text("secret").is_some() => Ok(&schemes::hub_sha256::HubSha256),
        _ => channel.settings.text("scheme").and_then(schemes::find).ok_or(Why::Unconfigured),
    }
}

fn keys<'a>(channel: &'a Channel, scheme: &dyn Scheme) -> Keys<'a> {
    let secrets = channel.settings.both("secret").into_iter().map(str::to_owned);
    let pairs = if scheme.code() == "basic" { basic::pairs(&channel.settings) } else { Vec::new() };
    Keys::new(secrets.chain(pairs)).with_header(channel.settings.text("header"))
}

/// A limit, written as a number or as text.
fn body_limit(channel: &Channel) -> Option<u64> {
    match channel.settings.get("body_limit")? {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

impl Provider for Generic {
    fn code(&self) -> &'static str {
        "generic"
    }

    fn title(&self) -> &'static str {
        "Generic"
    }

    fn settings(&self) -> &'static [Setting] {
        SETTINGS
    }

    fn check(&self, channel: &Channel) -> Vec<String> {
        let mut wrong = match scheme(channel) {
            Ok(scheme) => scheme.check(&keys(channel, scheme)),
            Err(_) => {
                let known: Vec<_> = schemes::all().iter().map(|scheme| scheme.code()).collect();
                let problem = if channel.settings.text("scheme").is_some() { "is no scheme we know" } else { "is missing" };
                vec![format!("scheme {problem}: write one of {}; none trusts the key in the URL alone", known.join(", "))]
            }
        };
        wrong.extend(providers::not_text(channel, &["scheme", "secret", "header"]));
        let given = channel.settings.get("body_limit").is_some();
        if given && !body_limit(channel).is_some_and(|limit| (1..=LARGEST_BODY_LIMIT).contains(&limit)) {
            wrong.push(format!("body_limit is no number of bytes from 1 to {LARGEST_BODY_LIMIT}"));
        }
        wrong
    }

    fn cautions(&self, channel: &Channel) -> Vec<String> {
        scheme(channel).ok().and_then(Scheme::caution).map(str::to_owned).into_iter().collect()
    }

    fn body_limit(&self, channel: &Channel) -> usize {
        let limit = body_limit(channel).filter(|limit| *limit > 0).map(|limit| limit.min(LARGEST_BODY_LIMIT));
        limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(BODY_LIMIT)
    }

    fn verify(&self, channel: &Channel, request: &Request<'_>) -> Result<Verified, Refusal> {
        let scheme = scheme(channel)?;
        scheme.verify(&keys(channel, scheme), request)
    }

    fn normalise(&self, channel: &Channel, request: &Request<'_>) -> Result<Inbound, Refusal> {
        let scheme = scheme(channel)?;
        let shape = Shape::read(request)?;
        if scheme.code() == "slack-v0"
            && let Some(challenge) = shape.slack_challenge()
        {
            return Ok(Inbound::Reply(Answer::text(StatusCode::OK, "text/plain; charset=utf-8", challenge)));
        }
        let (event, own_id) = envelope::read(&shape, channel)?;
        let id = scheme.signed_id(request).filter(|id| !id.is_empty()).or(own_id).unwrap_or_else(|| draft::digest(request.body));
        Ok(Inbound::Events { events: vec![draft::finished(event, &id)], remember: Vec::new() })
    }

    fn compose(&self, channel: &Channel, url: &str, unix_now: i64, message: &Message<'_>) -> Result<Sample, String> {
        let scheme = scheme(channel).map_err(|why| why.to_string())?;
        let mut body = json!({
            "type": "note",
            "content": message.text(),
            "subject": message.subject(),
            "external_id": format!("gleaner-sample-{}", message.id(unix_now)),
        });
        if let Some(from) = message.email {
            body["from"] = json!(from);
        }
        let body = body.to_string().into_bytes();
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static("application/json"));
        let keys = keys(channel, scheme);
        // A scheme that signs inside the body gets a body built for it.
        let body = if scheme.code() == "mailgun" { schemes::mailgun::signed_body(&keys, unix_now, &body)? } else { body };
        scheme.sign(&keys, unix_now, &mut headers, &body)?;
        Ok(Sample { method: Method::POST, url: url.to_owned(), headers, body })
    }
}
