//! All supported signature presets, one file each.

pub mod basic;
pub mod bearer;
pub mod hub_sha256;
pub mod mailgun;
pub mod none;
pub mod raw_hex;
pub mod sendgrid_ecdsa;
pub mod slack_v0;
pub mod standard_webhooks;
pub mod timestamped;

mod proof;

use crate::scheme::Scheme;

/// All of them, in the order in which they are listed to users.
pub fn all() -> &'static [&'static dyn Scheme] {
    &[
        &standard_webhooks::StandardWebhooks,
        &hub_sha256::HubSha256,
        &timestamped::Timestamped,
        &slack_v0::SlackV0,
        &raw_hex::RawHex,
        &mailgun::Mailgun,
        &sendgrid_ecdsa::SendgridEcdsa,
        &bearer::Bearer,
        &basic::Basic,
        &none::None,
    ]
}

pub fn find(code: &str) -> Option<&'static dyn Scheme> {
    all().iter().copied().find(|scheme| scheme.code() == code)
}
