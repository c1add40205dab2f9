//! The connections to the database.

use std::fmt;

use gleaner_http::database::Pool;
use pgwire_replication::ReplicationConfig;

/// The connections needed to follow a database.
#[derive(Clone)]
pub struct Source {
    /// For queries on behalf of subscribers.
    pub pool: Pool,
    /// For joins alone, a few connections: however many clients join, they wait only for each other.
    pub joins: Pool,
    /// For the feed alone, with at least two connections: one to poll and one for queries meanwhile. A feed that had to queue
    /// behind requests would miss changes.
    pub feed: Pool,
    /// Where the log is read; the feed sets the slot and the publication itself. An error says why it cannot be read, and then
    /// triggers record the changes.
    pub log: Result<ReplicationConfig, String>,
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The address of the log includes a password.
        f.write_str("Source")
    }
}
