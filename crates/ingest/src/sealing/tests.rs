use super::*;

const HERE: Place<'static> = Place { table: "ingestion_providers", row: "1", purpose: "config" };

fn text(n: u8) -> String {
    URL_SAFE_NO_PAD.encode([n; 32])
}

#[test]
fn what_was_sealed_opens_in_its_place_and_nowhere_else() {
    let keys = MasterKeys::generate();
    let sealed = keys.seal(b"secret", &HERE);
    assert_eq!(keys.open(&sealed, &HERE).unwrap().as_slice(), b"secret");
    assert!(!sealed.contains("secret") && sealed != keys.seal(b"secret", &HERE), "a nonce is used once");
    for elsewhere in [Place { row: "2", ..HERE }, Place { purpose: "key", ..HERE }, Place { table: "other", ..HERE }] {
        assert!(matches!(keys.open(&sealed, &elsewhere), Err(Error::Broken)), "{elsewhere:?}");
    }
    let shifted = Place { row: "1c", purpose: "onfig", ..HERE };
    assert!(matches!(keys.open(&sealed, &shifted), Err(Error::Broken)));
}

#[test]
fn the_first_key_seals_and_all_open() {
    let (one, two) = (text(1), text(2));
    let old = MasterKeys::parse(&one, "test").unwrap();
    let sealed = old.seal(b"secret", &HERE);
    let both = MasterKeys::parse(&format!("{two},{one}"), "test").unwrap();
    assert_eq!(both.open(&sealed, &HERE).unwrap().as_slice(), b"secret");
    assert!(both.seal(b"x", &HERE).starts_with(&both.current_prefix()));
    let new = MasterKeys::parse(&two, "test").unwrap();
    assert_eq!(new.current(), both.current());
    let message = new.open(&sealed, &HERE).unwrap_err().to_string();
    assert!(message.contains(old.current()) && message.contains(new.current()), "{message}");
}

#[test]
fn a_changed_or_foreign_text_does_not_open() {
    let keys = MasterKeys::parse(&text(1), "test").unwrap();
    let sealed = keys.seal(b"secret", &HERE);
    for at in sealed.len() - 30..sealed.len() - 1 {
        let mut changed = sealed.clone().into_bytes();
        changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(changed).unwrap();
        assert!(keys.open(&changed, &HERE).is_err(), "{at}");
    }
    let prefix = keys.current_prefix();
    for foreign in ["", "gs1", "gs1.x", "plain text", &prefix, &format!("{prefix}AAAA"), "gs2.a.b"] {
        assert!(keys.open(foreign, &HERE).is_err(), "{foreign:?}");
    }
}

#[test]
fn keys_are_read_in_every_spelling_and_errors_do_not_contain_them() {
    let standard = base64::engine::general_purpose::STANDARD.encode([0xfb; 32]);
    let plain = URL_SAFE_NO_PAD.encode([0xfb; 32]);
    let read = |text: &str| MasterKeys::parse(text, "test").map(|keys| keys.current().to_owned());
    assert_eq!(read(&standard).unwrap(), read(&format!(" {plain}\n")).unwrap());
    for wrong in ["", "  \n", "c2hvcnQ=", "not base64 !!"] {
        assert!(read(wrong).is_err(), "{wrong:?}");
    }
    let message = read("c2VjcmV0").unwrap_err().to_string();
    assert!(message.contains("32 bytes") && !message.contains("c2VjcmV0"), "{message}");
    assert_eq!(format!("{:?}", MasterKeys::generate()), "MasterKeys");
}
