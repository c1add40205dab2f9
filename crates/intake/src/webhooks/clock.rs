//! The clock that verification uses, so that replay windows can be tested.

use std::time::{Duration, SystemTime};

/// The time at which a request arrived. Only signatures use it; when work is due is decided by the database's clock.
#[derive(Debug, Clone, Copy, Default)]
pub enum Clock {
    #[default]
    System,
    /// Always the same time.
    Fixed(SystemTime),
}

impl Clock {
    /// Fixed at this many seconds since 1970.
    pub fn fixed_at(unix_seconds: u64) -> Self {
        Self::Fixed(SystemTime::UNIX_EPOCH + Duration::from_secs(unix_seconds))
    }

    pub fn now(self) -> SystemTime {
        match self {
            Self::System => SystemTime::now(),
            Self::Fixed(at) => at,
        }
    }
}
