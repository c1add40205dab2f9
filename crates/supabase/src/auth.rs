//! `/auth/v1`: sign-in for a database of our own. On a Supabase project its own service does that.
//!
//! # Layout
//!
//! - One file per operation: [`sign_in`], [`refresh`], [`user`], [`logout`], [`signup`], [`recover`], [`verify`], [`invite`],
//!   [`link`] (the page behind a printed link), [`admin`], [`health`]. The operations themselves are SQL functions such as
//!   `gleaner.open_session`; these files handle HTTP.
//! - [`project_key`] requires the project key, [`bearer`] a token; [`error`] has the two forms an error can take.
//! - [`password`] hashes passwords, [`strength`] refuses weak ones, [`limits`] slows guessing down, [`token`] signs.
//! - [`people`] and [`api_keys`] are used by the command line.

mod admin;
pub mod api_keys;
mod bearer;
mod body;
mod client;
mod error;
mod health;
mod invite;
mod limits;
mod link;
mod logout;
mod mail;
mod otp;
mod password;
pub mod people;
mod project_key;
mod ready;
mod recover;
mod refresh;
mod session;
mod settings;
mod sign_in;
mod signup;
mod strength;
mod token;
mod user;
mod verify;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post};
use gleaner_http::database::{Error, Pool, Result};

use crate::access::{Access, ApiKeys};

pub use client::ClientAddress;
pub use mail::Mailer;
pub use password::{Hasher, Password};
pub use people::{Credentials, first_administrator};
pub use ready::routes_when_ready;
pub use settings::{Settings, Signup};
pub use strength::Policy;

/// The state that the handlers share.
#[derive(Debug, Clone)]
pub struct Auth(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    pool: Pool,
    settings: Settings,
    signer: token::Signer,
    hasher: Hasher,
    limits: limits::Limits,
    keys: ApiKeys,
}

impl Auth {
    /// Returns `None` where users are managed elsewhere: on a Supabase project, whose own service answers.
    pub async fn open(pool: Pool, access: Access, settings: Settings) -> Result<Option<Self>> {
        let client = pool.get().await.map_err(|error| Error::Connect(error.to_string()))?;
        let rows = client.query_typed("select gleaner.serves_auth()", &[]).await.map_err(Error::doing("ask whose the users are"))?;
        drop(client);
        if !rows[0].get::<_, bool>(0) {
            return Ok(None);
        }
        let signer = token::Signer::new(access, &settings);
        let keys = ApiKeys::new(pool.clone());
        Ok(Some(Self(Arc::new(Inner { pool, signer, hasher: Hasher::new(), limits: limits::Limits::default(), keys, settings }))))
    }

    /// The password hasher. Tests count its work.
    pub fn hasher(&self) -> &Hasher {
        &self.0.hasher
    }
}

/// The routes below `/auth/v1`.
pub fn routes(auth: Auth) -> Router {
    let keyed = Router::new()
        .route("/token", post(session::token))
        .route("/user", get(user::get).put(user::put))
        .route("/logout", post(logout::post))
        .route("/signup", post(signup::post))
        .route("/recover", post(recover::post))
        .route("/verify", post(verify::post))
        .route("/otp", post(otp::post))
        .route("/resend", post(otp::resend))
        .route("/invite", post(invite::post))
        .route("/settings", get(health::settings))
        .merge(admin::routes())
        .route_layer(from_fn_with_state(auth.clone(), project_key::require));
    // A browser that follows a link sends no key, and neither does a library that looks for public keys.
    let open = Router::new()
        .route("/verify", get(verify::get))
        .route("/link", get(link::get).post(link::post))
        .route("/health", get(health::health))
        .route("/.well-known/jwks.json", get(health::jwks));
    keyed
        .merge(open)
        .fallback(error::no_such_route)
        .method_not_allowed_fallback(error::no_such_method)
        .layer(DefaultBodyLimit::max(body::MOST))
        .layer(from_fn(error::in_the_callers_form))
        .with_state(auth)
}
