//! What is said when a name means no relationship, or several.

use gleaner_http::WireError;
use http::StatusCode;

use super::{Link, Relationship, Way};
use crate::rest::catalogue::Relation;
use crate::rest::query::Embed;

pub(super) fn none(from: &Relation, embed: &Embed) -> WireError {
    let (here, there) = (&from.name, &embed.target);
    let message = format!("Could not find a relationship between '{here}' and '{there}' in the schema cache");
    let hinted = embed.hint.as_ref().map_or(String::new(), |hint| format!(" using the hint '{hint}'"));
    let details = format!(
        "Searched for a foreign key relationship between '{here}' and '{there}'{hinted} in the schema '{}', but no matches were found.",
        from.schema
    );
    WireError::new(StatusCode::BAD_REQUEST, "PGRST200", message).details(details)
}

pub(super) fn several(from: &Relation, embed: &Embed, found: &[Relationship<'_>]) -> WireError {
    let (here, there) = (&from.name, &embed.target);
    let describe = |relationship: &Relationship<'_>| {
        format!("{} ({}, {here} with {})", hint(relationship), cardinality(relationship), relationship.target.name)
    };
    let details: Vec<_> = found.iter().map(describe).collect();
    let choices: Vec<_> = found.iter().map(|relationship| format!("'{there}!{}'", hint(relationship))).collect();
    let message = format!("Could not embed because more than one relationship was found for '{here}' and '{there}'");
    WireError::new(StatusCode::MULTIPLE_CHOICES, "PGRST201", message).details(details.join("; ")).hint(format!(
        "Try changing '{there}' to one of the following: {}. Find the desired relationship in the 'details' key.",
        choices.join(", ")
    ))
}

/// What distinguishes it from other relationships between the same two relations.
fn hint<'a>(relationship: &'a Relationship<'_>) -> &'a str {
    match &relationship.link {
        Link::Keys { junction: Some(junction), .. } => &junction.relation.name,
        Link::Keys { key, .. } => &key.name,
        Link::Computed { function, .. } => &function.name,
    }
}

fn cardinality(relationship: &Relationship<'_>) -> &'static str {
    match &relationship.link {
        Link::Keys { way: Way::Between, .. } => "many-to-many",
        Link::Keys { way: Way::There, .. } if relationship.many => "one-to-many",
        Link::Keys { way: Way::Here, key, .. } if !key.unique => "many-to-one",
        _ => "one-to-one",
    }
}
