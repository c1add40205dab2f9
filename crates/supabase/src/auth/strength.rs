//! Which passwords are refused: short ones, and the most common ones.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use super::error::Failure;
use super::password::Password;

/// A longer password only adds work for the hash.
const LONGEST: usize = 1024;

/// The top of common lists of stolen passwords, limited to those of at least eight characters.
const COMMON: &str = include_str!("common-passwords.txt");

/// What an operator demands of passwords.
#[derive(Debug, Clone)]
pub struct Policy {
    /// Shortest password, in characters (`GLEANER_PASSWORD_MIN`).
    pub shortest: usize,
    /// Further passwords that are refused, in lower case (`GLEANER_PASSWORD_REFUSED`, a file with one on each line).
    pub refused: Arc<HashSet<String>>,
    /// How long after a sign-in a password may be changed without the old one (`GLEANER_PASSWORD_FRESH`, in minutes).
    pub fresh: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Self { shortest: 8, refused: Arc::default(), fresh: Duration::from_secs(15 * 60) }
    }
}

impl Policy {
    /// The defaults, changed by the variables. The error names the value that is invalid.
    pub(super) fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let mut policy = Self::default();
        if let Some(text) = variable("GLEANER_PASSWORD_MIN") {
            let min = text.parse().ok().filter(|min| (6..=128).contains(min));
            policy.shortest = min.ok_or_else(|| format!("GLEANER_PASSWORD_MIN is a number from 6 to 128, not {text:?}"))?;
        }
        if let Some(path) = variable("GLEANER_PASSWORD_REFUSED") {
            let list = std::fs::read_to_string(&path).map_err(|error| format!("GLEANER_PASSWORD_REFUSED: read {path}: {error}"))?;
            policy.refused = Arc::new(list.lines().map(|line| line.trim().to_lowercase()).filter(|line| !line.is_empty()).collect());
        }
        if let Some(text) = variable("GLEANER_PASSWORD_FRESH") {
            let minutes: u64 = text.parse().map_err(|_| format!("GLEANER_PASSWORD_FRESH is a number of minutes, not {text:?}"))?;
            policy.fresh = Duration::from_secs(minutes.saturating_mul(60));
        }
        Ok(policy)
    }
}

/// Refuses a weak password, with the reason.
pub(super) fn judge(password: &Password, email: &str, policy: &Policy) -> Result<(), Failure> {
    let text = password.reveal();
    if text.len() > LONGEST {
        return Err(Failure::invalid(format!("Password cannot be longer than {LONGEST} bytes")));
    }
    if text.contains('\0') {
        return Err(Failure::invalid("Password cannot contain a NUL character"));
    }
    let shortest = policy.shortest;
    if text.chars().count() < shortest {
        return Err(Failure::weak(vec!["length"], format!("Password should be at least {shortest} characters.")));
    }
    let plain = text.to_lowercase();
    let is_address = plain == email || email.split('@').next() == Some(plain.as_str());
    if is_address || COMMON.lines().any(|common| common == plain) || policy.refused.contains(&plain) {
        return Err(Failure::weak(vec!["pwned"], "Password is known to be weak and easy to guess, please choose a different one."));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_everybody_tries_first_is_refused() {
        let policy = Policy { refused: Arc::new(["gleaner company"].map(str::to_owned).into()), ..Policy::default() };
        let judge = |text: &str| judge(&Password::new(text), "adalovelace@example.com", &policy);
        assert!(judge("a good long one").is_ok());
        assert!(judge("日本語日本語日本").is_ok(), "characters count, not bytes");
        for weak in ["short", "", "PassWord", "12345678", "AdaLovelace@example.com", "adalovelace", "日本語", "Gleaner Company"] {
            assert!(judge(weak).is_err(), "{weak}");
        }
        assert!(judge(&"x".repeat(1025)).is_err());
    }
}
