use super::*;

#[test]
fn a_domain_that_no_host_can_have_is_none() {
    for text in ["a@:", "<A@:", "a@\u{1fbd}", "a@b c", "a@b/c"] {
        assert_eq!(normalise(text), None, "{text}");
    }
}

#[test]
fn every_written_form_gives_the_bare_address() {
    for (written, expected) in [
        ("john@example.com", "john@example.com"),
        ("  JOHN@Example.COM \r\n", "john@example.com"),
        ("John Q <JOHN@example.com>", "john@example.com"),
        ("\"Doe, John\" <j@x.com>", "j@x.com"),
        ("\"a@b.com\" <j@x.com>", "j@x.com"),
        ("j@x.com (John)", "j@x.com"),
        ("(John) j@x.com", "j@x.com"),
        ("<j@x.com>", "j@x.com"),
        ("=?UTF-8?B?SsO2cmc=?= <joerg@x.com>", "joerg@x.com"),
        ("=?UTF-8?Q?J=C3=B6rg_=3Cjoerg=40x.com=3E?=", "joerg@x.com"),
        ("a@x.com, b@y.com", "a@x.com"),
        ("Team: a@x.com, b@y.com;", "a@x.com"),
        ("josé@Bücher.example", "josé@xn--bcher-kva.example"),
        ("j@xn--bcher-kva.example", "j@xn--bcher-kva.example"),
        ("j@x.com.", "j@x.com"),
        ("j+tag@x.com", "j+tag@x.com"),
        ("j@[192.0.2.1]", "j@[192.0.2.1]"),
    ] {
        assert_eq!(normalise(written).as_deref(), Some(expected), "{written}");
    }
}

#[test]
fn what_is_no_address_is_none() {
    let long = format!("{}@x.com", "a".repeat(300));
    for written in ["", " ", "john", "@x.com", "john@", "+14158675309", "undisclosed-recipients:;", "<>", "a b@", long.as_str(), "\0"] {
        assert_eq!(normalise(written), None, "{written}");
    }
}

#[test]
fn the_mailbox_is_what_remains_without_tag() {
    for (address, expected) in [
        ("john+news@example.com", "john@example.com"),
        ("john+a+b@example.com", "john@example.com"),
        ("+tag@example.com", "+tag@example.com"),
        ("j.o.hn@example.com", "j.o.hn@example.com"),
        ("j.o.hn+x@gmail.com", "john@gmail.com"),
        ("john@googlemail.com", "john@gmail.com"),
    ] {
        assert_eq!(without_tag(address), expected);
    }
}
