use super::*;

fn is(text: &str, region: &str, expected: &str) {
    assert_eq!(normalise(text, region).as_deref(), Some(expected), "{text} [{region}]");
}

#[test]
fn numbers_are_read_as_in_the_table_of_formats() {
    is("(415) 867-5309", "US", "+14158675309");
    is("4158675309 x123", "US", "+14158675309");
    is("011 44 20 7946 0958", "US", "+442079460958");
    is("+44 (0)20 7946 0958", "US", "+442079460958");
    is("06 6982", "IT", "+39066982");
    is("8 (495) 123-45-67", "RU", "+74951234567");
    is("011 15 2345-6789", "AR", "+5491123456789");
    is("+1234567890", "US", "1234567890");
    is("0044 20 7946 0958", "US", "00442079460958");
}

/// The numbers that another library parses wrongly when it is given a region.
#[test]
fn a_plus_does_not_need_the_region() {
    for region in ["US", "DE", "", "nonsense"] {
        is("+33123456789", region, "+33123456789");
        is("+5511987654321", region, "+5511987654321");
        is("+14158675309", region, "+14158675309");
    }
}

#[test]
fn channels_extensions_and_ornaments_are_not_part_of_the_number() {
    for text in [
        "whatsapp:+14158675309",
        "WhatsApp: +1 415 867 5309",
        "tel:+1-415-867-5309;ext=22",
        "sms:4158675309",
        "+1 (415) 867-5309 ext. 4",
        "+1.415.867.5309 extension 12",
        "415-867-5309 #7",
        " 1-415-867-5309 ",
        "(+1) 415 8675309",
        "４１５-８６７-５３０９",
    ] {
        is(text, "us", "+14158675309");
    }
}

#[test]
fn possible_is_enough() {
    is("+1 555 010 0199", "US", "+15550100199");
    is("+15005550006", "US", "+15005550006");
    is("whatsapp:+5215512345678", "US", "+5215512345678");
    // A number to be dialled within one town does not identify a subscriber.
    is("867-5309", "US", "8675309");
}

#[test]
fn short_codes_stay_as_they_are_written() {
    for region in ["US", "DE", "IT"] {
        is("384387", region, "384387");
        is("12345", region, "12345");
    }
}

#[test]
fn what_is_no_number_is_none() {
    for text in [
        "",
        " ",
        "-",
        "john@example.com",
        "123@example.com",
        "whatsapp:US.1349ABCDEF",
        "US.1349",
        "1-800-FLOWERS",
        "Mobile",
        "(415) 867-5309 mobile",
        "telegram:12345",
    ] {
        assert_eq!(normalise(text, "US"), None, "{text}");
    }
}

#[test]
fn withheld_callers_match_no_contact() {
    let numbers = ["+266696687", "+7378742833", "+2562533", "+8656696", "+86282452253", "whatsapp:+266696687", "+737 874 2833"];
    let words = ["anonymous", "Restricted", "unknown", "UNAVAILABLE", "private", "blocked"];
    for text in numbers.into_iter().chain(words) {
        assert!(is_withheld(text), "{text}");
        assert_eq!(normalise(text, "US"), None, "{text}");
    }
    // A real line in Austin, Texas.
    assert!(!is_withheld("737-874-2833"));
    is("737-874-2833", "US", "+17378742833");
    is("+1 737 874 2833", "US", "+17378742833");
}

#[test]
fn ten_digits_are_compared_only_where_they_may_mean_something() {
    let loose = |text: &str, region: &str| read(text, region).and_then(|number| number.loose);
    assert_eq!(loose("(415) 867-5309", "US").as_deref(), Some("4158675309"));
    assert_eq!(loose("(415) 867-5309", "GB").as_deref(), Some("4158675309"));
    assert_eq!(loose("+44 4158675309", "US"), None);
    assert_eq!(loose("+33415867530", "US"), None);
    // An impossible number never gets a loose match. And these digits include their country.
    assert_eq!(loose("0044 20 7946 0958", "US"), None);
    assert_eq!(loose("011 44 20 7946 0958", "US"), None);
    assert_eq!(loose("+1234567890", "US"), None);
}
