//! A position in a text that is being parsed.

use gleaner_http::WireError;
use http::StatusCode;

/// How deep logic and embedding may nest: far beyond real requests, and safe for our stack and PostgreSQL's.
pub(super) const DEEPEST: usize = 24;

#[derive(Debug, Clone)]
pub(super) struct Cursor<'a> {
    /// What is being parsed, for messages: `filter`, `select parameter`.
    what: &'static str,
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(what: &'static str, text: &'a str) -> Self {
        Self { what, text, at: 0 }
    }

    pub(super) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(super) fn is_at(&self, token: &str) -> bool {
        self.rest().starts_with(token)
    }

    /// Skips `token` if it comes next.
    pub(super) fn eat(&mut self, token: &str) -> bool {
        let found = self.is_at(token);
        if found {
            self.at += token.len();
        }
        found
    }

    pub(super) fn expect(&mut self, token: &'static str) -> Result<(), WireError> {
        if self.eat(token) { Ok(()) } else { Err(self.error(&format!("\"{token}\""))) }
    }

    pub(super) fn end(&self) -> Result<(), WireError> {
        if self.rest().is_empty() { Ok(()) } else { Err(self.error("end of input")) }
    }

    pub(super) fn skip_spaces(&mut self) {
        self.take_while(char::is_whitespace);
    }

    pub(super) fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.find(|c| !wanted(c)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    pub(super) fn take_rest(&mut self) -> &'a str {
        let rest = self.rest();
        self.at = self.text.len();
        rest
    }

    /// A name: quoted, or as many letters as follow. A hyphen belongs to it unless an arrow begins there.
    pub(super) fn name(&mut self) -> Result<String, WireError> {
        if self.peek() == Some('"') {
            return self.quoted();
        }
        let rest = self.rest();
        let end = rest
            .char_indices()
            .find(|&(at, c)| !(c.is_alphanumeric() || matches!(c, '_' | '$' | ' ') || (c == '-' && !rest[at..].starts_with("->"))))
            .map_or(rest.len(), |(at, _)| at);
        let name = rest[..end].trim();
        if name.is_empty() {
            return Err(self.error("a name (* or a-z A-Z 0-9 _ $)"));
        }
        self.at += end;
        Ok(name.to_owned())
    }

    /// A text in double quotes. A backslash escapes the next character.
    pub(super) fn quoted(&mut self) -> Result<String, WireError> {
        self.expect("\"")?;
        let mut value = String::new();
        let mut characters = self.rest().char_indices();
        while let Some((at, c)) = characters.next() {
            match c {
                '"' => {
                    self.at += at + 1;
                    return Ok(value);
                }
                '\\' => match characters.next() {
                    Some((_, escaped)) => value.push(escaped),
                    None => break,
                },
                _ => value.push(c),
            }
        }
        self.at = self.text.len();
        Err(self.error("a closing quote"))
    }

    pub(super) fn error(&self, expecting: &str) -> WireError {
        let column = self.text[..self.at].chars().count() + 1;
        let unexpected = self.peek().map_or("end of input".to_owned(), |c| format!("\"{c}\""));
        let message = format!("\"failed to parse {} ({})\" (line 1, column {column})", self.what, self.text);
        WireError::new(StatusCode::BAD_REQUEST, "PGRST100", message).details(format!("unexpected {unexpected} expecting {expecting}"))
    }
}
