//! What an assistant may do beyond its own items. Every such right must be granted explicitly.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// A right over items that the assistant does not hold. Text in a message could ask the assistant for each of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grant {
    /// Cancel any item, whichever agent holds it.
    Cancel,
    /// Decide which contact an activity came from.
    Link,
    /// Schedule follow-ups, which another worker will send.
    Schedule,
}

impl Grant {
    pub const ALL: [Self; 3] = [Self::Cancel, Self::Link, Self::Schedule];

    pub fn name(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Link => "link",
            Self::Schedule => "schedule",
        }
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Grant {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|grant| grant.name() == word);
        known.ok_or_else(|| format!("a grant is one of {}", Self::ALL.map(Self::name).join(", ")))
    }
}

/// The granted rights. None by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grants(BTreeSet<Grant>);

impl Grants {
    pub fn none() -> Self {
        Self::default()
    }

    pub fn all() -> Self {
        Self::from_iter(Grant::ALL)
    }

    pub fn has(&self, grant: Grant) -> bool {
        self.0.contains(&grant)
    }
}

impl FromIterator<Grant> for Grants {
    fn from_iter<I: IntoIterator<Item = Grant>>(grants: I) -> Self {
        Self(grants.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_are_read_by_name_and_nothing_is_granted_by_default() {
        assert_eq!("link".parse(), Ok(Grant::Link));
        assert_eq!("everything".parse::<Grant>(), Err("a grant is one of cancel, link, schedule".to_owned()));
        assert!(Grant::ALL.into_iter().all(|grant| !Grants::none().has(grant)));
    }
}
