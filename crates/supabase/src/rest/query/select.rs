//! `select=id,alias:data->>key,created_at::text,sales!hint!inner(first_name)`.

use gleaner_http::WireError;
use http::StatusCode;

use super::cursor::{Cursor, DEEPEST};
use super::field::{self, Field};

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Item {
    All,
    Column { alias: Option<String>, field: Field, cast: Option<String> },
    Embed(Embed),
}

/// Rows of another table that are related to the row.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Embed {
    pub alias: Option<String>,
    pub target: String,
    /// The foreign key or column to use, where several are possible.
    pub hint: Option<String>,
    /// Rows without embedded rows are left out.
    pub inner: bool,
    /// `...rel(a)`: the columns become columns of the row itself.
    pub spread: bool,
    pub items: Vec<Item>,
}

impl Embed {
    /// What the resource is called in this request.
    pub(crate) fn name(&self) -> &str {
        self.alias.as_deref().unwrap_or(&self.target)
    }
}

/// The embedded resource of this name, or of this table.
pub(crate) fn find<'a>(items: &'a [Item], name: &str) -> Option<&'a Embed> {
    let embeds = || items.iter().filter_map(|item| if let Item::Embed(embed) = item { Some(embed) } else { None });
    embeds().find(|embed| embed.name() == name).or_else(|| embeds().find(|embed| embed.target == name))
}

pub(super) fn parse(value: &str) -> Result<Vec<Item>, WireError> {
    let mut cursor = Cursor::new("select parameter", value);
    let items = parse_items(&mut cursor, 0)?;
    cursor.end()?;
    Ok(items)
}

fn parse_items(cursor: &mut Cursor<'_>, depth: usize) -> Result<Vec<Item>, WireError> {
    if depth > DEEPEST {
        return Err(cursor.error("less nesting"));
    }
    let mut items = Vec::new();
    loop {
        cursor.skip_spaces();
        items.push(parse_item(cursor, depth)?);
        cursor.skip_spaces();
        if !cursor.eat(",") {
            return Ok(items);
        }
    }
}

fn parse_item(cursor: &mut Cursor<'_>, depth: usize) -> Result<Item, WireError> {
    if cursor.eat("*") {
        return Ok(Item::All);
    }
    if cursor.eat("...") {
        let target = cursor.name()?;
        return parse_embed(cursor, None, target, true, depth);
    }
    let mut name = cursor.name()?;
    let mut alias = None;
    cursor.skip_spaces();
    if cursor.is_at(":") && !cursor.is_at("::") {
        cursor.eat(":");
        cursor.skip_spaces();
        alias = Some(name);
        name = cursor.name()?;
    }
    if cursor.is_at("!") || cursor.is_at("(") {
        return parse_embed(cursor, alias, name, false, depth);
    }
    let path = field::parse_path(cursor)?;
    let cast = if cursor.eat("::") { Some(parse_cast(cursor)?) } else { None };
    if AGGREGATES.iter().any(|aggregate| cursor.is_at(aggregate)) {
        return Err(aggregate());
    }
    Ok(Item::Column { alias, field: Field { name, path }, cast })
}

const AGGREGATES: [&str; 5] = [".sum(", ".avg(", ".count(", ".max(", ".min("];

fn parse_embed(cursor: &mut Cursor<'_>, alias: Option<String>, target: String, spread: bool, depth: usize) -> Result<Item, WireError> {
    let mut embed = Embed { alias, target, hint: None, inner: false, spread, items: Vec::new() };
    while cursor.eat("!") {
        match cursor.name()? {
            join if join == "inner" => embed.inner = true,
            join if join == "left" => {}
            hint => embed.hint = Some(hint),
        }
    }
    cursor.expect("(")?;
    cursor.skip_spaces();
    if cursor.eat(")") {
        if embed.target == "count" {
            return Err(aggregate());
        }
        return Ok(Item::Embed(embed));
    }
    embed.items = parse_items(cursor, depth + 1)?;
    cursor.expect(")")?;
    Ok(Item::Embed(embed))
}

/// The name of a type, with spaces and brackets: `double precision`, `text[]`.
fn parse_cast(cursor: &mut Cursor<'_>) -> Result<String, WireError> {
    let mut name = cursor.name()?;
    while cursor.eat("[]") {
        name.push_str("[]");
    }
    Ok(name)
}

/// As hosted Supabase answers when aggregates are disabled.
fn aggregate() -> WireError {
    WireError::new(StatusCode::BAD_REQUEST, "PGRST123", "Use of aggregate functions is not allowed")
        .hint("Count rows with the preference count=exact, or embedded rows with rel(count); aggregate in a view or function.")
}
