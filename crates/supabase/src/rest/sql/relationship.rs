//! How two tables or views are related: by a foreign key in either direction, by two foreign keys of a junction table, or by a
//! function of the row.

mod unclear;

use gleaner_http::WireError;

use crate::rest::catalogue::{Catalogue, Computed, ForeignKey, Gives, Relation};
use crate::rest::query::Embed;
use unclear::{none, several};

#[derive(Debug)]
pub(super) struct Relationship<'a> {
    pub target: &'a Relation,
    /// Any number of rows may be related to one of ours: the foreign key is in the other table or in a junction.
    pub many: bool,
    /// The catalogue's name of the table, or of the foreign key, column or function by which the client named it.
    pub name: &'a str,
    pub link: Link<'a>,
}

/// What relates the two.
#[derive(Debug)]
pub(super) enum Link<'a> {
    Keys {
        /// Columns of this and of the other table that must be equal. The other table is the junction, where there is one.
        pairs: Vec<(&'a str, &'a str)>,
        junction: Option<Junction<'a>>,
        key: &'a ForeignKey,
        way: Way,
    },
    /// A function of our row. `set`: it returns a set, in which there is no row of nulls for none.
    Computed { function: &'a Computed, set: bool },
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
pub(super) enum Way {
    Here,
    There,
    Between,
}

pub(super) fn find<'a>(catalogue: &'a Catalogue, from: &'a Relation, embed: &Embed) -> Result<Relationship<'a>, WireError> {
    if let Some(computed) = computed(catalogue, from, &embed.target) {
        return Ok(computed);
    }
    let hint = embed.hint.as_deref();
    let mut found: Vec<Relationship<'a>> = to_one(catalogue, from, &embed.target).collect();
    found.extend(to_many(catalogue, from, &embed.target));
    found.extend(through(catalogue, from, &embed.target, hint));
    if let Some(hint) = hint {
        found.retain(|relationship| relationship.is_meant(hint));
    }
    // A foreign key within one table works both ways: its own name and its column lead up (`parent(*)`), the table's name leads
    // down (`t(*)`, `t!parent(*)`).
    let is_within = |relationship: &Relationship<'_>| std::ptr::eq(relationship.target, from);
    if embed.target == from.name && found.iter().any(|relationship| is_within(relationship) && relationship.way() == Some(Way::There)) {
        found.retain(|relationship| relationship.way() != Some(Way::Here) || !is_within(relationship));
    }
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(none(from, embed)),
        _ => Err(several(from, embed, &found)),
    }
}

/// A function of our row that returns rows. It replaces what foreign keys offer under its name.
fn computed<'a>(catalogue: &'a Catalogue, from: &'a Relation, target: &str) -> Option<Relationship<'a>> {
    from.computed.iter().filter(|computed| computed.name == target).find_map(|function| {
        let Gives::Rows { relation, many, set } = &function.gives else { return None };
        let target = catalogue.relation(&relation.schema, &relation.name)?;
        Some(Relationship { target, many: *many, name: &function.name, link: Link::Computed { function, set: *set } })
    })
}

/// Foreign keys of ours, named by their target, by themselves, or by their column.
fn to_one<'a>(catalogue: &'a Catalogue, from: &'a Relation, target: &str) -> impl Iterator<Item = Relationship<'a>> {
    let same_schema = from.foreign_keys.iter().any(|key| key.relation == target && key.schema == from.schema);
    from.foreign_keys.iter().filter_map(move |key| {
        let relation = catalogue.relation(&key.schema, &key.relation)?;
        let table = (key.relation == target && (!same_schema || key.schema == from.schema)).then_some(&relation.name);
        // Views of a table are used only where they are named, or where they are the one that is read.
        let named = !relation.view || std::ptr::eq(&**relation, from);
        let own = (key.name == target && named).then_some(&key.name);
        let column = key.columns.iter().find(|column| key.columns.len() == 1 && *column == target && named);
        let name = table.or(own).or(column)?;
        let link = Link::Keys { pairs: paired(&key.columns, &key.referenced), junction: None, key, way: Way::Here };
        Some(Relationship { target: relation, many: false, name, link })
    })
}

/// Foreign keys of other relations that lead here, named by their relation or by themselves.
fn to_many<'a>(catalogue: &'a Catalogue, from: &'a Relation, target: &str) -> impl Iterator<Item = Relationship<'a>> {
    let relations = catalogue.schemas.get(&from.schema).into_iter().flat_map(|schema| schema.relations.values());
    relations.flat_map(move |relation| {
        let by_name = relation.name == target;
        let keys = relation.foreign_keys.iter().filter(move |key| leads_to(key, from));
        keys.filter(move |key| by_name || (key.name == target && !relation.view && !std::ptr::eq(&**relation, from))).map(move |key| {
            let link = Link::Keys { pairs: paired(&key.referenced, &key.columns), junction: None, key, way: Way::There };
            Relationship { target: relation, many: !key.unique, name: if by_name { &relation.name } else { &key.name }, link }
        })
    })
}

/// Two foreign keys of a junction table, one to this relation and one to the target.
fn through<'a>(catalogue: &'a Catalogue, from: &'a Relation, target: &str, hint: Option<&str>) -> impl Iterator<Item = Relationship<'a>> {
    let target = catalogue.relation(&from.schema, target);
    let junctions = || catalogue.schemas.values().flat_map(|schema| schema.relations.values());
    target.into_iter().flat_map(move |target| {
        junctions().flat_map(move |junction| {
            let named = hint == Some(&junction.name);
            let joins = move |key: &&ForeignKey| key.joins && (named || !key.repeats);
            let to = move |relation: &'a Relation| junction.foreign_keys.iter().filter(joins).filter(move |key| leads_to(key, relation));
            to(from).flat_map(move |near| {
                to(target).filter(move |far| far.name != near.name).map(move |far| {
                    let between = Junction { relation: junction, pairs: paired(&far.columns, &far.referenced) };
                    let pairs = paired(&near.referenced, &near.columns);
                    let link = Link::Keys { pairs, junction: Some(between), key: far, way: Way::Between };
                    Relationship { target, many: true, name: &target.name, link }
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
    fn way(&self) -> Option<Way> {
        match &self.link {
            Link::Keys { way, .. } => Some(*way),
            Link::Computed { .. } => None,
        }
    }

    /// Whether the client's hint names it: by its foreign key or the column on either side, or by the junction.
    fn is_meant(&self, hint: &str) -> bool {
        match &self.link {
            Link::Keys { junction: Some(junction), .. } => junction.relation.name == hint,
            Link::Keys { key, .. } => {
                let single = key.referenced.len() == 1 && key.referenced[0] == hint;
                key.name == hint || key.columns.iter().any(|column| column == hint) || single
            }
            Link::Computed { function, .. } => function.name == hint,
        }
    }
}
