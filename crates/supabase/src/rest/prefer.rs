//! The `Prefer` header. Preferences that we know are applied and named in the response.

use http::{HeaderMap, HeaderName};

use super::sql::Upsert;

const PREFER: HeaderName = HeaderName::from_static("prefer");

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Preferences {
    pub give_back: Option<Return>,
    /// As the client wrote it. Every kind is counted exactly.
    pub count: Option<&'static str>,
    pub upsert: Option<Upsert>,
    /// Keys that a row of a list lacks get the default of their column.
    pub missing_default: bool,
    /// A write of more rows than this is rolled back.
    pub max_affected: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Return {
    Minimal,
    HeadersOnly,
    Representation,
}

impl Preferences {
    /// Parses all `Prefer` headers. Of two values for one preference the first counts; unknown ones are ignored.
    pub(super) fn parse(headers: &HeaderMap) -> Self {
        let mut preferences = Self::default();
        let mut strict = false;
        let values = headers.get_all(PREFER).iter().filter_map(|value| value.to_str().ok());
        for (name, value) in values.flat_map(|value| value.split(',')).filter_map(|wish| wish.split_once('=')) {
            match (name.trim(), value.trim()) {
                ("return", "minimal") => drop(preferences.give_back.get_or_insert(Return::Minimal)),
                ("return", "headers-only") => drop(preferences.give_back.get_or_insert(Return::HeadersOnly)),
                ("return", "representation") => drop(preferences.give_back.get_or_insert(Return::Representation)),
                ("count", "exact") => drop(preferences.count.get_or_insert("exact")),
                ("count", "planned") => drop(preferences.count.get_or_insert("planned")),
                ("count", "estimated") => drop(preferences.count.get_or_insert("estimated")),
                ("resolution", "merge-duplicates") => drop(preferences.upsert.get_or_insert(Upsert::Merge)),
                ("resolution", "ignore-duplicates") => drop(preferences.upsert.get_or_insert(Upsert::Ignore)),
                ("missing", "default") => preferences.missing_default = true,
                ("handling", "strict") => strict = true,
                ("max-affected", most) => preferences.max_affected = most.parse().ok(),
                _ => {}
            }
        }
        // The limit applies only with strict handling.
        preferences.max_affected = preferences.max_affected.filter(|_| strict);
        preferences
    }

    /// Whether the written rows are to be returned.
    pub(super) fn show(&self) -> bool {
        self.give_back == Some(Return::Representation)
    }

    /// The preferences that were applied, for `Preference-Applied`.
    pub(super) fn applied(&self, writes: bool) -> Vec<String> {
        let mut applied = Vec::new();
        if writes {
            match self.upsert {
                Some(Upsert::Merge) => applied.push("resolution=merge-duplicates".to_owned()),
                Some(Upsert::Ignore) => applied.push("resolution=ignore-duplicates".to_owned()),
                None => {}
            }
            if self.missing_default {
                applied.push("missing=default".to_owned());
            }
            match self.give_back {
                Some(Return::Minimal) => applied.push("return=minimal".to_owned()),
                Some(Return::Representation) => applied.push("return=representation".to_owned()),
                Some(Return::HeadersOnly) | None => {}
            }
            if let Some(most) = self.max_affected {
                applied.push(format!("handling=strict, max-affected={most}"));
            }
        }
        if let Some(count) = self.count {
            applied.push(format!("count={count}"));
        }
        applied
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue};

    use super::{Preferences, Return};
    use crate::rest::sql::Upsert;

    #[test]
    fn wishes_come_in_one_header_or_several_and_unknown_ones_are_passed_over() {
        let mut headers = HeaderMap::new();
        headers.append("prefer", HeaderValue::from_static("count=exact, missing=default,bogus=1"));
        headers.append("prefer", HeaderValue::from_static("return=representation,resolution=ignore-duplicates, tx=rollback"));
        let preferences = Preferences::parse(&headers);
        assert_eq!(preferences.give_back, Some(Return::Representation));
        assert_eq!((preferences.count, preferences.upsert, preferences.missing_default), (Some("exact"), Some(Upsert::Ignore), true));
        assert_eq!(
            preferences.applied(true).join(", "),
            "resolution=ignore-duplicates, missing=default, return=representation, count=exact"
        );
    }

    #[test]
    fn a_limit_of_affected_rows_takes_strictness() {
        let parse = |value: &'static str| Preferences::parse(&HeaderMap::from_iter([(super::PREFER, HeaderValue::from_static(value))]));
        assert_eq!(parse("max-affected=3").max_affected, None);
        assert_eq!(parse("handling=strict, max-affected=3").max_affected, Some(3));
    }
}
