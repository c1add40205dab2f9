//! Who works, as claims and acts show it.

use std::collections::HashSet;

use gleaner::queue::{Answer, Item};
use gleaner::{Declaration, Outcome};

use super::claim::Text;
use crate::access::Caller;
use crate::nodes::{Given, Named, Node, Nodes, Who};

/// The table whose rows are shown as what a device works on.
const ACTIVITIES: &str = "public.activities";
/// The table of the people whose devices are shown.
const PEOPLE: &str = "public.sales";

/// The device that claims; none when it works for nobody in particular.
pub fn by(caller: &Caller, declaration: &Declaration, named: Named, owner: Option<&Text>) -> Option<Node> {
    let owned_by_people = declaration.owner.as_ref().and_then(|owner| owner.table.as_deref()) == Some(PEOPLE);
    let owner = owner.filter(|_| owned_by_people).and_then(|owner| owner.to_string().parse().ok());
    named.by(Who::of(caller, owner))
}

pub fn gave(nodes: &Nodes, node: &Node, queue: &str, declaration: &Declaration, items: &[Item]) {
    let are_activities = declaration.table == ACTIVITIES;
    let given = items.iter().map(|item| Given {
        key: &item.key,
        lease: Some(item.lease),
        activity: if are_activities { item.key.parse().ok() } else { None },
        lease_for: item.lease_for,
    });
    nodes.gave(node, queue, given);
}

/// These acts ended the work on rows: those whose lease was good.
pub fn ended(nodes: &Nodes, queue: &str, leases: &[(String, i64)], answers: &[Answer], completed: bool) {
    let done: HashSet<&str> = answers.iter().filter(|answer| answer.outcome == Outcome::Done).map(|answer| answer.key.as_str()).collect();
    let good = leases.iter().map(|(key, lease)| (key.as_str(), *lease)).filter(|(key, _)| done.contains(key));
    nodes.ended(queue, good, completed);
}
