//! Fields that were moved into one another.
//!
//! The signature covers names and values joined without separators. `Body=hi&From=%2B1415…` and `Body=hiFrom%2B1415…` have the same
//! signature, so an authentic form can be turned into another one that is also accepted. Such a form is missing a field whose name
//! is found where the joined text would have it.

use super::Webhook;
use super::fields::{Fields, Source};
use crate::Refusal;

/// Fields of messages that change what is stored. No word that people write: a text may contain any of those.
const OF_MESSAGES: &[&str] = &[
    "AccountSid",
    "ApiVersion",
    "Body",
    "ButtonPayload",
    "ButtonText",
    "ConversationSid",
    "ExternalUserId",
    "From",
    "FromCity",
    "FromCountry",
    "FromState",
    "FromZip",
    "MediaContentType0",
    "MediaUrl0",
    "MessageSid",
    "MessageStatus",
    "NumMedia",
    "NumSegments",
    "ProfileName",
    "SmsMessageSid",
    "SmsSid",
    "SmsStatus",
    "To",
    "ToCity",
    "ToCountry",
    "ToState",
    "ToZip",
    "WaId",
];

/// Fields of calls and recordings, which have no free text.
const OF_CALLS: &[&str] = &[
    "AccountSid",
    "ApiVersion",
    "CallSid",
    "CallStatus",
    "Called",
    "Caller",
    "ConferenceSid",
    "Direction",
    "From",
    "RecordingDuration",
    "RecordingSid",
    "RecordingStatus",
    "RecordingUrl",
    "To",
];

/// Refuses a form in which a known field is folded into another one.
pub(super) fn refuse_folded(fields: &Fields, webhook: Webhook) -> Result<(), Refusal> {
    let known = match webhook {
        Webhook::Message | Webhook::Conversation => OF_MESSAGES,
        Webhook::Recording | Webhook::Call => OF_CALLS,
        Webhook::Unknown => return Ok(()),
    };
    if fields.source != Source::Form {
        // The signature covers JSON and URLs byte by byte.
        return Ok(());
    }
    let mut pairs: Vec<(&str, &str)> = fields.pairs().iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    pairs.sort_unstable();
    pairs.dedup();
    let missing: Vec<&str> = known.iter().copied().filter(|known| pairs.iter().all(|(name, _)| name != known)).collect();
    for (at, (name, value)) in pairs.iter().enumerate() {
        let next = pairs.get(at + 1).map(|(next, _)| *next);
        let moved = |missing: &&&str| !known.contains(name) && is_moved(missing, name, value);
        if let Some(folded) = missing.iter().find(|missing| moved(missing) || is_inside(missing, name, value, next)) {
            let name: String = name.chars().filter(char::is_ascii_alphanumeric).take(40).collect();
            return Err(Refusal::Malformed(format!("{folded} is missing and is found inside {name}")));
        }
    }
    Ok(())
}

/// Whether the border between name and value was moved: `Bod=yHello`, `BodyHel=lo`.
fn is_moved(missing: &str, name: &str, value: &str) -> bool {
    if name.starts_with(missing) {
        return true;
    }
    missing.strip_prefix(name).is_some_and(|rest| !name.is_empty() && value.starts_with(rest))
}

/// Whether the missing field would stand between this one and the next, and does: inside the value.
fn is_inside(missing: &str, name: &str, value: &str, next: Option<&str>) -> bool {
    name < missing && next.is_none_or(|next| missing < next) && value.contains(missing)
}

#[cfg(test)]
mod tests;
