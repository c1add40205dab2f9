//! The request target: the key in it, and a form that is safe to show.

use std::fmt;

/// Path and query as received. Displayed without any value of the query: one is our key, and others may be secret too (such
/// as `hub.verify_token`).
#[derive(Clone, Copy)]
pub(super) struct Target<'a>(pub &'a str);

/// Shown in place of a value.
const HIDDEN: &str = "…";

impl fmt::Display for Target<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((path, query)) = self.0.split_once('?') else { return f.write_str(self.0) };
        f.write_str(path)?;
        for (n, pair) in query.split('&').enumerate() {
            f.write_str(if n == 0 { "?" } else { "&" })?;
            match pair.split_once('=') {
                Some((name, _)) => write!(f, "{name}={HIDDEN}")?,
                // A sender that forgets the parameter's name sends the value alone.
                None => f.write_str(HIDDEN)?,
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Target<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

impl<'a> Target<'a> {
    fn query(self) -> Option<&'a str> {
        self.0.split_once('?').map(|(_, query)| query)
    }

    /// The ingestion key. Two different keys count as none, because it is unclear which one the sender meant and which one
    /// a proxy checked.
    pub(super) fn key(self) -> Option<String> {
        let mut keys = form_urlencoded::parse(self.query()?.as_bytes()).filter(|(name, _)| name == "key").map(|(_, value)| value);
        let first = keys.next().filter(|key| !key.is_empty())?;
        keys.all(|other| other == first).then(|| first.into_owned())
    }

    /// The target as it is stored: only the value of the key is replaced, because normalisation may read the rest.
    pub(super) fn without_key(self) -> String {
        let Some((path, query)) = self.0.split_once('?') else { return self.0.to_owned() };
        let is_key = |pair: &str| form_urlencoded::parse(pair.as_bytes()).next().is_some_and(|(name, _)| name == "key");
        let pairs: Vec<String> = query
            .split('&')
            .map(|pair| match pair.split_once('=') {
                Some((name, _)) if is_key(pair) => format!("{name}={HIDDEN}"),
                _ => pair.to_owned(),
            })
            .collect();
        format!("{path}?{}", pairs.join("&"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_is_ever_shown() {
        let target = Target("/f?key=SECRET&provider=x&hub.verify_token=TOKEN&ALONE");
        assert_eq!(target.to_string(), "/f?key=…&provider=…&hub.verify_token=…&…");
        assert_eq!(format!("{target:?}"), "\"/f?key=…&provider=…&hub.verify_token=…&…\"");
        assert_eq!(Target("/health").to_string(), "/health");
    }

    #[test]
    fn the_key_is_found_however_it_is_escaped_and_hidden_when_kept() {
        for (target, key, kept) in [
            ("/f?key=abc", Some("abc"), "/f?key=…"),
            ("/f?provider=twilio&key=a%2Bc", Some("a+c"), "/f?provider=twilio&key=…"),
            ("/f?k%65y=abc&x=1", Some("abc"), "/f?k%65y=…&x=1"),
            ("/f?key=a&key=a", Some("a"), "/f?key=…&key=…"),
            ("/f?key=a&key=b", None, "/f?key=…&key=…"),
            ("/f?key=", None, "/f?key=…"),
            ("/f?apikey=a", None, "/f?apikey=a"),
            ("/f", None, "/f"),
        ] {
            assert_eq!(Target(target).key().as_deref(), key, "{target}");
            assert_eq!(Target(target).without_key(), kept);
        }
    }
}
