//! Records which devices work, as shown by claims and acts.

use std::collections::HashSet;

use gleaner::queue::{Answer, Held, Item};
use gleaner::{Declaration, Outcome};
use gleaner_http::Caller;

use super::acts::rows::Text;
use crate::nodes::{ClaimedRow, Named, Node, Nodes, Who};

/// The table whose rows are shown as a device's current work.
const ACTIVITIES: &str = "public.activities";
/// The table of the people whose devices are shown.
const PEOPLE: &str = "public.sales";

/// The device that claims. None when it works for no particular person.
pub(super) fn by(caller: &Caller, declaration: &Declaration, named: Named, owner: Option<&Text>) -> Option<Node> {
    let owned_by_people = declaration.owner.as_ref().and_then(|owner| owner.table.as_deref()) == Some(PEOPLE);
    let owner = owner.filter(|_| owned_by_people).and_then(|owner| owner.to_string().parse().ok());
    named.by(Who::of(caller, owner))
}

pub(super) fn gave(nodes: &Nodes, node: &Node, queue: &str, declaration: &Declaration, items: &[Item]) {
    let are_activities = declaration.table == ACTIVITIES;
    let given = items.iter().map(|item| ClaimedRow {
        key: &item.key,
        lease: Some(item.lease),
        activity: if are_activities { item.key.parse().ok() } else { None },
        lease_for: item.lease_for,
    });
    nodes.gave(node, queue, given);
}

/// Records that these acts ended the work on rows, for those whose lease was valid.
pub(super) fn ended(nodes: &Nodes, queue: &str, held: &[Held], answers: &[Answer], completed: bool) {
    let done: HashSet<&str> = answers.iter().filter(|answer| answer.outcome == Outcome::Done).map(|answer| answer.key.as_str()).collect();
    let good = held.iter().map(|held| (held.key.as_str(), held.lease)).filter(|(key, _)| done.contains(key));
    nodes.ended(queue, good, completed);
}
