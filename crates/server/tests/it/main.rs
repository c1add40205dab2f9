//! Tests of the server's parts and of the whole, on a real PostgreSQL. They are one program, since linking each part alone
//! takes longer than its tests.

mod auth;
mod channels;
mod contacts;
mod crates;
mod gmail;
mod log;
mod media;
mod queues;
mod realtime;
mod rest;
mod webhooks;
mod world;
