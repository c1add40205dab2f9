//! The `Prefer` header. Preferences that we know are applied and named in the response.

use gleaner_http::WireError;
use http::{HeaderMap, HeaderName, StatusCode};

use super::sql::Upsert;

const PREFER: HeaderName = HeaderName::from_static("prefer");

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Preferences {
    pub give_back: Option<Return>,
    /// As the client wrote it. Every kind is counted exactly.
    pub count: Option<&'static str>,
    pub upsert: Option<Upsert>,
    /// What columns get that a row lacks.
    pub missing: Option<Missing>,
    pub handling: Option<Handling>,
    /// The time zone in which times are read and written. The database refuses one that it does not have.
    pub timezone: Option<String>,
    /// A write of more rows than this is rolled back, under strict handling.
    max_affected: Option<i64>,
    /// Those that we do not know.
    unknown: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Return {
    Minimal,
    HeadersOnly,
    Representation,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    Default,
    Null,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Handling {
    Strict,
    Lenient,
}

/// What kind of request preferences are applied to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    Read,
    Call,
    Insert,
    Update,
    Delete,
}

impl Preferences {
    /// Parses all `Prefer` headers. Of two values for one preference the first counts.
    pub(super) fn parse(headers: &HeaderMap) -> Self {
        let mut preferences = Self::default();
        let values = headers.get_all(PREFER).iter().filter_map(|value| value.to_str().ok());
        for wish in values.flat_map(|value| value.split(',')).map(str::trim).filter(|wish| !wish.is_empty()) {
            preferences.add(wish);
        }
        preferences
    }

    fn add(&mut self, wish: &str) {
        match wish {
            "return=minimal" => drop(self.give_back.get_or_insert(Return::Minimal)),
            "return=headers-only" => drop(self.give_back.get_or_insert(Return::HeadersOnly)),
            "return=representation" => drop(self.give_back.get_or_insert(Return::Representation)),
            "count=exact" => drop(self.count.get_or_insert("exact")),
            "count=planned" => drop(self.count.get_or_insert("planned")),
            "count=estimated" => drop(self.count.get_or_insert("estimated")),
            "resolution=merge-duplicates" => drop(self.upsert.get_or_insert(Upsert::Merge)),
            "resolution=ignore-duplicates" => drop(self.upsert.get_or_insert(Upsert::Ignore)),
            "missing=default" => drop(self.missing.get_or_insert(Missing::Default)),
            "missing=null" => drop(self.missing.get_or_insert(Missing::Null)),
            "handling=strict" => drop(self.handling.get_or_insert(Handling::Strict)),
            "handling=lenient" => drop(self.handling.get_or_insert(Handling::Lenient)),
            // Known, and not offered: every request is committed.
            "tx=commit" | "tx=rollback" => {}
            _ => match wish.split_once('=') {
                Some(("timezone", zone)) => drop(self.timezone.get_or_insert_with(|| zone.to_owned())),
                Some(("max-affected", most)) => self.max_affected = self.max_affected.or(most.parse().ok()),
                _ => self.unknown.push(wish.to_owned()),
            },
        }
    }

    /// Strict handling: what we do not know is refused. Otherwise it is ignored.
    pub(super) fn check(&self) -> Result<(), WireError> {
        if self.unknown.is_empty() || !self.is_strict() {
            return Ok(());
        }
        Err(WireError::new(StatusCode::BAD_REQUEST, "PGRST122", "Invalid preferences given with handling=strict")
            .details(format!("Invalid preferences: {}", self.unknown.join(", "))))
    }

    /// Whether the written rows are to be returned.
    pub(super) fn show(&self) -> bool {
        self.give_back == Some(Return::Representation)
    }

    /// The most rows that a write or a function may affect.
    pub(super) fn most_affected(&self) -> Option<i64> {
        self.max_affected.filter(|_| self.is_strict())
    }

    fn is_strict(&self) -> bool {
        self.handling == Some(Handling::Strict)
    }

    /// The preferences that were applied, for `Preference-Applied`.
    pub(super) fn applied(&self, act: Act) -> Vec<String> {
        let upsert = self.upsert.filter(|_| act == Act::Insert).map(|upsert| match upsert {
            Upsert::Merge => "resolution=merge-duplicates",
            Upsert::Ignore => "resolution=ignore-duplicates",
        });
        let missing = self.missing.filter(|_| matches!(act, Act::Insert | Act::Update)).map(|missing| match missing {
            Missing::Default => "missing=default",
            Missing::Null => "missing=null",
        });
        let give_back = self.give_back.filter(|_| !matches!(act, Act::Read | Act::Call)).map(|give_back| match give_back {
            Return::Minimal => "return=minimal",
            Return::HeadersOnly => "return=headers-only",
            Return::Representation => "return=representation",
        });
        let handling = self.handling.map(|handling| match handling {
            Handling::Strict => "handling=strict",
            Handling::Lenient => "handling=lenient",
        });
        let limited = matches!(act, Act::Call | Act::Update | Act::Delete);
        let named = [
            upsert.map(str::to_owned),
            missing.map(str::to_owned),
            give_back.map(str::to_owned),
            self.count.map(|count| format!("count={count}")),
            handling.map(str::to_owned),
            self.timezone.as_ref().map(|zone| format!("timezone={zone}")),
            self.most_affected().filter(|_| limited).map(|most| format!("max-affected={most}")),
        ];
        named.into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue};

    use super::{Act, Missing, Preferences, Return};
    use crate::rest::sql::Upsert;

    fn parse(value: &'static str) -> Preferences {
        Preferences::parse(&HeaderMap::from_iter([(super::PREFER, HeaderValue::from_static(value))]))
    }

    #[test]
    fn wishes_come_in_one_header_or_several_and_unknown_ones_are_passed_over() {
        let mut headers = HeaderMap::new();
        headers.append("prefer", HeaderValue::from_static("count=exact, missing=default,bogus=1"));
        headers.append("prefer", HeaderValue::from_static("return=representation,resolution=ignore-duplicates, tx=rollback"));
        let preferences = Preferences::parse(&headers);
        assert_eq!(preferences.give_back, Some(Return::Representation));
        assert_eq!(
            (preferences.count, preferences.upsert, preferences.missing),
            (Some("exact"), Some(Upsert::Ignore), Some(Missing::Default))
        );
        assert!(preferences.check().is_ok());
        assert_eq!(
            preferences.applied(Act::Insert).join(", "),
            "resolution=ignore-duplicates, missing=default, return=representation, count=exact"
        );
    }

    #[test]
    fn a_limit_of_affected_rows_takes_strictness() {
        assert_eq!(parse("max-affected=3").most_affected(), None);
        assert_eq!(parse("handling=strict, max-affected=3").most_affected(), Some(3));
    }

    #[test]
    fn strict_handling_refuses_what_is_unknown() {
        let error = parse("handling=strict, anything, bogus=1, tx=commit").check().unwrap_err();
        assert_eq!((&*error.code, error.details.as_deref()), ("PGRST122", Some("Invalid preferences: anything, bogus=1")));
        assert!(parse("handling=lenient, anything").check().is_ok());
    }
}
