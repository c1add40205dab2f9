//! What functions of the database say about the response: the settings `response.status` and `response.headers`.

use axum::response::Response;
use gleaner_http::WireError;
use http::{HeaderName, HeaderValue, StatusCode};
use serde_json::{Map, Value};

use crate::rest::session::Outcome;

/// Status and headers that replace ours.
#[derive(Debug, Default)]
pub(in crate::rest) struct Said {
    status: Option<StatusCode>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Said {
    pub(in crate::rest) fn of(outcome: &Outcome) -> Result<Self, WireError> {
        let status = match &outcome.status {
            Some(text) => Some(text.parse().map_err(|_| wrong("PGRST112", "response.status guc must be a valid status code"))?),
            None => None,
        };
        let headers = match &outcome.headers {
            Some(text) => parse(text).ok_or_else(|| {
                wrong("PGRST111", "response.headers guc must be a JSON array composed of objects with a single key and a string value")
            })?,
            None => Vec::new(),
        };
        Ok(Self { status, headers })
    }

    pub(in crate::rest) fn apply(self, mut response: Response) -> Response {
        if let Some(status) = self.status {
            *response.status_mut() = status;
        }
        let own: Vec<HeaderName> = self.headers.iter().map(|(name, _)| name.clone()).collect();
        for name in own {
            response.headers_mut().remove(name);
        }
        for (name, value) in self.headers {
            response.headers_mut().append(name, value);
        }
        response
    }
}

fn wrong(code: &'static str, message: &str) -> WireError {
    WireError::new(StatusCode::INTERNAL_SERVER_ERROR, code, message)
}

fn parse(text: &str) -> Option<Vec<(HeaderName, HeaderValue)>> {
    let list: Vec<Map<String, Value>> = serde_json::from_str(text).ok()?;
    let one = |object: Map<String, Value>| {
        let (name, value) = object.into_iter().next()?;
        Some((HeaderName::try_from(name).ok()?, HeaderValue::try_from(value.as_str()?).ok()?))
    };
    list.into_iter().map(|object| if object.len() == 1 { one(object) } else { None }).collect()
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn headers_are_a_list_of_single_pairs() {
        let found = parse(r#"[{"Cache-Control": "no-cache"}, {"set-cookie": "a=1"}, {"set-cookie": "b=2"}]"#).unwrap();
        assert_eq!(found.len(), 3);
        assert_eq!((found[0].0.as_str(), found[0].1.to_str().unwrap()), ("cache-control", "no-cache"));
        for bad in ["{}", "[1]", r#"[{"a": 1}]"#, r#"[{"a": "b", "c": "d"}]"#, r#"[{"a b": "c"}]"#, "nonsense"] {
            assert!(parse(bad).is_none(), "{bad}");
        }
    }
}
