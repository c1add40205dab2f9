use super::*;

const HERE: Network = Some(IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)));
const THERE: Network = Some(IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2)));

#[test]
fn guessing_is_slowed_down_here_and_not_elsewhere() {
    let limits = Limits::default();
    for _ in 0..10 {
        drop(limits.try_password(HERE, "ada@example.com").expect("ten are free"));
    }
    assert!(limits.try_password(HERE, "ada@example.com").is_err());
    assert!(limits.try_password(THERE, "ada@example.com").is_ok(), "the account itself is never locked");
    assert!(limits.try_password(HERE, "bob@example.com").is_ok(), "nor are its neighbours");
}

#[test]
fn a_code_cannot_be_guessed_from_many_networks() {
    let limits = Limits::default();
    let elsewhere = |n: u8| Some(IpAddr::V4(std::net::Ipv4Addr::new(198, 51, 100, n)));
    let tried = (0..200).filter(|n| limits.try_code(elsewhere(*n), "ada@example.com").is_ok()).count();
    assert!((10..13).contains(&tried), "{tried}");
    assert!(limits.try_code(HERE, "bob@example.com").is_ok());
    for _ in 0..100 {
        limits.try_code(HERE, "eve@example.com").expect("a right code does not count").does_not_count();
    }
}

#[test]
fn a_right_password_does_not_count() {
    let limits = Limits::default();
    for _ in 0..1000 {
        limits.try_password(HERE, "ada@example.com").expect("never refused").does_not_count();
    }
}

#[test]
fn many_accounts_from_one_place_are_slowed_down_too() {
    let limits = Limits::default();
    let tried = (0..100).filter(|n| limits.try_password(HERE, &format!("{n}@example.com")).is_ok()).count();
    assert!((60..65).contains(&tried), "{tried}");
}
