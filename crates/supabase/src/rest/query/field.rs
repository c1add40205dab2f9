//! A column, and a path into the JSON it holds.

use gleaner_http::WireError;

use super::cursor::Cursor;

/// `column`, `column->a->0->>b`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Field {
    pub name: String,
    pub path: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    pub key: Key,
    /// `->>`: the result is text.
    pub text: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Key {
    Name(String),
    Index(i32),
}

/// What a parameter refers to, and which embedded resource it concerns.
#[derive(Debug)]
pub(super) struct Target {
    pub path: Vec<String>,
    pub what: What,
}

#[derive(Debug)]
pub(super) enum What {
    Order,
    Limit,
    Offset,
    Logic { any: bool, negated: bool },
    Field(Field),
}

/// Reads the name of a parameter: `[embed.]order`, `[embed.]not.or`, `[embed.]column[path]`.
pub(super) fn parse_target(name: &str) -> Result<Target, WireError> {
    let mut cursor = Cursor::new("filter", name);
    let mut path = Vec::new();
    loop {
        let what = match cursor.rest() {
            "order" => Some(What::Order),
            "limit" => Some(What::Limit),
            "offset" => Some(What::Offset),
            "or" => Some(What::Logic { any: true, negated: false }),
            "and" => Some(What::Logic { any: false, negated: false }),
            "not.or" => Some(What::Logic { any: true, negated: true }),
            "not.and" => Some(What::Logic { any: false, negated: true }),
            _ => None,
        };
        if let Some(what) = what {
            return Ok(Target { path, what });
        }
        let field = parse(&mut cursor)?;
        if cursor.rest().is_empty() {
            return Ok(Target { path, what: What::Field(field) });
        }
        if !field.path.is_empty() {
            return Err(cursor.error("end of input"));
        }
        cursor.expect(".")?;
        path.push(field.name);
    }
}

/// Reads a column and its path.
pub(super) fn parse(cursor: &mut Cursor<'_>) -> Result<Field, WireError> {
    let name = cursor.name()?;
    Ok(Field { name, path: parse_path(cursor)? })
}

pub(super) fn parse_path(cursor: &mut Cursor<'_>) -> Result<Vec<Step>, WireError> {
    let mut path = Vec::new();
    loop {
        let text = cursor.eat("->>");
        if !text && !cursor.eat("->") {
            return Ok(path);
        }
        path.push(Step { key: parse_key(cursor)?, text });
        if text {
            // Text cannot be indexed further.
            return if cursor.is_at("->") { Err(cursor.error("the end of the path after ->>")) } else { Ok(path) };
        }
    }
}

fn parse_key(cursor: &mut Cursor<'_>) -> Result<Key, WireError> {
    if cursor.peek() == Some('"') {
        return cursor.quoted().map(Key::Name);
    }
    let rest = cursor.rest();
    let signed = rest.strip_prefix('-').unwrap_or(rest);
    if signed.starts_with(|c: char| c.is_ascii_digit()) {
        let length = rest.len() - signed.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, after) = rest.split_at(length);
        // `1a` is a name, and so is a number too large for an array index.
        if let (Ok(index), false) = (
            number.parse(),
            !(after.is_empty() || after.starts_with(['.', ',', ')']) || after.starts_with("->") || after.starts_with("::")),
        ) {
            cursor.eat(number);
            return Ok(Key::Index(index));
        }
    }
    // Everything that does not end a key. A hyphen belongs to it unless an arrow begins there.
    let ends = |(at, c): &(usize, char)| matches!(c, '(' | ')' | ':' | '.' | ',' | '>') || (*c == '-' && rest[*at..].starts_with("->"));
    let key = rest.char_indices().find(ends).map_or(rest, |(at, _)| &rest[..at]);
    if key.trim().is_empty() {
        return Err(cursor.error("a key (any character but . , : > ( ))"));
    }
    cursor.eat(key);
    Ok(Key::Name(key.trim().to_owned()))
}
