//! Files: what is stored, what is fetched for which caller, and which addresses are refused.

mod files;
mod forgetting;
mod guarding;
mod provider;
mod serving;
mod world;
