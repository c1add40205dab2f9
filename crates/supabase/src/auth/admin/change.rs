//! `POST /admin/users` and `PUT /admin/users/{id}`.

use axum::Json;
use axum::extract::{Path, State};
use serde::Deserialize;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::auth::Auth;
use crate::auth::bearer::Administrator;
use crate::auth::body::Body;
use crate::auth::error::{Failure, Result};
use crate::auth::password::Password;
use crate::auth::strength;
use crate::auth::user::{NewUser, address, email_exists, storable};

#[derive(Deserialize)]
pub(super) struct ChangeRequest {
    id: Option<Uuid>,
    email: Option<String>,
    phone: Option<String>,
    role: Option<String>,
    password: Option<Password>,
    password_hash: Option<String>,
    #[serde(default)]
    email_confirm: bool,
    user_metadata: Option<Map<String, Value>>,
    app_metadata: Option<Map<String, Value>>,
    ban_duration: Option<String>,
}

impl ChangeRequest {
    /// Fields that we do not store are refused rather than dropped.
    fn check(&self) -> Result<()> {
        if self.phone.as_deref().is_some_and(|phone| !phone.is_empty()) {
            return Err(Failure::invalid("Phone numbers are not kept here"));
        }
        if self.role.as_deref().is_some_and(|role| role != "authenticated" && !role.is_empty()) {
            return Err(Failure::invalid("Users have the role authenticated; the service key has service_role"));
        }
        Ok(())
    }

    /// The hash to store. A hash in the request, as imported from another project, must be of a kind we can check.
    async fn hash(&self, auth: &Auth, email: &str) -> Result<Option<String>> {
        match (&self.password, &self.password_hash) {
            (Some(_), Some(_)) => Err(Failure::invalid("Only a password or a password hash should be provided")),
            (None, Some(hash))
                if (hash.starts_with("$2") || hash.starts_with("$argon2")) && hash.bytes().all(|byte| byte.is_ascii_graphic()) =>
            {
                Ok(Some(hash.clone()))
            }
            (None, Some(_)) => Err(Failure::invalid("A password hash is bcrypt or argon2 in its usual form")),
            (Some(password), None) => {
                strength::judge(password, email, &auth.0.settings.password)?;
                Ok(Some(auth.0.hasher.hash(password.clone()).await?))
            }
            (None, None) => Ok(None),
        }
    }

    /// The ban in the form that `gleaner.change_user` takes.
    fn ban(&self) -> Result<Option<Value>> {
        let Some(text) = self.ban_duration.as_deref().filter(|text| !text.is_empty()) else { return Ok(None) };
        if text == "none" {
            return Ok(Some("none".into()));
        }
        let seconds = seconds(text).ok_or_else(|| Failure::invalid("Invalid format for ban_duration: write none, or like 24h or 1h30m"))?;
        Ok(Some(format!("{seconds} seconds").into()))
    }
}

/// Parses a duration as Go writes it: `300ms`, `1.5h`, `2h45m`. At most a thousand years, which PostgreSQL can add.
fn seconds(text: &str) -> Option<f64> {
    let mut rest = text;
    let mut total = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(digits);
        let unit_end = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_end);
        let factor = match unit {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "us" | "µs" => 1e-6,
            "ns" => 1e-9,
            _ => return None,
        };
        total += number.parse::<f64>().ok()? * factor;
        rest = tail;
    }
    (!text.is_empty() && total < 3.2e10).then_some(total)
}

pub(super) async fn create(State(auth): State<Auth>, _: Administrator, Body(wanted): Body<ChangeRequest>) -> Result<Json<Value>> {
    wanted.check()?;
    let ban = wanted.ban()?;
    let email = address(wanted.email.as_deref().unwrap_or_default())?;
    let hash = wanted.hash(&auth, &email).await?;
    let confirmed = wanted.email_confirm;
    let new = NewUser {
        email: &email,
        hash,
        user_metadata: storable(wanted.user_metadata.unwrap_or_default())?,
        app_metadata: storable(wanted.app_metadata.unwrap_or_default())?,
        confirmed,
        link: confirmed,
        id: wanted.id,
    };
    let user = auth.add_user(&new).await?.ok_or_else(email_exists)?;
    match ban {
        Some(ban) => auth.change_user(user, Map::from_iter([("ban".to_owned(), ban)]).into(), None).await.map(Json),
        None => auth.show_user(user).await.map(Json),
    }
}

pub(super) async fn update(
    State(auth): State<Auth>,
    _: Administrator,
    Path(user): Path<String>,
    Body(wanted): Body<ChangeRequest>,
) -> Result<Json<Value>> {
    wanted.check()?;
    let user = super::id(&user)?;
    let known = auth.show_user(user).await?;
    let mut changes = Map::new();
    let email = match &wanted.email {
        Some(email) => {
            let email = address(email)?;
            changes.insert("email".into(), email.clone().into());
            email
        }
        None => known["email"].as_str().unwrap_or_default().to_owned(),
    };
    if let Some(hash) = wanted.hash(&auth, &email).await? {
        changes.insert("password".into(), hash.into());
    }
    if wanted.email_confirm {
        changes.insert("email_confirm".into(), true.into());
    }
    if let Some(ban) = wanted.ban()? {
        changes.insert("ban".into(), ban);
    }
    for (name, value) in [("user_metadata", wanted.user_metadata), ("app_metadata", wanted.app_metadata)] {
        if let Some(value) = value {
            changes.insert(name.into(), storable(value)?);
        }
    }
    auth.change_user(user, changes.into(), None).await.map(Json)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_read_as_go_writes_them() {
        assert_eq!(seconds("24h"), Some(86_400.0));
        assert_eq!(seconds("1h30m"), Some(5400.0));
        assert_eq!(seconds("1.5h"), Some(5400.0));
        assert_eq!(seconds("300ms"), Some(0.3));
        for bad in ["", "h", "24", "24x", "-1h", "1h 30m", "1..5h", "99999999999h"] {
            assert_eq!(seconds(bad), None, "{bad}");
        }
    }
}
