use super::*;

fn limits(rejected: u32, ceiling: u32) -> Limits {
    let limits = settings::Limits { rejected_per_minute: rejected, ceiling_per_minute: ceiling, ..settings::Limits::default() };
    Limits::new(&limits)
}

fn client(n: u8) -> IpAddr {
    IpAddr::from([192, 0, 2, n])
}

#[test]
fn a_client_that_is_rejected_uses_up_only_its_own_limit() {
    let limits = limits(3, 0);
    let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
    for _ in 0..3 {
        assert_eq!(limits.blame(Some(one), client(1)), Ok(()));
    }
    let wait = limits.blame(Some(one), client(1)).unwrap_err();
    assert!(wait > Duration::ZERO && wait <= Duration::from_secs(20), "{wait:?}");
    assert_eq!(limits.blame(Some(one), client(2)), Ok(()));
    assert_eq!(limits.blame(Some(other), client(1)), Ok(()));
    assert_eq!(limits.blame(None, client(1)), Ok(()));
}

#[tokio::test]
async fn who_failed_too_often_waits_in_a_narrow_line() {
    let limits = limits(1, 0);
    let channel = Some(Uuid::from_u128(1));
    let _ = limits.blame(channel, client(1));
    let _ = limits.blame(channel, client(1));
    let mut inside = Vec::new();
    for _ in 0..NARROW {
        inside.push(limits.enter(channel, client(1)).await.unwrap());
    }
    tokio::time::timeout(Duration::from_millis(50), limits.enter(channel, client(1))).await.expect_err("the line is narrow");
    limits.enter(channel, client(2)).await.unwrap();
    inside.pop();
    limits.enter(channel, client(1)).await.unwrap();
}

#[test]
fn a_whole_ipv6_block_is_one_client() {
    let limits = limits(1, 0);
    assert_eq!(limits.blame(None, "2001:db8::1".parse().unwrap()), Ok(()));
    assert!(limits.blame(None, "2001:db8::ffff:2".parse().unwrap()).is_err());
    assert_eq!(limits.blame(None, "2001:db8:0:1::1".parse().unwrap()), Ok(()));
}

#[test]
fn memory_is_bounded_by_sharing_one_count() {
    let limits = limits(1, 0);
    for n in 0..(MANY as u32 + 2) {
        let _ = limits.blame(None, IpAddr::from(n.to_be_bytes()));
    }
    assert_eq!(limits.rejected.len(), MANY + 1);
    assert!(limits.blame(None, client(1)).is_err(), "beyond the bound all share one count");
}

#[test]
fn the_ceiling_lets_a_burst_pass_and_stops_a_flood() {
    let limits = limits(1, 2);
    let channel = Uuid::from_u128(1);
    for n in 0..120 {
        assert_eq!(limits.admit(channel), Ok(()), "{n}");
    }
    assert!(limits.admit(channel).unwrap_err() > Duration::ZERO);
    assert_eq!(limits.admit(Uuid::from_u128(2)), Ok(()));
}
