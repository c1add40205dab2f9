//! The statements of a file that ships with the library, and which table each is about.

/// The statements, without the separators.
pub(super) fn split(text: &str) -> Vec<&str> {
    let (mut out, mut begin, mut at) = (Vec::new(), 0, 0);
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with("--") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else if rest.starts_with("/*") {
            at += rest.find("*/").map_or(rest.len(), |end| end + 2);
        } else if let Some(quote) = rest.chars().next().filter(|c| matches!(c, '\'' | '"')) {
            at += rest[1..].find(quote).map_or(rest.len(), |end| end + 2);
        } else if let Some(tag) = dollar_tag(rest) {
            at += rest[tag.len()..].find(tag).map_or(rest.len(), |end| end + 2 * tag.len());
        } else if rest.starts_with(';') {
            out.push(&text[begin..at]);
            at += 1;
            begin = at;
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    out.push(&text[begin..]);
    out.into_iter().filter(|s| !code(s).is_empty()).collect()
}

fn dollar_tag(rest: &str) -> Option<&str> {
    let inside = rest.strip_prefix('$')?;
    let end = inside.find('$')?;
    inside[..end].bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_').then(|| &rest[..end + 2])
}

/// The statement without the comments in front of it.
pub(super) fn code(statement: &str) -> &str {
    let mut rest = statement.trim();
    loop {
        rest = if rest.starts_with("--") {
            rest.split_once('\n').map_or("", |(_, rest)| rest).trim_start()
        } else if rest.starts_with("/*") {
            rest.split_once("*/").map_or("", |(_, rest)| rest).trim_start()
        } else {
            return rest;
        };
    }
}

/// What a statement does to tables that may have existed before.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Act<'a> {
    CreateTable(&'a str),
    /// Anything else that defines the table: columns, constraints, indexes, comments.
    Shape(&'a str),
    CreateType(&'a str),
    DropIndex(&'a str),
    EnableRowSecurity(&'a str),
    /// Grants rights to users or revokes them.
    Rights(&'a str),
    Other,
}

pub(super) fn act(statement: &str) -> Act<'_> {
    let text = code(statement);
    let words: Vec<&str> = text.split(|c: char| c.is_whitespace() || c == '(').filter(|w| !w.is_empty()).collect();
    let word = |n: usize| words.get(n).copied().unwrap_or_default();
    let after = |name: &str| words.iter().position(|w| *w == name).map_or("", |n| word(n + 1)).trim_end_matches(',');
    match (word(0), word(1)) {
        ("create", "table") => Act::CreateTable(word(2)),
        ("alter", "table") if text.ends_with("enable row level security") => Act::EnableRowSecurity(word(2)),
        ("alter", "table") => Act::Shape(word(2)),
        ("create", "index") | ("create", "unique") => Act::Shape(after("on")),
        ("create", "type") => Act::CreateType(word(2)),
        ("drop", "index") => Act::DropIndex(word(2)),
        ("comment", "on") if word(2) == "table" => Act::Shape(word(3)),
        ("comment", "on") if word(2) == "column" => Act::Shape(word(3).rsplit_once('.').map_or("", |(table, _)| table)),
        ("revoke", _) if !matches!(after("on"), "function" | "all" | "sequence") => Act::Rights(after("on")),
        ("grant", _) if text.contains(" to authenticated") && !matches!(after("on"), "function" | "all" | "sequence") => {
            Act::Rights(after("on"))
        }
        // Restrictive policies and policies for our own roles stay: they give users no additional access.
        ("create", "policy") if text.contains(" to authenticated") && !text.contains(" as restrictive ") => Act::Rights(after("on")),
        _ => Act::Other,
    }
}

/// The function or view in schema public that a file creates, as `function public.f(integer)` or `view public.v`.
pub(super) fn made_in_public(text: &str) -> Option<(&'static str, String)> {
    split(text).into_iter().find_map(|statement| {
        let text = code(statement).strip_prefix("create or replace ")?;
        if let Some(rest) = text.strip_prefix("view public.") {
            let name = rest.split(|c: char| !(c.is_alphanumeric() || c == '_')).next()?;
            return Some(("view", format!("public.{name}")));
        }
        let rest = text.strip_prefix("function public.")?;
        let (name, rest) = rest.split_once('(')?;
        Some(("function", format!("public.{name}({})", argument_types(rest))))
    })
}

/// The types of `p_a integer default 10, p_b text) returns …`.
fn argument_types(rest: &str) -> String {
    let mut depth = 0;
    let end = rest
        .find(|c| {
            depth += match c {
                '(' => 1,
                ')' => -1,
                _ => 0,
            };
            depth < 0
        })
        .unwrap_or(rest.len());
    let types: Vec<&str> = rest[..end]
        .split(',')
        .map(|argument| argument.split(" default ").next().unwrap_or_default().trim())
        .filter_map(|argument| argument.split_once(char::is_whitespace).map(|(_, data_type)| data_type.trim()))
        .collect();
    types.join(", ")
}

#[cfg(test)]
mod tests;
