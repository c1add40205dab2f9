use super::*;

#[test]
fn a_lowered_limit_holds_as_soon_as_enough_have_ended() {
    let limit = Limit::new(4);
    let mut taken = limit.free_slots(4);
    limit.set(2);
    assert!(limit.is_exhausted());
    drop(taken.take(2));
    assert!(limit.is_exhausted(), "two run, and two may");
    drop(taken.take(1));
    taken.add(limit.free_slots(9));
    assert!(taken.count() == 2 && limit.is_exhausted());
}

#[test]
fn a_raised_limit_holds_at_once_and_pays_what_is_owed_first() {
    let limit = Limit::new(3);
    let taken = limit.free_slots(3);
    limit.set(1);
    limit.set(4);
    let more = limit.free_slots(9);
    assert_eq!((taken.count(), more.count()), (3, 1));
    drop((taken, more));
    assert_eq!(limit.free_slots(9).count(), 4);
}
