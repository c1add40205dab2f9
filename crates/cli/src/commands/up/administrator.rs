//! The administrator of the first start.

use anyhow::Result;
use gleaner::migrate;
use gleaner_supabase::auth::people::{Credentials, Trouble, add_first_administrator};
use serde_json::{Value, json};

use crate::App;
use crate::output::{BOLD, paint};

/// Makes an administrator where there is no user yet. The caller must print the credentials: they are not stored in clear.
pub(super) async fn make(url: &str) -> Result<Option<Credentials>> {
    let client = gleaner::connect(url).await?;
    // Two starts at once: the other one is still migrating, and will ask when it has done so.
    if migrate::status(&client).await?.iter().any(|step| !step.state.is_done()) {
        return Ok(None);
    }
    // Users belong to the crm system; without it there is no sign-in.
    if !migrate::systems(&client).await?.contains(&"crm") {
        return Ok(None);
    }
    add_first_administrator(&client).await.map_err(|trouble| match trouble {
        Trouble::Database(error) => error.into(),
        other => other.into(),
    })
}

/// For scripts; null when there was a user already.
pub(super) fn as_json(made: Option<&Credentials>) -> Value {
    made.map_or(Value::Null, |made| json!({"email": made.email, "password": made.password.reveal()}))
}

/// For people, also with --quiet: the password is shown only once.
pub(super) fn tell(app: &App, made: Option<&Credentials>) {
    if let Some(made) = made {
        let password = paint(BOLD, made.password.reveal());
        app.out.listing(format!("  admin   {}, password {password} (shown once; `gleaner users passwd` sets another)", made.email));
    }
}
