//! How two tables belong together: by a foreign key, in one direction or the other.

use http::StatusCode;

use crate::rest::catalogue::{Catalogue, ForeignKey, Relation};
use crate::rest::query::Embed;
use crate::wire_error::WireError;

#[derive(Debug)]
pub(super) struct Relationship<'a> {
    pub target: &'a Relation,
    /// Columns here and there that must be equal.
    pub pairs: Vec<(&'a str, &'a str)>,
    /// Any number of rows belong to one of ours: the foreign key is there.
    pub many: bool,
    /// What the catalogue calls it: a table, or the foreign key or column the client named it by.
    pub name: &'a str,
    key: &'a ForeignKey,
}

pub(super) fn find<'a>(catalogue: &'a Catalogue, from: &'a Relation, embed: &Embed) -> Result<Relationship<'a>, WireError> {
    let mut found: Vec<Relationship<'a>> = to_one(catalogue, from, &embed.target).chain(to_many(catalogue, from, &embed.target)).collect();
    if let Some(hint) = &embed.hint {
        found.retain(|relationship| is_meant(relationship.key, hint));
    }
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(none(from, embed)),
        _ => Err(several(from, embed, &found)),
    }
}

/// Foreign keys of ours: named by the table they lead to, by themselves, or by their column.
fn to_one<'a>(catalogue: &'a Catalogue, from: &'a Relation, target: &str) -> impl Iterator<Item = Relationship<'a>> {
    from.foreign_keys.iter().filter_map(move |key| {
        let relation = catalogue.relation(&key.schema, &key.relation)?;
        let column = key.columns.iter().find(|column| key.columns.len() == 1 && *column == target);
        let own = (key.name == target).then_some(&key.name);
        let table = (key.relation == target).then_some(&relation.name);
        let name = table.or(own).or(column)?;
        let pairs = key.columns.iter().zip(&key.referenced).map(|(here, there)| (here.as_str(), there.as_str())).collect();
        Some(Relationship { target: relation, pairs, many: false, name, key })
    })
}

/// Foreign keys of others that lead here.
fn to_many<'a>(catalogue: &'a Catalogue, from: &'a Relation, target: &str) -> impl Iterator<Item = Relationship<'a>> {
    let relations = catalogue.schemas.get(&from.schema).and_then(|schema| schema.relations.get(target));
    relations.into_iter().flat_map(move |relation| {
        let keys = relation.foreign_keys.iter().filter(|key| key.schema == from.schema && key.relation == from.name);
        keys.map(|key| {
            let pairs = key.referenced.iter().zip(&key.columns).map(|(here, there)| (here.as_str(), there.as_str())).collect();
            Relationship { target: relation, pairs, many: !relation.is_unique(&key.columns), name: &relation.name, key }
        })
    })
}

fn is_meant(key: &ForeignKey, hint: &str) -> bool {
    key.name == hint || key.columns.iter().any(|column| column == hint)
}

fn none(from: &Relation, embed: &Embed) -> WireError {
    let (here, there) = (&from.name, &embed.target);
    let message = format!("Could not find a relationship between '{here}' and '{there}' in the schema cache");
    let hinted = embed.hint.as_ref().map_or(String::new(), |hint| format!(" using the hint '{hint}'"));
    let details = format!(
        "Searched for a foreign key relationship between '{here}' and '{there}'{hinted} in the schema '{}', but no matches were found.",
        from.schema
    );
    WireError::new(StatusCode::BAD_REQUEST, "PGRST200", message).details(details)
}

fn several(from: &Relation, embed: &Embed, found: &[Relationship<'_>]) -> WireError {
    let (here, there) = (&from.name, &embed.target);
    let describe = |relationship: &Relationship<'_>| {
        let way = if relationship.many { "one-to-many" } else { "many-to-one" };
        format!("{} ({way}, {here} with {})", relationship.key.name, relationship.target.name)
    };
    let details: Vec<_> = found.iter().map(describe).collect();
    let choices: Vec<_> = found.iter().map(|relationship| format!("'{there}!{}'", relationship.key.name)).collect();
    let message = format!("Could not embed because more than one relationship was found for '{here}' and '{there}'");
    WireError::new(StatusCode::MULTIPLE_CHOICES, "PGRST201", message).details(details.join("; ")).hint(format!(
        "Try changing '{there}' to one of the following: {}. Find the desired relationship in the 'details' key.",
        choices.join(", ")
    ))
}
