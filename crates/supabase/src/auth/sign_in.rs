//! `POST /token?grant_type=password`.

use axum::extract::{FromRequest as _, Request};
use gleaner_http::database::Error;
use serde::Deserialize;
use serde_json::Value;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::Auth;
use super::body::Body;
use super::error::{Failure, Result};
use super::password::{Password, is_current};
use super::session::Device;

#[derive(Deserialize)]
struct Credentials {
    email: Option<String>,
    phone: Option<String>,
    password: Option<Password>,
}

pub(super) async fn grant(auth: &Auth, device: &Device, request: Request) -> Result<Value> {
    let Body(credentials) = Body::<Credentials>::from_request(request, auth).await?;
    if credentials.email.is_none() && credentials.phone.is_some() {
        return Err(Failure::new(422, "phone_provider_disabled", "Phone logins are disabled"));
    }
    let (Some(email), Some(password)) = (credentials.email, credentials.password) else {
        return Err(Failure::invalid("missing email or password"));
    };
    let email = plain_address(&email);
    let attempt = auth.0.limits.try_password(device.network(), &email)?;
    let (user, kept) = find(auth, &email).await?;
    // The same work is done whether or not there is such a user with a password, so that the time taken reveals nothing either.
    let fits = match auth.0.hasher.check(password.clone(), kept.clone()).await {
        Ok(fits) => fits,
        Err(busy) => {
            // The password was not checked, so it does not count as a wrong guess.
            attempt.does_not_count();
            return Err(busy.into());
        }
    };
    let (true, Some(user), Some(kept)) = (fits, user, kept) else { return Err(Failure::credentials()) };
    attempt.does_not_count();
    let session = auth.open_session(user, Some(&kept), "password", device).await?;
    if !is_current(&kept) {
        renew(auth, user, &kept, password).await?;
    }
    Ok(session)
}

/// An address in the form in which it is stored and compared.
pub(super) fn plain_address(email: &str) -> String {
    email.trim().to_lowercase()
}

/// The user of an address and its hash. Text that cannot be stored has no user.
async fn find(auth: &Auth, email: &str) -> Result<(Option<Uuid>, Option<String>)> {
    let sendable = if email.contains('\0') { "" } else { email };
    let row = auth
        .row(
            "find the user",
            "select u.id, u.encrypted_password from (select) as always left join auth.users as u on u.email = $1",
            &[(&sendable, Type::TEXT)],
        )
        .await?;
    Ok((row.get(0), row.get::<_, Option<String>>(1).filter(|hash| !hash.is_empty())))
}

/// Replaces a hash with older parameters while the password is available, unless it was changed meanwhile.
async fn renew(auth: &Auth, user: Uuid, old: &str, password: Password) -> Result<()> {
    let hash = auth.0.hasher.hash(password).await?;
    let client = auth.0.pool.get().await.map_err(|error| Error::Connect(error.to_string()))?;
    client
        .query_typed(
            "update auth.users set encrypted_password = $1 where id = $2 and encrypted_password = $3",
            &[(&hash, Type::TEXT), (&user, Type::UUID), (&old, Type::TEXT)],
        )
        .await
        .map_err(Error::doing("renew a hash"))?;
    Ok(())
}
