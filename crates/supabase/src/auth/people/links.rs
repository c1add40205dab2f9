//! Links that identify a user: an invitation, a forgotten password, a confirmed address.

use std::time::Duration;

use gleaner_http::database::Error;
use tokio_postgres::GenericClient;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::{Trouble, find, must_serve};
use crate::auth::settings::Settings;
use crate::auth::token::{code_hash, new_code, new_link_token};
use crate::auth::user::address;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkKind {
    Invite,
    Recovery,
    Signup,
    /// Sign-in without a password, by a link or a code.
    Magic,
}

impl LinkKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Invite => "invite",
            Self::Recovery => "recovery",
            Self::Signup => "signup",
            Self::Magic => "magiclink",
        }
    }

    /// What the database calls it. A confirmed address and a sign-in by mail are the same proof: that its holder reads the mail.
    pub(in crate::auth) fn stored(self) -> &'static str {
        if self == Self::Magic { Self::Signup.name() } else { self.name() }
    }

    pub(in crate::auth) fn named(name: &str) -> Option<Self> {
        // supabase-js calls a sign-in by code `email`.
        let name = if name == "email" { "magiclink" } else { name };
        [Self::Invite, Self::Recovery, Self::Signup, Self::Magic].into_iter().find(|kind| kind.name() == name)
    }

    pub(in crate::auth) fn asks_for_password(self) -> bool {
        matches!(self, Self::Invite | Self::Recovery)
    }

    /// The URL of the link: a page that asks for what is still needed. The web interface has those that ask for a password; what
    /// follows the `#` is not sent with the request for the page, and so stands in no log.
    pub fn url(self, base: &str, token: &str) -> String {
        let base = base.trim_end_matches('/');
        match self {
            Self::Invite => return format!("{base}/invite#token={token}"),
            Self::Recovery => return format!("{base}/reset#token={token}"),
            Self::Signup | Self::Magic => {}
        }
        let query = form_urlencoded::Serializer::new(String::new()).append_pair("type", self.name()).append_pair("token", token).finish();
        format!("{base}/auth/v1/link?{query}")
    }
}

/// The token of a new link. It is returned here and not stored.
pub async fn issue(client: &impl GenericClient, user: Uuid, kind: LinkKind, valid: Duration) -> gleaner_http::database::Result<String> {
    let (token, hash) = new_link_token();
    remember(client, user, kind, &hash, valid).await?;
    Ok(token)
}

/// A new code of six digits, which is good for this address and no other.
pub(in crate::auth) async fn issue_code(
    client: &impl GenericClient,
    user: Uuid,
    email: &str,
    kind: LinkKind,
    valid: Duration,
) -> gleaner_http::database::Result<String> {
    let code = new_code();
    remember(client, user, kind, &code_hash(email, &code), valid).await?;
    Ok(code)
}

async fn remember(
    client: &impl GenericClient,
    user: Uuid,
    kind: LinkKind,
    hash: &str,
    valid: Duration,
) -> gleaner_http::database::Result<()> {
    client
        .query_typed(
            "select gleaner.issue_token($1, $2, $3, $4 * interval '1 second')",
            &[(&user, Type::UUID), (&kind.stored(), Type::TEXT), (&hash, Type::TEXT), (&valid.as_secs_f64(), Type::FLOAT8)],
        )
        .await
        .map(drop)
        .map_err(Error::doing("issue a link"))
}

/// Adds a user without a password, and returns the link for setting one. A user who never set one gets a new link.
pub async fn invite(client: &impl GenericClient, email: &str, administrator: bool, base: &str) -> Result<String, Trouble> {
    must_serve(client).await?;
    let email = address(email)?;
    let rows = client
        .query_typed(
            "select coalesce(gleaner.add_user($1, null, null, null, true, $2, true),
                             (select id from auth.users where email = $1 and encrypted_password is null))",
            &[(&email, Type::TEXT), (&administrator, Type::BOOL)],
        )
        .await
        .map_err(Error::doing("add the user"))?;
    let Some(user) = rows[0].get::<_, Option<Uuid>>(0) else { return Err(Trouble::Taken(email)) };
    let token = issue(client, user, LinkKind::Invite, Settings::new(base).invite_valid).await?;
    Ok(LinkKind::Invite.url(base, &token))
}

/// A link for setting a new password.
pub async fn reset(client: &impl GenericClient, email: &str, base: &str) -> Result<String, Trouble> {
    let (user, _) = find(client, email).await?;
    let token = issue(client, user, LinkKind::Recovery, Settings::new(base).link_valid).await?;
    Ok(LinkKind::Recovery.url(base, &token))
}
