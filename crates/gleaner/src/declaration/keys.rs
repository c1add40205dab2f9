//! The keys of a declaration, and every mistake in how they are written. Runs before the values are compared with a table.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Declaration;
use crate::error::{Error, Result};
use crate::plan::Mistake;

impl Declaration {
    /// Reads a declaration; `stem` is the queue's name when the file does not give one. All mistakes in its keys are in one error.
    pub fn parse(source: &str, stem: &str) -> Result<Self> {
        let name = stem.replace('-', "_");
        let syntax = |source| Error::Syntax { file: format!("{stem}.toml"), source };
        let mistakes = mistakes(source).map_err(syntax)?;
        if !mistakes.is_empty() {
            return Err(Error::Declaration { queue: name, mistakes });
        }
        let mut declaration: Self = toml::from_str(source).map_err(syntax)?;
        declaration.name.get_or_insert(name);
        Ok(declaration)
    }
}

/// The kind of value a key has.
enum Shape {
    Text,
    /// A table of keys, the key to which a plain string most likely belongs, and the rest that must be written with it.
    Table {
        keys: &'static [Key],
        first: &'static str,
        rest: &'static str,
    },
    /// Anything else; the typed parser reports what is wrong with it.
    Other,
}

struct Key {
    name: &'static str,
    shape: Shape,
    /// What to write when it is missing; `None` when it is optional.
    required: Option<&'static str>,
}

const fn text(name: &'static str) -> Key {
    Key { name, shape: Shape::Text, required: None }
}

const fn needed(name: &'static str, instead: &'static str) -> Key {
    Key { name, shape: Shape::Text, required: Some(instead) }
}

const fn other(name: &'static str) -> Key {
    Key { name, shape: Shape::Other, required: None }
}

const fn table(name: &'static str, keys: &'static [Key], first: &'static str, rest: &'static str) -> Key {
    Key { name, shape: Shape::Table { keys, first, rest }, required: None }
}

const WORDS: &str = ", ready = \"…\", running = \"…\", done = \"…\", failed = \"…\"";

const STATUS: &[Key] = &[
    needed("column", "write column = \"…\", the column that says how far a row is"),
    needed("ready", "write ready = \"…\", the word of rows that wait"),
    text("claimed"),
    needed("running", "write running = \"…\", the word of rows that are worked on"),
    needed("done", "write done = \"…\", the word of rows that are finished"),
    needed("failed", "write failed = \"…\", the word of rows that failed"),
    text("cancelled"),
];

const OWNER: &[Key] = &[
    needed("column", "write column = \"…\", the column that names the owner"),
    text("table"),
    text("key"),
    text("user"),
    text("disabled"),
    text("open_after"),
    text("shared"),
];

const PRIORITY: &[Key] = &[
    needed("column", "write column = \"…\""),
    Key { name: "classes", shape: Shape::Other, required: Some("write classes = [ … ], the most urgent first") },
    text("head_start"),
];

const HOLDER: &[Key] = &[text("by"), text("at"), other("keep")];
const RETRY: &[Key] = &[other("attempts"), other("backoff"), other("lost_leases"), text("lost"), text("within")];
const GROUPS: &[Key] = &[
    needed("column", "write column = \"…\", the column that names the group of a row"),
    needed("function", "write function = \"schema.name\", which returns the groups of the caller"),
];
const ADMITS: &[Key] = &[
    needed("column", "write column = \"…\", the column that the function is asked about"),
    needed("function", "write function = \"schema.name\", which says whether the caller may operate such a row"),
];
const GRANT: &[Key] = &[
    other("work"),
    other("operate"),
    other("own"),
    table("groups", GROUPS, "column", ", function = \"…\""),
    table("admits", ADMITS, "column", ", function = \"…\""),
];

const DECLARATION: &[Key] = &[
    text("name"),
    needed("table", "write table = \"schema.table\""),
    text("key"),
    text("tenant"),
    Key {
        name: "status",
        shape: Shape::Table { keys: STATUS, first: "column", rest: WORDS },
        required: Some("write status = { column = \"…\", ready = \"…\", running = \"…\", done = \"…\", failed = \"…\" }"),
    },
    table("owner", OWNER, "column", ""),
    text("created"),
    text("due"),
    text("zone"),
    text("kind"),
    table("priority", PRIORITY, "column", ", classes = [ … ]"),
    text("unique"),
    text("payload"),
    text("result"),
    text("progress"),
    text("error"),
    text("recovered"),
    text("attempts"),
    text("finished"),
    table("holder", HOLDER, "by", ""),
    other("hold"),
    other("deadline"),
    table("retry", RETRY, "lost", ""),
    text("dead"),
    text("retain"),
    other("bulk"),
    other("notify"),
    other("adapt_inserts"),
    other("rename"),
    table("grant", GRANT, "work", ""),
];

/// Every mistake in the keys of `source`; an error when it is not valid TOML.
fn mistakes(source: &str) -> Result<Vec<Mistake>, toml::de::Error> {
    let parsed = DeTable::parse(source)?;
    let mut check = Check { source, mistakes: Vec::new() };
    check.table(parsed.get_ref(), DECLARATION, "", None);
    check.mistakes.sort_by_key(|(at, _)| *at);
    Ok(check.mistakes.into_iter().map(|(_, mistake)| mistake).collect())
}

struct Check<'a> {
    source: &'a str,
    /// Each with its position; missing keys come last.
    mistakes: Vec<(usize, Mistake)>,
}

impl Check<'_> {
    fn mistake(&mut self, at: Option<usize>, what: &str, instead: impl Into<String>) {
        let what = match at {
            Some(at) => format!("line {}: {what}", self.source[..at.min(self.source.len())].matches('\n').count() + 1),
            None => what.to_owned(),
        };
        self.mistakes.push((at.unwrap_or(usize::MAX), Mistake { what, instead: instead.into() }));
    }

    fn table(&mut self, found: &DeTable<'_>, keys: &[Key], path: &str, at: Option<usize>) {
        for (name, value) in found {
            match keys.iter().find(|key| key.name == name.get_ref().as_ref()) {
                Some(key) => self.value(key, value, path),
                None => self.unknown(name.get_ref(), name.span().start, found, keys, path),
            }
        }
        for key in keys {
            let misspelt = || found.keys().any(|name| nearest(name.get_ref(), found, keys) == Some(key.name));
            if let Some(instead) = key.required
                && !found.contains_key(key.name)
                && !misspelt()
            {
                self.mistake(at, &format!("{path}{} is missing", key.name), instead);
            }
        }
    }

    fn unknown(&mut self, name: &str, at: usize, found: &DeTable<'_>, keys: &[Key], path: &str) {
        let instead = match nearest(name, found, keys) {
            Some(close) => format!("did you mean {close:?}?"),
            None => format!("there are {}", keys.iter().map(|key| key.name).collect::<Vec<_>>().join(", ")),
        };
        self.mistake(Some(at), &format!("{path}{name}: there is no such key"), instead);
    }

    fn value(&mut self, key: &Key, value: &Spanned<DeValue<'_>>, path: &str) {
        let (name, at) = (format!("{path}{}", key.name), Some(value.span().start));
        match (&key.shape, value.get_ref()) {
            (Shape::Other, _) | (Shape::Text, DeValue::String(_)) => {}
            (Shape::Table { keys, .. }, DeValue::Table(found)) => self.table(found, keys, &format!("{name}."), at),
            (Shape::Table { first, rest, .. }, DeValue::String(text)) => {
                self.mistake(at, &format!("{name} = {text:?} is a text"), format!("write {name} = {{ {first} = {text:?}{rest} }}"));
            }
            (Shape::Table { first, rest, .. }, _) => {
                self.mistake(at, &format!("{name} is no table of keys"), format!("write {name} = {{ {first} = \"…\"{rest} }}"));
            }
            (Shape::Text, _) => self.mistake(at, &format!("{name} is no text"), format!("write {name} = \"…\", in quotes")),
        }
    }
}

/// The key that was most likely meant by `name`: a known key, similar, and not already in the file.
fn nearest(name: &str, found: &DeTable<'_>, keys: &[Key]) -> Option<&'static str> {
    if keys.iter().any(|key| key.name == name) {
        return None;
    }
    keys.iter()
        .filter(|key| !found.contains_key(key.name))
        .map(|key| (strsim::damerau_levenshtein(name, key.name), key.name))
        .min()
        .filter(|(distance, key)| *distance <= 1 + name.len().max(key.len()) / 4)
        .map(|(_, key)| key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistakes_in(source: &str) -> Vec<String> {
        mistakes(source).unwrap().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn all_mistakes_in_keys_are_reported_at_once_with_their_lines() {
        let source = "tabel = 'public.t'\nkind = 5\nowner = 'sales_id'\nzzz = 1\n\n[status]\ncolumn = 's'\nreddy = 'a'\nrunning = 'b'\nfailed = 'd'\n";
        assert_eq!(
            mistakes_in(source),
            [
                "line 1: tabel: there is no such key: did you mean \"table\"?",
                "line 2: kind is no text: write kind = \"…\", in quotes",
                "line 3: owner = \"sales_id\" is a text: write owner = { column = \"sales_id\" }",
                "line 4: zzz: there is no such key: there are name, table, key, tenant, status, owner, created, due, zone, kind, priority, unique, payload, \
                 result, progress, error, recovered, attempts, finished, holder, hold, deadline, retry, dead, retain, bulk, notify, adapt_inserts, \
                 rename, grant",
                "line 6: status.done is missing: write done = \"…\", the word of rows that are finished",
                "line 8: status.reddy: there is no such key: did you mean \"ready\"?",
            ]
        );
    }

    #[test]
    fn a_status_that_is_only_a_column_gets_a_suggestion() {
        assert_eq!(
            mistakes_in("table = 't'\nstatus = 'state'"),
            [
                "line 2: status = \"state\" is a text: write status = { column = \"state\", ready = \"…\", running = \"…\", done = \"…\", failed = \"…\" }"
            ]
        );
    }

    #[test]
    fn an_unknown_key_is_named() {
        let error = Declaration::parse("table = 't'\nownr = 'x'\nstatus = {column='s', ready='a', running='b', done='c', failed='d'}", "t")
            .unwrap_err();
        assert!(error.to_string().contains("ownr"), "{error}");
    }

    /// The typed parser and this list must know the same keys.
    #[test]
    fn the_list_of_keys_is_that_of_the_typed_declaration() {
        let status = "status = { column = 's', ready = 'a', running = 'b', done = 'c', failed = 'd' }";
        for (source, keys) in [
            (format!("nonsense = 1\ntable = 't'\n{status}"), DECLARATION),
            ("table = 't'\nstatus = { nonsense = 1 }".to_owned(), STATUS),
            (format!("table = 't'\n{status}\nowner = {{ nonsense = 1 }}"), OWNER),
            (format!("table = 't'\n{status}\npriority = {{ nonsense = 1 }}"), PRIORITY),
            (format!("table = 't'\n{status}\nholder = {{ nonsense = 1 }}"), HOLDER),
            (format!("table = 't'\n{status}\nretry = {{ nonsense = 1 }}"), RETRY),
            (format!("table = 't'\n{status}\ngrant = {{ nonsense = 1 }}"), GRANT),
        ] {
            let error = toml::from_str::<Declaration>(&source).unwrap_err().to_string();
            let mut known: Vec<&str> = error.split('`').skip(1).step_by(2).filter(|word| *word != "nonsense").collect();
            let mut listed: Vec<&str> = keys.iter().map(|key| key.name).collect();
            known.sort_unstable();
            listed.sort_unstable();
            assert_eq!(listed, known, "{error}");
        }
    }
}
