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
    /// With any or all elements of an array.
    Each {
        comparison: Comparison,
        all: bool,
        values: String,
    },
    Search {
        search: Search,
        language: Option<String>,
        words: String,
    },
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

/// How the words of a full text search are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Search {
    Query,
    Plain,
    Phrase,
    Web,
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

const SEARCHES: [(&str, Search); 4] = [("fts", Search::Query), ("plfts", Search::Plain), ("phfts", Search::Phrase), ("wfts", Search::Web)];

/// Whether a value looks like a filter, to distinguish filters from a function's arguments.
pub(crate) fn looks_like_a_filter(value: &str) -> bool {
    let value = value.strip_prefix("not.").unwrap_or(value);
    let word = value.find(['.', '(']).map_or("", |end| &value[..end]);
    matches!(word, "in" | "is") || comparison(word).is_some() || search(word).is_some()
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
    for (token, any, negated) in [("not.or", true, true), ("not.and", false, true), ("or", true, false), ("and", false, false)] {
        if cursor.rest().strip_prefix(token).is_some_and(|rest| rest.trim_start().starts_with('(')) {
            cursor.eat(token);
            cursor.skip_spaces();
            let group = group(cursor, any, depth + 1)?;
            return Ok(if negated { Condition::Not(Box::new(group)) } else { group });
        }
    }
    let field = field::parse(cursor)?;
    cursor.expect(".")?;
    let condition = expression(cursor, field, Place::List)?;
    cursor.skip_spaces();
    Ok(condition)
}

fn expression(cursor: &mut Cursor<'_>, field: Field, place: Place) -> Result<Condition, WireError> {
    const EXPECTED: &str = "\"not\" or operator (eq, gt, ...)";
    // If the word is unknown, the error points at its beginning.
    let start = cursor.error(EXPECTED);
    let negated = cursor.eat("not.");
    let word = cursor.take_while(|c| c.is_ascii_alphabetic());
    let modifier = if cursor.eat("(") {
        let modifier = cursor.take_while(|c| c != ')').trim();
        cursor.expect(")")?;
        Some(modifier)
    } else {
        None
    };
    if !cursor.eat(".") {
        return Err(start);
    }
    let test = match (word, modifier) {
        ("in", None) => Test::In(operand::list(cursor)?),
        ("is", None) => Test::Is(operand::is(cursor)?),
        (word, modifier) => match (comparison(word), search(word), modifier) {
            (Some(comparison), _, None) => Test::Compare(comparison, operand::value(cursor, place)?),
            (Some(comparison), _, Some(each @ ("any" | "all"))) if takes_quantifier(comparison) => {
                Test::Each { comparison, all: each == "all", values: operand::value(cursor, place)? }
            }
            (None, Some(search), language) => {
                Test::Search { search, language: language.map(str::to_owned), words: operand::value(cursor, place)? }
            }
            _ => return Err(start),
        },
    };
    let test = Condition::Test(field, test);
    Ok(if negated { Condition::Not(Box::new(test)) } else { test })
}

fn comparison(word: &str) -> Option<Comparison> {
    OPERATORS.iter().find(|(name, _)| *name == word).map(|(_, comparison)| *comparison)
}

fn search(word: &str) -> Option<Search> {
    SEARCHES.iter().find(|(name, _)| *name == word).map(|(_, search)| *search)
}

/// Those that compare with one value, and so with each element of an array.
fn takes_quantifier(comparison: Comparison) -> bool {
    matches!(
        comparison,
        Comparison::Equal
            | Comparison::Greater
            | Comparison::GreaterOrEqual
            | Comparison::Less
            | Comparison::LessOrEqual
            | Comparison::Like
            | Comparison::LikeInsensitive
            | Comparison::Matches
            | Comparison::MatchesInsensitive
    )
}
