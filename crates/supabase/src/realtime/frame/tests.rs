use super::*;

#[test]
fn both_serialisations_say_the_same() {
    let two = decode(Version::Two, r#"["6","7","realtime:x","phx_join",{"a":1}]"#).expect("decodes");
    let one =
        decode(Version::One, r#"{"topic":"realtime:x","event":"phx_join","payload":{"a":1},"ref":"7","join_ref":"6"}"#).expect("decodes");
    assert_eq!(two, one);
    for version in [Version::One, Version::Two] {
        let written = encode(version, Some("6"), Some("7"), "realtime:x", "phx_join", r#"{"a":1}"#);
        assert_eq!(decode(version, &written).expect("decodes"), two);
    }
}

#[test]
fn a_numeric_reference_is_echoed_as_a_string() {
    let frame = decode(Version::Two, r#"[null,3,"phoenix","heartbeat",{}]"#).expect("decodes");
    assert_eq!(frame.reference.as_deref(), Some("3"));
    assert_eq!(
        encode(Version::Two, None, frame.reference.as_deref(), "phoenix", "phx_reply", "{}"),
        r#"[null,"3","phoenix","phx_reply",{}]"#
    );
}

#[test]
fn a_binary_broadcast_is_read_and_a_cut_one_is_not() {
    let mut bytes = vec![3, 1, 1, 10, 5, 0, 1];
    bytes.extend(b"67realtime:xhello{\"n\":1}");
    let frame = decode_binary(&bytes).expect("decodes");
    assert_eq!((frame.topic.as_str(), frame.join_ref.as_deref()), ("realtime:x", Some("6")));
    assert_eq!(frame.payload, json!({"type": "broadcast", "event": "hello", "payload": {"n": 1}}));
    for length in 0..bytes.len() - 1 {
        assert!(decode_binary(&bytes[..length]).is_none(), "{length}");
    }
}
