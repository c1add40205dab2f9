//! The clock of verification, so that replay windows can be tested.

use std::time::{Duration, SystemTime};

/// What time a request arrived at. Only signatures look at it: when work is due is for the database's clock to say.
#[derive(Debug, Clone, Copy, Default)]
pub enum Clock {
    #[default]
    System,
    /// Stands still.
    Fixed(SystemTime),
}

impl Clock {
    /// Stands still at so many seconds since 1970.
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
