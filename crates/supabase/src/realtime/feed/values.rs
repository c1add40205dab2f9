//! Converts values of the log, which are in PostgreSQL's text form, to the JSON that reading the table would give.

use serde_json::{Number, Value};

/// The properties of a type that matter here. Found once per type from its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shape {
    Number,
    Boolean,
    Json,
    Instant,
    Moment,
    Array(Box<Shape>),
    Text,
}

impl Shape {
    /// From the name in `pg_type`. An array has its element's name after an underscore.
    pub(crate) fn of(type_name: &str) -> Self {
        match type_name {
            "int2" | "int4" | "int8" | "float4" | "float8" | "numeric" | "oid" => Self::Number,
            "bool" => Self::Boolean,
            "json" | "jsonb" => Self::Json,
            "timestamptz" => Self::Instant,
            "timestamp" => Self::Moment,
            name => match name.strip_prefix('_') {
                Some(element) => Self::Array(Box::new(Self::of(element))),
                None => Self::Text,
            },
        }
    }

    pub(crate) fn value(&self, text: &str) -> Value {
        match self {
            // NaN and the infinities are not JSON numbers. PostgreSQL writes them as strings too.
            Self::Number => text.parse::<Number>().map_or_else(|_| Value::from(text), Value::Number),
            Self::Boolean => Value::Bool(text == "t"),
            Self::Json => serde_json::from_str(text).unwrap_or_else(|_| Value::from(text)),
            Self::Instant => Value::from(instant(text)),
            Self::Moment => Value::from(text.replacen(' ', "T", 1)),
            Self::Array(element) => array(text, element).unwrap_or_else(|| Value::from(text)),
            Self::Text => Value::from(text),
        }
    }
}

/// `2025-01-15 10:30:00.12+00` as `2025-01-15T10:30:00.12+00:00`.
fn instant(text: &str) -> String {
    let mut written = text.replacen(' ', "T", 1);
    if let Some(sign) = written.rfind(['+', '-']).filter(|&at| at > 10)
        && written.len() - sign == 3
    {
        written.push_str(":00");
    }
    written
}

/// Parses `{a,"b,c",NULL,{d}}`. Returns `None` for any other form (`[0:1]={…}` has bounds that JSON cannot express).
fn array(text: &str, element: &Shape) -> Option<Value> {
    let mut rest = text.strip_prefix('{')?;
    let (value, left) = items(&mut rest, element)?;
    left.is_empty().then_some(value)
}

fn items<'a>(rest: &mut &'a str, element: &Shape) -> Option<(Value, &'a str)> {
    let mut values = Vec::new();
    if let Some(after) = rest.strip_prefix('}') {
        return Some((Value::Array(values), after));
    }
    loop {
        if let Some(mut inner) = rest.strip_prefix('{') {
            let (value, after) = items(&mut inner, element)?;
            values.push(value);
            *rest = after;
        } else if let Some(mut inner) = rest.strip_prefix('"') {
            let mut value = String::new();
            loop {
                let at = inner.find(['"', '\\'])?;
                value.push_str(&inner[..at]);
                let found = inner.as_bytes()[at];
                inner = &inner[at + 1..];
                if found == b'"' {
                    break;
                }
                let escaped = inner.chars().next()?;
                value.push(escaped);
                inner = &inner[escaped.len_utf8()..];
            }
            values.push(element.value(&value));
            *rest = inner;
        } else {
            let at = rest.find([',', '}'])?;
            let bare = &rest[..at];
            values.push(if bare == "NULL" { Value::Null } else { element.value(bare) });
            *rest = &rest[at..];
        }
        if let Some(after) = rest.strip_prefix('}') {
            return Some((Value::Array(values), after));
        }
        *rest = rest.strip_prefix(',')?;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_read_as_they_do_from_the_table() {
        let of = |name: &str, text: &str| Shape::of(name).value(text);
        assert_eq!(of("int8", "9007199254740993"), json!(9_007_199_254_740_993_i64));
        assert_eq!(of("float8", "NaN"), json!("NaN"));
        assert_eq!(of("bool", "t"), json!(true));
        assert_eq!(of("jsonb", r#"{"a": [1, null]}"#), json!({"a": [1, null]}));
        assert_eq!(of("timestamptz", "2025-01-15 10:30:00.12+00"), json!("2025-01-15T10:30:00.12+00:00"));
        assert_eq!(of("timestamptz", "2025-01-15 10:30:00-05:30"), json!("2025-01-15T10:30:00-05:30"));
        assert_eq!(of("timestamptz", "infinity"), json!("infinity"));
        assert_eq!(of("timestamp", "2025-01-15 10:30:00"), json!("2025-01-15T10:30:00"));
        assert_eq!(of("_int4", "{1,NULL,3}"), json!([1, null, 3]));
        assert_eq!(of("_text", r#"{plain,"a,b","q\"uote",{},"NULL"}"#), json!(["plain", "a,b", "q\"uote", [], "NULL"]));
        assert_eq!(of("_text", "{}"), json!([]));
        assert_eq!(of("_int4", "[0:1]={1,2}"), json!("[0:1]={1,2}"));
        assert_eq!(of("uuid", "x"), json!("x"));
    }
}
