//! The API that programs written for Supabase use: tables and functions, sign-in, and realtime changes.
//!
//! It does not depend on queues. A server extends it through [`rest::Observe`], [`realtime::Signals`] and [`realtime::Devices`].
//!
//! # Layout
//!
//! - [`access`] finds the caller that a token or a key belongs to.
//! - [`rest`] is `/rest/v1`, [`auth`] is `/auth/v1`, [`realtime`] is `/realtime/v1`.

pub mod access;
pub mod auth;
pub mod realtime;
pub mod rest;
