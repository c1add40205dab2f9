//! Files: what is kept, what is fetched on whose behalf, and where we do not go.

mod files;
mod forgetting;
mod guarding;
mod provider;
mod serving;
mod world;
