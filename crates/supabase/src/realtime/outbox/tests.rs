use super::*;

#[tokio::test]
async fn a_socket_is_cut_off_for_what_waits_in_frames_and_in_bytes() {
    let large = || "x".repeat(MOST_BYTES_WAITING + 1);
    let (out, mut frames, end) = Outbox::new(&Budget::default());
    for _ in 0..3 {
        out.push(large());
        assert_eq!(frames.recv().await.map(|frame| frame.len()), Some(MOST_BYTES_WAITING + 1), "one at a time is fine");
    }
    out.push(large());
    out.push("one more");
    end.reached().await;

    let (out, _frames, end) = Outbox::new(&Budget::default());
    for _ in 0..=MOST_WAITING {
        out.push("x");
    }
    end.reached().await;
}

#[tokio::test]
async fn all_sockets_together_keep_within_the_budget() {
    let budget = Budget::default();
    let frame = Utf8Bytes::from("x".repeat(MOST_BYTES_WAITING / 2));
    let sockets: Vec<_> = (0..16).map(|_| Outbox::new(&budget)).collect();
    for (out, ..) in &sockets {
        out.push(frame.clone());
    }
    assert_eq!(budget.0.load(Ordering::Relaxed), MOST_BYTES_IN_ALL);
    let (behind, _, end) = &sockets[0];
    behind.push("one more");
    end.reached().await;
    let (other, mut frames, _) = Outbox::new(&budget);
    other.push("who is not behind is served");
    assert!(frames.recv().await.is_some());
    drop((other, frames, sockets));
    assert_eq!(budget.0.load(Ordering::Relaxed), 0, "what was not sent no longer counts");
}
