//! How two tables or views are related: by a foreign key in either direction, or by two foreign keys of a junction table.

use gleaner_http::WireError;
use http::StatusCode;

use crate::rest::catalogue::{Catalogue, ForeignKey, Relation};
use crate::rest::query::Embed;

#[derive(Debug)]
pub(super) struct Relationship<'a> {
    pub target: &'a Relation,
    /// Columns of this and of the other table that must be equal. The other table is the junction, where there is one.
    pub pairs: Vec<(&'a str, &'a str)>,
    pub junction: Option<Junction<'a>>,
    /// Any number of rows may be related to one of ours: the foreign key is in the other table or in a junction.
    pub many: bool,
    /// The catalogue's name of the table, or of the foreign key or column by which the client named it.
    pub name: &'a str,
    key: &'a ForeignKey,
    way: Way,
}

/// A table whose rows relate our rows to those of the target.
#[derive(Debug)]
pub(super) struct Junction<'a> {
    pub relation: &'a Relation,
    /// Columns of the junction and of the target that must be equal.
    pub pairs: Vec<(&'a str, &'a str)>,
}

/// Where the foreign key is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Here,
    There,
    Between,
}

pub(super) fn find<'a>(catalogue: &'a Catalogue, from: &'a Relation, embed: &Embed) -> Result<Relationship<'a>, WireError> {
    let mut found: Vec<Relationship<'a>> = to_one(catalogue, from, &embed.target).collect();
    found.extend(to_many(catalogue, from, &embed.target));
    found.extend(through(catalogue, from, &embed.target));
    if let Some(hint) = &embed.hint {
        found.retain(|relationship| relationship.is_meant(hint));
    }
    // A foreign key within one table works both ways: its own name and its column lead up (`parent(*)`), a hint down
    // (`t!parent(*)`).
    let is_within = |relationship: &Relationship<'_>| std::ptr::eq(relationship.target, from);
    if embed.hint.is_some() && found.iter().any(|relationship| is_within(relationship) && relationship.way == Way::There) {
        found.retain(|relationship| relationship.way != Way::Here || !is_within(relationship));
    }
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(none(from, embed)),
        _ => Err(several(from, embed, &found)),
    }
}

/// Foreign keys of ours, named by their target, by themselves, or by their column.
fn to_one<'a>(catalogue: &'a Catalogue, from: &'a Relation, target: &str) -> impl Iterator<Item = Relationship<'a>> {
    let same_schema = from.foreign_keys.iter().any(|key| key.relation == target && key.schema == from.schema);
    from.foreign_keys.iter().filter_map(move |key| {
        let relation = catalogue.relation(&key.schema, &key.relation)?;
        let table = (key.relation == target && (!same_schema || key.schema == from.schema)).then_some(&relation.name);
        // Views of a table are used only where they are named.
        let own = (key.name == target && !relation.view).then_some(&key.name);
        let column = key.columns.iter().find(|column| key.columns.len() == 1 && *column == target && !relation.view);
        let name = table.or(own).or(column)?;
        let pairs = paired(&key.columns, &key.referenced);
        Some(Relationship { target: relation, pairs, junction: None, many: false, name, key, way: Way::Here })
    })
}

/// Foreign keys of other relations that lead here.
fn to_many<'a>(catalogue: &'a Catalogue, from: &'a Relation, target: &str) -> impl Iterator<Item = Relationship<'a>> {
    let relation = catalogue.relation(&from.schema, target);
    relation.into_iter().flat_map(move |relation| {
        relation.foreign_keys.iter().filter(|key| leads_to(key, from)).map(|key| {
            let pairs = paired(&key.referenced, &key.columns);
            Relationship { target: relation, pairs, junction: None, many: !key.unique, name: &relation.name, key, way: Way::There }
        })
    })
}

/// Two foreign keys of a junction table, one to this relation and one to the target.
fn through<'a>(catalogue: &'a Catalogue, from: &'a Relation, target: &str) -> impl Iterator<Item = Relationship<'a>> {
    let target = catalogue.relation(&from.schema, target);
    let junctions = || catalogue.schemas.values().flat_map(|schema| schema.relations.values());
    target.into_iter().flat_map(move |target| {
        junctions().flat_map(move |junction| {
            let to = move |relation: &'a Relation| junction.foreign_keys.iter().filter(move |key| key.joins && leads_to(key, relation));
            to(from).flat_map(move |near| {
                to(target).filter(move |far| far.name != near.name).map(move |far| Relationship {
                    target,
                    pairs: paired(&near.referenced, &near.columns),
                    junction: Some(Junction { relation: junction, pairs: paired(&far.columns, &far.referenced) }),
                    many: true,
                    name: &target.name,
                    key: far,
                    way: Way::Between,
                })
            })
        })
    })
}

fn leads_to(key: &ForeignKey, relation: &Relation) -> bool {
    key.schema == relation.schema && key.relation == relation.name
}

fn paired<'a>(here: &'a [String], there: &'a [String]) -> Vec<(&'a str, &'a str)> {
    here.iter().zip(there).map(|(here, there)| (here.as_str(), there.as_str())).collect()
}

impl Relationship<'_> {
    /// Whether the client's hint names it: by its foreign key or a column of that, or by the junction.
    fn is_meant(&self, hint: &str) -> bool {
        match &self.junction {
            Some(junction) => junction.relation.name == hint,
            None => self.key.name == hint || self.key.columns.iter().any(|column| column == hint),
        }
    }

    /// What distinguishes it from other relationships between the same two relations.
    fn hint(&self) -> &str {
        self.junction.as_ref().map_or(&self.key.name, |junction| &junction.relation.name)
    }

    fn cardinality(&self) -> &'static str {
        match self.way {
            Way::Between => "many-to-many",
            Way::There if self.many => "one-to-many",
            Way::Here if !self.key.unique => "many-to-one",
            Way::Here | Way::There => "one-to-one",
        }
    }
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
        format!("{} ({}, {here} with {})", relationship.hint(), relationship.cardinality(), relationship.target.name)
    };
    let details: Vec<_> = found.iter().map(describe).collect();
    let choices: Vec<_> = found.iter().map(|relationship| format!("'{there}!{}'", relationship.hint())).collect();
    let message = format!("Could not embed because more than one relationship was found for '{here}' and '{there}'");
    WireError::new(StatusCode::MULTIPLE_CHOICES, "PGRST201", message).details(details.join("; ")).hint(format!(
        "Try changing '{there}' to one of the following: {}. Find the desired relationship in the 'details' key.",
        choices.join(", ")
    ))
}
