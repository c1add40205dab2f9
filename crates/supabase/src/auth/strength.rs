//! Which passwords are refused: short ones, and the most common ones.

use super::error::{Failure, Result};
use super::password::Password;

/// A longer password only adds work for the hash.
const LONGEST: usize = 1024;

/// The top of common lists of stolen passwords, limited to those of at least eight characters.
const COMMON: &[&str] = &[
    "00000000",
    "11111111",
    "12341234",
    "12345678",
    "123456789",
    "1234567890",
    "123123123",
    "1q2w3e4r",
    "1qaz2wsx",
    "87654321",
    "987654321",
    "aa123456",
    "abc12345",
    "abcd1234",
    "admin123",
    "administrator",
    "asdfghjkl",
    "baseball",
    "changeme",
    "computer",
    "dragon123",
    "football",
    "iloveyou",
    "internet",
    "letmein1",
    "michelle",
    "monkey123",
    "p@ssw0rd",
    "passw0rd",
    "password",
    "password1",
    "password12",
    "password123",
    "princess",
    "qwer1234",
    "qwerty12",
    "qwerty123",
    "qwertyui",
    "qwertyuiop",
    "sunshine",
    "superman",
    "supabase",
    "trustno1",
    "welcome1",
    "whatever",
    "zaq12wsx",
];

/// Refuses a weak password, with the reason.
pub(super) fn judge(password: &Password, email: &str, shortest: usize) -> Result<()> {
    let text = password.reveal();
    if text.len() > LONGEST {
        return Err(Failure::invalid(format!("Password cannot be longer than {LONGEST} bytes")));
    }
    if text.contains('\0') {
        return Err(Failure::invalid("Password cannot contain a NUL character"));
    }
    if text.chars().count() < shortest {
        return Err(Failure::weak(vec!["length"], format!("Password should be at least {shortest} characters.")));
    }
    let plain = text.to_lowercase();
    let is_address = plain == email || email.split('@').next() == Some(plain.as_str());
    if is_address || COMMON.contains(&plain.as_str()) {
        return Err(Failure::weak(vec!["pwned"], "Password is known to be weak and easy to guess, please choose a different one."));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_everybody_tries_first_is_refused() {
        let judge = |text: &str| judge(&Password::new(text), "adalovelace@example.com", 8);
        assert!(judge("a good long one").is_ok());
        assert!(judge("日本語日本語日本").is_ok(), "characters count, not bytes");
        for weak in ["short", "", "PassWord", "12345678", "AdaLovelace@example.com", "adalovelace", "日本語"] {
            assert!(judge(weak).is_err(), "{weak}");
        }
        assert!(judge(&"x".repeat(1025)).is_err());
    }
}
