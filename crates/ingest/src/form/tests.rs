use super::*;

const MULTIPART: &str = "--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\none\r\n--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f.txt\"\r\nContent-Type: text/plain; charset=iso-8859-1\r\n\r\n\u{e9}\r\n--x--\r\n";

#[test]
fn multipart_fields_keep_their_order_names_and_bytes() {
    let form = Form::multipart("multipart/form-data; boundary=x", MULTIPART.as_bytes()).expect("well-formed");
    assert_eq!(form.only("a").as_deref(), Some("one"));
    assert_eq!(form.files().map(|file| (file.name.as_str(), file.file_name.as_deref())).collect::<Vec<_>>(), [("file", Some("f.txt"))]);
    assert_eq!(form.text("file").as_deref(), Some("Ã©"), "two bytes are two letters in Latin 1");
}

#[test]
fn the_digest_does_not_depend_on_the_boundary() {
    let one = Form::multipart("multipart/form-data; boundary=x", MULTIPART.as_bytes()).expect("well-formed").digest();
    let other = MULTIPART.replace("--x", "--other");
    assert_eq!(one, Form::multipart("multipart/form-data; boundary=other", other.as_bytes()).expect("well-formed").digest());
    assert_ne!(
        one,
        Form::multipart("multipart/form-data; boundary=x", MULTIPART.replace("one", "two").as_bytes()).expect("well-formed").digest()
    );
}

#[test]
fn a_broken_multipart_body_is_malformed() {
    let broken = ["", "--x", "--x\r\n", "--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\none", "--y\r\n\r\n--y--"];
    for body in broken {
        let result = Form::multipart("multipart/form-data; boundary=x", body.as_bytes());
        assert!(matches!(result, Err(Refusal::Malformed(_))), "{body:?} {result:?}");
    }
    let result = Form::multipart("multipart/form-data", MULTIPART.as_bytes());
    assert!(matches!(result, Err(Refusal::Malformed(_))), "no boundary {result:?}");
}

#[test]
fn a_field_given_twice_is_not_the_only_one() {
    let form = Form::urlencoded(b"token=a&token=b&x=%2B+").expect("a form");
    assert_eq!(form.only("token"), None);
    assert_eq!(form.only("x").as_deref(), Some("+ "));
}

#[test]
fn unknown_charsets_and_broken_text_are_replaced_not_refused() {
    assert_eq!(decode(b"caf\xe9", Some("iso-8859-1")), "café");
    assert_eq!(decode(b"caf\xe9", Some("no-such")), "caf\u{fffd}");
    assert_eq!(decode("日本".as_bytes(), None), "日本");
    assert_eq!(decode(b"\x93\xfa\x96\x7b", Some("Shift_JIS")), "日本");
}
