//! Tests of the server's parts and of the whole, on a real PostgreSQL. They are one program, since linking each part alone
//! takes longer than its tests.

mod auth;
mod channels;
mod contacts;
mod crates;
mod dumps;
mod gmail;
mod log;
mod media;
mod openapi;
mod queues;
mod realtime;
mod rest;
mod team;
mod web;
mod webhooks;
mod world;
