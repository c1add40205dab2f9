//! One agent process: its workers, one per queue, and what they share.
