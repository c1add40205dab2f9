use super::*;

fn at() -> DateTime<FixedOffset> {
    DateTime::parse_from_rfc3339("2026-11-16T09:00:00+00:00").expect("a time")
}

#[test]
fn an_english_mail_gives_up_what_is_in_it() {
    let text = "Hi, I'm Ann.Lee@Example.com, reach me on (415) 555-2671 or +44 20 7946 0018. \
            The offer at https://example.com/offer?id=7 was $1,200; can we talk tomorrow at 3 pm?";
    let found = find(text, Some("US"), at());
    assert_eq!(found.emails, ["ann.lee@example.com"]);
    assert_eq!(found.links, ["https://example.com/offer?id=7"]);
    assert_eq!(found.phones.iter().map(|p| p.number.as_str()).collect::<Vec<_>>(), ["+14155552671", "+442079460018"]);
    assert_eq!(found.money[0].amount, "1200");
    assert_eq!(found.dates[0].date.to_string(), "2026-11-17");
}

#[test]
fn a_german_mail_as_well() {
    let text = "Bitte um Rückruf unter 030 23125 111 oder 0049 89 2180 0 bis Freitag. Das Angebot über 2.500,00 € gilt bis 30.11.2026.";
    let found = find(text, Some("DE"), at());
    assert_eq!(found.phones.iter().map(|p| p.number.as_str()).collect::<Vec<_>>(), ["+493023125111", "+498921800"]);
    assert_eq!((found.money[0].amount.as_str(), found.money[0].currency), ("2500.00", "EUR"));
    assert_eq!(found.dates.iter().map(|d| d.date.to_string()).collect::<Vec<_>>(), ["2026-11-20", "2026-11-30"]);
}

#[test]
fn a_number_without_country_is_no_phone_unless_a_region_is_set() {
    assert_eq!(find("order 4155552671", None, at()).phones, []);
    assert_eq!(find("order 1234567890123", Some("US"), at()).phones, []);
}
