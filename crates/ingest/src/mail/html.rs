//! Converts HTML to the text a person would read, in one pass and without a tree: anyone may send us a mail, and the cost of
//! rendering it must be linear in its length, however deep or broken the HTML is (tree renderers were measured to take minutes on
//! 100 KB of `<div>`).

use encoding_rs::WINDOWS_1252;
use mail_parser::decoders::html::add_html_token;

/// Elements whose content is not shown.
const UNREAD: [&str; 4] = ["script", "style", "title", "template"];
/// Elements that start and end a line.
const LINES: [&str; 24] = [
    "address",
    "article",
    "aside",
    "body",
    "caption",
    "center",
    "dd",
    "div",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "head",
    "header",
    "hr",
    "html",
    "main",
    "nav",
    "option",
    "section",
    "tr",
    "li",
];
/// Elements separated by an empty line.
const PARAGRAPHS: [&str; 14] = ["blockquote", "dl", "h1", "h2", "h3", "h4", "h5", "h6", "ol", "p", "pre", "table", "ul", "details"];
/// Longest entity name is 31 characters.
const LONGEST_ENTITY: usize = 40;

/// The text of an HTML document or fragment: no tags, scripts, styles or comments; blocks on their own lines.
pub fn html_to_text(html: &str) -> String {
    let mut page = Page::default();
    let mut rest = html;
    while let Some(start) = rest.find('<') {
        page.write(&rest[..start]);
        rest = &rest[start..];
        rest = match Piece::at(rest) {
            Piece::Tag { name, closing, rest } => {
                page.tag(&name, closing);
                if !closing && UNREAD.contains(&name.as_str()) { after_closing(rest, &name) } else { rest }
            }
            Piece::Remark { rest } => rest,
            Piece::Text => {
                page.write("<");
                &rest[1..]
            }
        };
    }
    page.write(rest);
    page.text
}

/// What follows a `<`.
enum Piece<'a> {
    Tag {
        name: String,
        closing: bool,
        rest: &'a str,
    },
    /// A comment, a doctype, a processing instruction.
    Remark {
        rest: &'a str,
    },
    /// Just a `<`.
    Text,
}

impl<'a> Piece<'a> {
    fn at(markup: &'a str) -> Self {
        let inside = &markup[1..];
        if let Some(comment) = inside.strip_prefix("!--") {
            // `<!-->` is a complete comment. One that never ends hides the rest, as in a browser.
            let rest = comment.strip_prefix('>').or_else(|| comment.split_once("-->").map(|(_, rest)| rest));
            return Self::Remark { rest: rest.unwrap_or_default() };
        }
        if inside.starts_with(['!', '?']) {
            return Self::Remark { rest: inside.split_once('>').map_or("", |(_, rest)| rest) };
        }
        let (closing, name) = inside.strip_prefix('/').map_or((false, inside), |name| (true, name));
        if !name.starts_with(|first: char| first.is_ascii_alphabetic()) {
            return Self::Text;
        }
        let end = name.find(|c: char| c.is_ascii_whitespace() || c == '>' || c == '/').unwrap_or(name.len());
        Self::Tag { name: name[..end].to_ascii_lowercase(), closing, rest: after_tag(&name[end..]) }
    }
}

/// The text after the `>` of a tag. A `>` inside a quoted value does not end the tag; a quote opens only right after `=`.
fn after_tag(attributes: &str) -> &str {
    let (mut quote, mut previous) = (None, b' ');
    for (at, byte) in attributes.bytes().enumerate() {
        match quote {
            Some(open) if byte == open => quote = None,
            Some(_) => {}
            None if byte == b'>' => return &attributes[at + 1..],
            None if previous == b'=' && matches!(byte, b'"' | b'\'') => quote = Some(byte),
            None => {}
        }
        if !byte.is_ascii_whitespace() {
            previous = byte;
        }
    }
    ""
}

/// The text after `</name` and its `>`.
fn after_closing<'a>(markup: &'a str, name: &str) -> &'a str {
    let mut rest = markup;
    while let Some(start) = rest.find("</") {
        rest = &rest[start + 2..];
        if rest.get(..name.len()).is_some_and(|found| found.eq_ignore_ascii_case(name)) {
            return after_tag(&rest[name.len()..]);
        }
    }
    ""
}

/// Text being laid out.
#[derive(Default)]
struct Page {
    text: String,
    /// The white space between the last character and the next one.
    gap: Gap,
    /// The nesting depth of `<pre>`.
    preformatted: usize,
}

#[derive(Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Gap {
    #[default]
    None,
    Space,
    Line,
    Paragraph,
}

impl Page {
    fn tag(&mut self, name: &str, closing: bool) {
        match name {
            "br" => self.gap = if self.gap >= Gap::Line { Gap::Paragraph } else { Gap::Line },
            "td" | "th" => self.widen(Gap::Space),
            _ if PARAGRAPHS.contains(&name) => self.widen(Gap::Paragraph),
            _ if LINES.contains(&name) => self.widen(Gap::Line),
            _ => {}
        }
        match (name, closing) {
            ("pre", false) => self.preformatted += 1,
            ("pre", true) => self.preformatted = self.preformatted.saturating_sub(1),
            ("li", false) => {
                self.write("-");
                self.widen(Gap::Space);
            }
            _ => {}
        }
    }

    fn widen(&mut self, gap: Gap) {
        self.gap = self.gap.max(gap);
    }

    /// Writes text between tags, with its entities.
    fn write(&mut self, mut source: &str) {
        while let Some(start) = source.find('&') {
            self.put(&source[..start]);
            source = &source[start..];
            let length = match entity(source) {
                Some((decoded, length)) => {
                    self.put(&decoded);
                    length
                }
                None => {
                    self.put("&");
                    1
                }
            };
            source = &source[length..];
        }
        self.put(source);
    }

    fn put(&mut self, text: &str) {
        for character in text.chars() {
            if character.is_whitespace() && (self.preformatted == 0 || self.text.is_empty()) {
                self.widen(Gap::Space);
                continue;
            }
            if !self.text.is_empty() {
                self.text.push_str(match self.gap {
                    Gap::None => "",
                    Gap::Space => " ",
                    Gap::Line => "\n",
                    Gap::Paragraph => "\n\n",
                });
            }
            self.gap = Gap::None;
            self.text.push(character);
        }
    }
}

/// The entity at the start of this text and its length, when it is one.
fn entity(text: &str) -> Option<(String, usize)> {
    let end = text.bytes().take(LONGEST_ENTITY).position(|byte| byte == b';')?;
    let token = &text[..=end];
    let mut decoded = String::new();
    add_html_token(&mut decoded, token.as_bytes(), false);
    if decoded == token {
        return None;
    }
    // Numbers 128 to 159 mean Windows-1252 in every browser, and old mail programs rely on it.
    if let Some(byte @ 0x80..=0x9f) = decoded.chars().next().and_then(|first| u8::try_from(u32::from(first)).ok()) {
        decoded = WINDOWS_1252.decode_without_bom_handling(&[byte]).0.into_owned();
    }
    Some((decoded, token.len()))
}

#[cfg(test)]
mod tests;
