//! Filters: `age=gte.18`, `name=not.in.(a,"b,c")`, `or=(a.eq.1,and(b.is.null,c.like.x*))`.

mod operand;

use super::cursor::{Cursor, DEEPEST};
use super::field::{self, Field};
use gleaner_http::WireError;
use operand::Place;

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    All(Vec<Condition>),
    Any(Vec<Condition>),
    Not(Box<Condition>),
    Test(Field, Test),
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Test {
    Compare(Comparison, String),
    In(Vec<String>),
    Is(Is),
}

/// Operators with one value on the right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    Like,
    LikeInsensitive,
    Matches,
    MatchesInsensitive,
    Distinct,
    Contains,
    ContainedIn,
    Overlaps,
    StrictlyLeft,
    StrictlyRight,
    NotRightOf,
    NotLeftOf,
    Adjacent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Is {
    Null,
    NotNull,
    True,
    False,
    Unknown,
}

const OPERATORS: [(&str, Comparison); 19] = [
    ("eq", Comparison::Equal),
    ("neq", Comparison::NotEqual),
    ("gt", Comparison::Greater),
    ("gte", Comparison::GreaterOrEqual),
    ("lt", Comparison::Less),
    ("lte", Comparison::LessOrEqual),
    ("like", Comparison::Like),
    ("ilike", Comparison::LikeInsensitive),
    ("match", Comparison::Matches),
    ("imatch", Comparison::MatchesInsensitive),
    ("isdistinct", Comparison::Distinct),
    ("cs", Comparison::Contains),
    ("cd", Comparison::ContainedIn),
    ("ov", Comparison::Overlaps),
    ("sl", Comparison::StrictlyLeft),
    ("sr", Comparison::StrictlyRight),
    ("nxr", Comparison::NotRightOf),
    ("nxl", Comparison::NotLeftOf),
    ("adj", Comparison::Adjacent),
];

/// Whether a value looks like a filter, to distinguish filters from a function's arguments.
pub(crate) fn looks_like_a_filter(value: &str) -> bool {
    let value = value.strip_prefix("not.").unwrap_or(value);
    value.split_once('.').is_some_and(|(word, _)| matches!(word, "in" | "is") || OPERATORS.iter().any(|(name, _)| *name == word))
}

/// The value of a parameter: `[not.]op.value`. The value extends to the end.
pub(super) fn parse_expression(field: Field, value: &str) -> Result<Condition, WireError> {
    let mut cursor = Cursor::new("filter", value);
    let condition = expression(&mut cursor, field, Place::Parameter)?;
    cursor.end()?;
    Ok(condition)
}

/// The value of `or` and `and`.
pub(super) fn parse_group(name: &str, value: &str, any: bool, negated: bool) -> Result<Condition, WireError> {
    let mut cursor = Cursor::new("logic tree", value);
    let group = group(&mut cursor, any, 0)?;
    cursor.end().map_err(|error| error.hint(format!("A list in parentheses is expected after {name}=")))?;
    Ok(if negated { Condition::Not(Box::new(group)) } else { group })
}

fn group(cursor: &mut Cursor<'_>, any: bool, depth: usize) -> Result<Condition, WireError> {
    if depth > DEEPEST {
        return Err(cursor.error("less nesting"));
    }
    cursor.expect("(")?;
    let mut members = Vec::new();
    loop {
        cursor.skip_spaces();
        members.push(member(cursor, depth)?);
        cursor.skip_spaces();
        if !cursor.eat(",") {
            break;
        }
    }
    cursor.expect(")")?;
    Ok(if any { Condition::Any(members) } else { Condition::All(members) })
}

fn member(cursor: &mut Cursor<'_>, depth: usize) -> Result<Condition, WireError> {
    for (token, any, negated) in [("not.or(", true, true), ("not.and(", false, true), ("or(", true, false), ("and(", false, false)] {
        if cursor.is_at(token) {
            cursor.eat(&token[..token.len() - 1]);
            let group = group(cursor, any, depth + 1)?;
            return Ok(if negated { Condition::Not(Box::new(group)) } else { group });
        }
    }
    let field = field::parse(cursor)?;
    cursor.expect(".")?;
    expression(cursor, field, Place::List)
}

fn expression(cursor: &mut Cursor<'_>, field: Field, place: Place) -> Result<Condition, WireError> {
    const EXPECTED: &str = "\"not\" or operator (eq, gt, ...)";
    // If the word is unknown, the error points at its beginning.
    let start = cursor.error(EXPECTED);
    let negated = cursor.eat("not.");
    let word = cursor.take_while(|c| c.is_ascii_alphabetic());
    if cursor.is_at("(") {
        let details = format!("{word}(…) is not available here: modifiers (any, all) and languages of full text search are not supported");
        return Err(start.details(details));
    }
    let test = match word {
        "fts" | "plfts" | "phfts" | "wfts" => return Err(start.details("full text search is not available here; use ilike or a function")),
        "in" | "is" if !cursor.is_at(".") => return Err(start),
        "in" => {
            cursor.eat(".");
            Test::In(operand::list(cursor)?)
        }
        "is" => {
            cursor.eat(".");
            Test::Is(operand::is(cursor)?)
        }
        _ => {
            let Some((_, comparison)) = OPERATORS.iter().find(|(name, _)| *name == word) else { return Err(start) };
            if !cursor.eat(".") {
                return Err(start);
            }
            Test::Compare(*comparison, operand::value(cursor, place)?)
        }
    };
    let test = Condition::Test(field, test);
    Ok(if negated { Condition::Not(Box::new(test)) } else { test })
}
