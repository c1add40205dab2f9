//! The server's parts and the whole of it, on a real PostgreSQL: one program, since linking each part alone takes longer than its tests.

mod auth;
mod channels;
mod contacts;
mod door;
mod gmail;
mod log;
mod media;
mod queues;
mod realtime;
mod rest;
mod world;
