//! Queues by way of a server: Gleaner's own, or a Supabase project.
